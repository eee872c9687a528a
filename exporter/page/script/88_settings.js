// --- every key ---------------------------------------------------------------------------------

let keys = null;
/** Values that the statistics never have, as /ctl gives them; read when they are seen. */
const learned = {};

/** Whether the statistics have the values of a group, as far as there are any. */
const isPrinted = group => group in general || group in now.all;

/** A value by its name, of the snapshot or learned; undefined when it is not there. */
function valueIn(name) {
  const { "stats.arenas": arenas, stats, ...rest } = { ...learned, ...general, ...now.all };
  let parts = name.split("."), at = { ...rest, stats: { ...stats, arenas } };
  parts = parts.map(part => part === "uptime" ? "uptime_ns" : part);
  for (const part of parts) at = at?.[part];
  return typeof at === "object" ? undefined : at;
}

/** The group of a key: the first part of its name; those of one part stand together. */
const groupOf = name => name.includes(".") ? name.split(".")[0] : "process";

/** A number exactly, and for people where that differs. */
function bothWays(value, kind) {
  const [people, exact] = KINDS[kind].map(write => write(value));
  return kind === "count" || value === 0 ? exact : `${exact} (${people})`;
}

/** Reads what the statistics do not have. A group is asked as one, and tells the keys that have a value in this process. */
async function learn(names) {
  const wanted = new Set(names.filter(name => !isPrinted(groupOf(name))).map(name => name.split(".")[0]));
  await Promise.all([...wanted].map(async name => {
    try {
      const found = await read(`/ctl/${name}`);
      learned[name] = names.includes(name) ? found.value : found;
    } catch (error) {
      delete learned[name];
    }
  }));
}

/** The control for a key that may be changed. */
function editor(key, nameNow) {
  const name = nameNow();
  if (key.type === "void") {
    const button = el("button", { type: "button", "aria-label": `Do ${name}`, onclick: () => act(nameNow(), null, `${nameNow()}: done.`, button) }, "Do");
    return el("span", { class: "edit" }, button);
  }
  const isBool = key.type === "bool", isText = /char/.test(key.type);
  const input = isBool ? el("select", {}, el("option", {}, "true"), el("option", {}, "false"))
    : el("input", { type: isText ? "text" : "number", step: 1, required: !isText });
  mark(input, "aria-label", `New value of ${name}`);
  const submit = event => {
    event.preventDefault();
    const value = isBool ? input.value === "true" : isText ? input.value : Number(input.value);
    act(nameNow(), value, `${nameNow()} = ${value}`, event.submitter).then(isDone => { if (isDone && !isBool) input.value = ""; });
  };
  return el("form", { class: "edit", onsubmit: submit }, input, el("button", { "aria-label": `Set ${name}` }, "Set"));
}

function keyItem(key) {
  const value = el("span", { class: "value" });
  const indices = [];
  const label = el("code");
  for (const part of key.name.split(/(<\w+>)/)) {
    if (!part.startsWith("<")) { label.append(part); continue; }
    const input = el("input", { type: "number", min: 0, value: 0, "aria-label": `Index ${part} of ${key.name}`, onchange: () => showValues(true) });
    indices.push(input);
    label.append(input);
  }
  const nameNow = () => {
    let place = 0;
    return key.name.replace(/<\w+>/g, () => indices[place++].value || "0");
  };
  const tags = [key.type, key.unit, key.access].filter(tag => tag !== "-").join(" · ");
  const node = el("div", { class: "key" }, el("div", {}, label), value,
    el("p", { class: "quiet" }, `${key.help} `, el("span", { class: "tag" }, tags)));
  if (key.post) node.append(editor(key, nameNow));
  const isReadable = key.get ?? key.access.includes("r");
  const show = () => {
    if (!isReadable) return;
    const found = valueIn(nameNow());
    if (typeof found === "number" && key.unit in KINDS) say(value, bothWays(found, key.unit));
    else say(value, found === undefined ? "–" : found === "" ? "\u201c\u201d" : String(found));
  };
  return { node, key, isReadable, nameNow, show, words: `${key.name} ${key.help}`.toLowerCase() };
}

let items = [];

/** Shows the values of what is open. */
async function showValues(isAsked = false) {
  const open = items.filter(item => item.group.open && !item.node.hidden);
  if (isAsked) await learn(open.filter(item => item.isReadable).map(item => item.nameNow()));
  for (const item of open) item.show();
}

async function showKeys() {
  if (keys) return showValues();
  keys = [];
  try {
    keys = await read("/ctl");
  } catch (error) {
    keys = null;
    say($("settings-note"), `Not known: ${error.message}.`);
    return;
  }
  const groups = new Map();
  for (const key of keys) {
    const name = groupOf(key.name);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(keyItem(key));
  }
  for (const [name, some] of groups) {
    const count = el("span", { class: "index" });
    const group = el("details", { ontoggle: () => showValues(true) }, el("summary", {}, el("code", {}, name), " ", count), ...some.map(item => item.node));
    for (const item of some) Object.assign(item, { group, count });
    $("keys").append(group);
    items.push(...some);
  }
  search();
}

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isNarrow = words.length > 0 || $("only-writable").checked;
  const counts = new Map();
  for (const item of items) {
    const fits = words.every(word => item.words.includes(word)) && (item.key.post || !$("only-writable").checked);
    item.node.hidden = !fits;
    counts.set(item, fits);
  }
  let found = 0;
  for (const group of new Set(items.map(item => item.group))) {
    const some = items.filter(item => item.group === group && !item.node.hidden);
    found += some.length;
    group.hidden = !some.length;
    if (group.isNarrow !== isNarrow || isNarrow && some.length) group.open = isNarrow && found <= 60;
    group.isNarrow = isNarrow;
    say(items.find(item => item.group === group).count, String(some.length));
  }
  say($("settings-note"), `${found} of ${items.length} keys`);
  showValues(true);
}
let typing;
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 150); });
$("only-writable").addEventListener("change", search);
