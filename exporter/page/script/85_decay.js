// --- decay: how long unused pages stay ---------------------------------------------------------

const arenaOf = index => now.arenas.find(arena => arena.index === index);

/** Purges, and says how many bytes of unused pages are gone. */
function purge(index, control) {
  const unused = () => sum(index === 4096 ? now.arenas : [arenaOf(index)].filter(Boolean), arena => arena.dirty + arena.muzzy);
  const held = unused(), name = index === 4096 ? "all arenas" : arenaOf(index).name;
  return act(`arena.${index}.purge`, null,
    () => `Purged ${name}: unused pages ${KINDS.bytes[0](held)} → ${KINDS.bytes[0](unused())}.`, control);
}

/** A decay time that can be changed. What is being typed is left alone. */
function decayCell(of, title) {
  return arena => {
    const name = `${title} of ${arena.name}, in milliseconds`;
    const input = el("input", { type: "number", min: -1, step: 1, required: true, "aria-label": name });
    const button = el("button", { hidden: true, "aria-label": `Set ${name}` }, "Set");
    const words = el("span", { class: "quiet wide" });
    let set = null, key = "";
    const changed = () => { button.hidden = Number(input.value) === set && input.value !== ""; };
    const submit = async event => {
      event.preventDefault();
      const value = Number(input.value);
      if (await act(key, value, `${key} = ${value}`, button)) { button.hidden = true; input.focus(); }
    };
    input.addEventListener("input", changed);
    input.addEventListener("keydown", event => { if (event.key === "Escape") { input.value = set; changed(); } });
    const update = arena => {
      const value = arena.stats[of];
      key = arena.index == null ? `arenas.${of}` : `arena.${arena.index}.${of}`;
      const isTouched = !button.hidden;
      set = value;
      if (!isTouched && input.value !== String(value)) input.value = value;
      if (isTouched && document.activeElement !== input && document.activeElement !== button) changed();
      say(words, shown(value, "ms"));
    };
    return { node: el("form", { class: "edit", onsubmit: submit }, words, input, button), update };
  };
}

const decayTable = new Table($("decay-table"), "Decay", [
  arenaCell,
  { title: "Dirty", kind: "bytes", of: arena => arena.dirty, help: "unused pages that have memory" },
  { title: "Muzzy", kind: "bytes", of: arena => arena.muzzy, wide: true, help: "unused pages, memory perhaps gone" },
  { title: "Purged", kind: "bytes", of: arena => arena.purged, wide: true, help: "given back since the arena was made" },
  { title: "Purge", cell: arena => {
    if (arena.index == null) return { node: [], update() {} };
    const button = el("button", { type: "button", "aria-label": `Purge ${arena.name}`, onclick: () => purge(arena.index, button) }, "Purge");
    return { node: button, update() {} };
  } },
  { title: "Dirty decay, ms", cell: decayCell("dirty_decay_ms", "Dirty decay"), help: "time until unused dirty pages are purged" },
  { title: "Muzzy decay, ms", cell: decayCell("muzzy_decay_ms", "Muzzy decay"), help: "time until unused muzzy pages are purged" },
], arena => arena.index ?? "new");

$("purge-all").addEventListener("click", event => purge(4096, event.currentTarget));
$("decay-all").addEventListener("click", event =>
  act("arena.4096.decay", null, "Pages whose time had come were given back.", event.currentTarget));

/** The boxes by the keys that they show. */
const BOXES = { background_thread: $("background"), background_thread_auto: $("background-auto") };
for (const [key, box] of Object.entries(BOXES)) box.addEventListener("change", () => {
  const isOn = box.checked, isBoth = key === "background_thread" && !isOn;
  act(key, isOn, `${key} = ${isOn}${isBoth ? "; background_thread_auto is false by this too" : ""}`, box);
});

/** Shows the keys, which the statistics do not have: their count of threads has the temporary one too. */
async function showBackground() {
  if (!visible.has("decay")) return;
  for (const [key, box] of Object.entries(BOXES)) {
    try {
      const { value } = await read(`/ctl/${key}`);
      if (!held.has(box)) box.checked = value;
    } catch {
      // The next round asks again.
      return;
    }
  }
}

function showDecay() {
  const fresh = { name: "New arenas", stats: general.arenas ?? {}, dirty: null, muzzy: null, purged: null };
  decayTable.show([...now.arenas, fresh]);
  showBackground();
}
