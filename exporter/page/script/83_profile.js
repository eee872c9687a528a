// --- the heap profile --------------------------------------------------------------------------
// The state is read while somebody looks; the picture is drawn when a person asks for it.

const ROW = 20, LEAST_SHARE = 0.001, MOST_SITES = 5;
const profile = { isActive: false, unit: "bytes", mark: null };

async function showProfile() {
  if (!visible.has("profile")) return;
  const isOn = general.opt?.prof === true;
  let all = {};
  try {
    if (isOn) all = await read("/ctl/prof");
  } catch {
    // The next round asks again.
    return;
  }
  profile.isActive = all.active === true;
  const every = isOn && (all.lg_sample === 0 ? "Each allocation is a sample"
    : `One sample in ${KINDS.bytes[0](2 ** all.lg_sample)} on average`);
  say($("profile-state"), !isOn
    ? "This process takes no heap profile. Start it with prof:true in LUMALLOC_CONF."
    : `${every}${profile.isActive ? "" : ", but sampling is stopped"}. `
      + `${KINDS.count[0](all.samples.live)} samples are in use, of ${KINDS.count[0](all.samples.taken)} taken, `
      + `with ${KINDS.count[0](all.samples.stacks)} stacks.`);
  for (const control of document.querySelectorAll("#profile > .row :is(button, select, input)")) if (!held.has(control)) control.disabled = !isOn;
  $("profile-growth").disabled = !profile.mark;
  say($("profile-switch"), profile.isActive ? "Stop" : "Start");
}

/** Runs what a control asks for, and says why it failed. */
const doing = (control, work) => holding(control, async () => {
  try {
    await work();
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.message, true);
  }
});

/** Asks for a change of the profiler, and says what came of it. */
async function changeProfile(path, control) {
  await doing(control, async () => tell((await ask(path, { method: "POST" })).trim()));
  await showProfile();
}

/** Saves an answer as a file. */
const save = (path, name, control) => doing(control, async () => {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(60000) });
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  const address = URL.createObjectURL(await answer.blob());
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
});

/** What grew since an earlier moment, and by how much the other stacks became smaller. */
function growthOf(stacks, earlier) {
  const grown = new Map();
  let freed = 0;
  for (const stack of new Set([...stacks.keys(), ...earlier.keys()])) {
    const change = (stacks.get(stack) ?? 0) - (earlier.get(stack) ?? 0);
    if (change > 0) grown.set(stack, change);
    else freed -= change;
  }
  return { grown, freed };
}

/** Stacks as a tree, the program's entry first. */
function treeOf(stacks, title) {
  const root = { name: title, value: 0, above: null, inside: new Map() };
  for (const [stack, value] of stacks) {
    if (value <= 0) continue;
    root.value += value;
    let at = root;
    for (const name of stack.split(";")) {
      if (!at.inside.has(name)) at.inside.set(name, { name, value: 0, above: at, inside: new Map() });
      at = at.inside.get(name);
      at.value += value;
    }
  }
  return root;
}

/** The name of a frame without the directories of its file. */
const shortName = name => name.replace(/ \((?:.*\/)?([^/]+:\d+)\)$/, " $1");

/** Draws a frame and what it calls below it; those above it are as wide as the picture. */
function drawFrames(top) {
  const frames = [], whole = top.value;
  const root = (function first(frame) { return frame.above ? first(frame.above) : frame; })(top);
  const add = (frame, left, width, depth) => {
    const part = `${shown(frame.value, profile.unit)}, ${shown(percent(frame.value, root.value), "percent")}`;
    const node = el("button", { type: "button", class: "frame", title: `${frame.name}\n${part}`, "aria-label": `${shortName(frame.name)}, ${part}`,
      tabindex: frame === top ? 0 : -1, onclick: () => drawFrames(frame) }, shortName(frame.name));
    node.style.left = `${left * 100}%`;
    node.style.width = `${width * 100}%`;
    node.style.top = `${depth * ROW}px`;
    // The same function has the same shade wherever it is.
    node.style.setProperty("--shade", `${[...frame.name].reduce((hash, letter) => (hash * 31 + letter.codePointAt(0)) % 97, 7) * 0.25}%`);
    frames.push(node);
    places.set(node, { frame, depth, left });
  };
  const path = [];
  for (let frame = top.above; frame; frame = frame.above) path.unshift(frame);
  places.clear();
  path.forEach((frame, depth) => add(frame, 0, 1, depth));
  let deepest = path.length;
  const below = (frame, left, depth) => {
    add(frame, left, frame.value / whole, depth);
    deepest = Math.max(deepest, depth);
    let from = left;
    for (const inner of [...frame.inside.values()].sort((a, b) => b.value - a.value)) {
      if (inner.value >= whole * LEAST_SHARE) below(inner, from, depth + 1);
      from += inner.value / whole;
    }
  };
  below(top, 0, path.length);
  const picture = $("profile-picture"), hadFocus = picture.contains(document.activeElement);
  picture.replaceChildren();
  for (const frame of frames) picture.append(frame);
  picture.style.height = `${(deepest + 1) * ROW}px`;
  picture.hidden = false;
  if (hadFocus) frames[path.length].focus();
}

/** Where each frame is drawn. */
const places = new Map();

/** The frame that an arrow key leads to: down to the widest callee, up to the caller, and along a row. */
function besides(node, key) {
  const { frame, depth, left } = places.get(node);
  if (key === "ArrowUp") return [...places].find(([, place]) => place.frame === frame.above)?.[0];
  if (key === "ArrowDown") return [...places].find(([, place]) => place.frame.above === frame)?.[0];
  const row = [...places].filter(([, place]) => place.depth === depth).sort(([, a], [, b]) => a.left - b.left);
  const at = row.findIndex(([, place]) => place.left === left);
  return row[at + (key === "ArrowRight" ? 1 : -1)]?.[0];
}

$("profile-picture").addEventListener("keydown", event => {
  if (!/^Arrow/.test(event.key) || !places.has(event.target)) return;
  event.preventDefault();
  const next = besides(event.target, event.key);
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

/** The numbers of this moment: for each value those of stacks, and of the functions that allocated. */
async function takeNumbers() {
  const all = await read(`/flamegraph?format=json${$("profile-lines").checked ? "&lines=true" : ""}`);
  const maps = ({ stacks, sites }) => ({ stacks: new Map(Object.entries(stacks)), sites: new Map(Object.entries(sites)) });
  return Object.fromEntries(Object.entries(all).map(([value, numbers]) => [value, maps(numbers)]));
}

/** Lists the functions that allocated most. */
function listSites(sites, whole) {
  const most = [...sites].sort(([, a], [, b]) => b - a).slice(0, MOST_SITES);
  $("profile-sites").replaceChildren(...most.map(([name, value]) => el("li", { title: name },
    `${shown(value, profile.unit)}, ${shown(percent(value, whole), "percent")}: `, el("code", {}, shortName(name)))));
}

async function drawStacks() {
  const value = $("profile-value").value, { stacks, sites } = (await takeNumbers())[value], mark = profile.mark;
  const isGrowth = $("profile-growth").checked && mark;
  const growth = (present, of) => isGrowth ? growthOf(present, mark.numbers[value][of]) : { grown: present, freed: 0 };
  const { grown, freed } = growth(stacks, "stacks");
  profile.unit = value.endsWith("bytes") ? "bytes" : "count";
  const tree = treeOf(grown, isGrowth ? "growth" : "all"), amount = shown(tree.value, profile.unit);
  const since = isGrowth && seconds((performance.now() - mark.at) / 1000);
  const what = isGrowth ? `Stacks that grew in ${since}: ${amount}; others became smaller by ${shown(freed, profile.unit)}` : amount;
  const isEmpty = tree.value === 0;
  say($("profile-note"), !isEmpty
    ? `${what}. Callers are above what they call. A click makes a frame as wide as the picture; a click on one above it goes back. Arrow keys move.`
    : isGrowth ? `Nothing grew in ${since}.` : "There are no samples.");
  listSites(growth(sites, "sites").grown, tree.value);
  if (!isEmpty) drawFrames(tree);
  else $("profile-picture").hidden = true;
}

/** Keeps the numbers of this moment, for the growth since then. */
async function markMoment() {
  profile.mark = { at: performance.now(), numbers: await takeNumbers() };
  $("profile-growth").disabled = false;
  $("profile-growth").checked = true;
  tell("This moment is marked; \u201cDraw the stacks\u201d shows what grew since");
}

function forgetMark() {
  profile.mark = null;
  $("profile-growth").checked = false;
  $("profile-growth").disabled = true;
}

$("profile-draw").addEventListener("click", event => doing(event.currentTarget, drawStacks));
$("profile-mark").addEventListener("click", event => doing(event.currentTarget, markMoment));
// With lines the stacks have other names, and cannot be compared with those of before.
$("profile-lines").addEventListener("change", () => {
  if (profile.mark) tell("The mark is forgotten, because stacks have other names with lines: mark again", true);
  forgetMark();
});
$("profile-switch").addEventListener("click", event =>
  changeProfile(profile.isActive ? "/profile/stop" : "/profile/start", event.currentTarget));
$("profile-reset").addEventListener("click", event => {
  forgetMark();
  changeProfile("/profile/reset", event.currentTarget);
});
$("profile-pprof").addEventListener("click", event => save("/debug/pprof/heap", "heap.pb.gz", event.currentTarget));
$("profile-jeprof").addEventListener("click", event => save("/heap", "profile.heap", event.currentTarget));
