// --- the heap profile --------------------------------------------------------------------------
// The state is read while somebody looks; the picture is drawn when a person asks for it.

const ROW = 20, LEAST_SHARE = 0.001;
const profile = { isOn: null, isActive: false, top: null, unit: "bytes" };

async function showProfile() {
  if (!visible.has("profile") || profile.isOn === false) return;
  let all;
  try {
    all = await read("/ctl/prof");
  } catch (error) {
    if (error.status === 0 || error.status === 401) return;
    all = {};
  }
  profile.isOn = all.lg_sample != null;
  profile.isActive = all.active === true;
  const every = profile.isOn && (all.lg_sample === 0 ? "Each allocation is a sample"
    : `One sample in ${KINDS.bytes[0](2 ** all.lg_sample)} on average`);
  say($("profile-state"), !profile.isOn
    ? "This process takes no heap profile. Start it with prof:true in LUMALLOC_CONF."
    : `${every}${profile.isActive ? "" : ", but sampling is stopped"}. `
      + `${KINDS.count[0](all.samples.live)} samples are in use, of ${KINDS.count[0](all.samples.taken)} taken, `
      + `with ${KINDS.count[0](all.samples.stacks)} stacks.`);
  for (const control of document.querySelectorAll("#profile :is(button, select)")) control.disabled = !profile.isOn;
  say($("profile-switch"), profile.isActive ? "Stop" : "Start");
}

/** Asks for a change of the profiler, and says what came of it. */
async function changeProfile(path, control) {
  control.disabled = true;
  try {
    tell((await ask(path, { method: "POST" })).trim());
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.message, true);
  }
  control.disabled = false;
  await showProfile();
}

/** Saves an answer as a file. */
async function save(path, name, control) {
  control.disabled = true;
  try {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(60000) });
    if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
    const address = URL.createObjectURL(await answer.blob());
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.message, true);
  }
  control.disabled = false;
}

/** Folded stacks as a tree, the program's entry first. */
function treeOf(text, title) {
  const root = { name: title, value: 0, above: null, inside: new Map() };
  for (const line of text.split("\n")) {
    const end = line.lastIndexOf(" ");
    if (end < 0) continue;
    const value = Number(line.slice(end + 1));
    root.value += value;
    let at = root;
    for (const name of line.slice(0, end).split(";")) {
      if (!at.inside.has(name)) at.inside.set(name, { name, value: 0, above: at, inside: new Map() });
      at = at.inside.get(name);
      at.value += value;
    }
  }
  return root;
}

/** Draws a frame and what it calls below it; those above it are as wide as the picture. */
function drawFrames(top) {
  const frames = [], whole = top.value;
  const root = (function first(frame) { return frame.above ? first(frame.above) : frame; })(top);
  const add = (frame, left, width, depth) => {
    const part = `${shown(frame.value, profile.unit)}, ${shown(percent(frame.value, root.value), "percent")}`;
    const node = el("button", { type: "button", class: "frame", title: `${frame.name}\n${part}`, onclick: () => drawFrames(frame) }, frame.name);
    node.style.left = `${left * 100}%`;
    node.style.width = `${width * 100}%`;
    node.style.top = `${depth * ROW}px`;
    // The same function has the same shade wherever it is.
    node.style.setProperty("--shade", `${[...frame.name].reduce((hash, letter) => (hash * 31 + letter.codePointAt(0)) % 97, 7) * 0.4}%`);
    frames.push(node);
    return depth;
  };
  const path = [];
  for (let frame = top.above; frame; frame = frame.above) path.unshift(frame);
  path.forEach((frame, depth) => add(frame, 0, 1, depth));
  let deepest = path.length;
  const below = (frame, left, depth) => {
    deepest = Math.max(deepest, add(frame, left, frame.value / whole, depth));
    let from = left;
    for (const inner of [...frame.inside.values()].sort((a, b) => b.value - a.value)) {
      if (inner.value >= whole * LEAST_SHARE) below(inner, from, depth + 1);
      from += inner.value / whole;
    }
  };
  below(top, 0, path.length);
  const picture = $("profile-picture"), hadFocus = picture.contains(document.activeElement);
  picture.replaceChildren(...frames);
  picture.style.height = `${(deepest + 1) * ROW}px`;
  picture.hidden = false;
  if (hadFocus) frames[path.length].focus();
}

$("profile-draw").addEventListener("click", async event => {
  const control = event.currentTarget, value = $("profile-value").value;
  control.disabled = true;
  try {
    const tree = treeOf(await ask(`/flamegraph?format=collapsed&value=${value}`), "all");
    profile.unit = value.endsWith("bytes") ? "bytes" : "count";
    say($("profile-note"), tree.value > 0
      ? `${shown(tree.value, profile.unit)}. Callers are above what they call. A click makes a frame as wide as the picture; a click on one above it goes back.`
      : "There are no samples.");
    if (tree.value > 0) drawFrames(tree);
    else $("profile-picture").hidden = true;
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.message, true);
  }
  control.disabled = false;
});
$("profile-switch").addEventListener("click", event =>
  changeProfile(profile.isActive ? "/profile/stop" : "/profile/start", event.currentTarget));
$("profile-reset").addEventListener("click", event => changeProfile("/profile/reset", event.currentTarget));
$("profile-pprof").addEventListener("click", event => save("/debug/pprof/heap", "heap.pb.gz", event.currentTarget));
$("profile-jeprof").addEventListener("click", event => save("/heap", "profile.heap", event.currentTarget));
