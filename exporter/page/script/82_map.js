// --- the heap as a map -------------------------------------------------------------------------
// Asked for by a person, because it costs the process more than the numbers do. A cell is as many
// pages as it takes to fit, and has the state that most of its bytes have.

/** The states in the order of the legend: colour, its strength, what it means. */
const STATES = {
  slab: ["--used", 1, "small blocks; the stronger, the more of them are in use"],
  samples: ["--own", 1, "small blocks that the heap profiler sampled"],
  large: ["--credit", 1, "large blocks"],
  kept: ["--credit", 0.45, "freed, kept by a thread for its next request"],
  dirty: ["--idle", 1, "unused, with memory"],
  muzzy: ["--idle", 0.45, "unused, the system may take the memory"],
  aside: ["--idle", 0.7, "unused, set aside"],
  retained: ["--line", 1, "addresses without memory"],
  guarded: ["--bad", 1, "guarded samples"],
  metadata: ["--other", 1, "the allocator's own records"],
};
const CHANGES = {
  new: ["--bad", 1, "in use now, and was not"],
  more: ["--idle", 1, "more in use"],
  same: ["--used", 0.4, "in use as before"],
  less: ["--credit", 0.5, "less in use"],
  gone: ["--credit", 1, "was in use, and is not now"],
  unused: ["--line", 1, "not in use"],
};
const CELL = 8, MOST_ROWS = 44, MOST_RUNS = 200000;

const map = { heap: null, earlier: null, cell: 4096, width: 1, rows: [], at: null, isAsking: false };
const hex = address => `0x${address.toString(16)}`;

async function takeMap() {
  const arena = $("map-of").value === "merged" ? "" : `&arena=${$("map-of").value}`;
  const runs = [];
  let page = 4096, from = "0x0";
  while (from && runs.length < MOST_RUNS) {
    const part = await read(`/map?most=10000&from=${from}${arena}`);
    for (const run of part.runs) runs.push({ ...run, at: Number(run.base), end: Number(run.base) + run.bytes });
    ({ page, next: from } = part);
  }
  return { page, runs, arena, isPart: Boolean(from) };
}

/** The parts of the addresses that are drawn. Long stretches without memory are left out. */
function stretches(heaps, row) {
  const ranges = heaps.flatMap(heap => heap.runs.filter(run => run.state !== "retained" || run.bytes < row));
  ranges.sort((a, b) => a.at - b.at);
  const found = [];
  for (const { at, end } of ranges) {
    const last = found.at(-1);
    if (last && at < last.end + row) last.end = Math.max(last.end, end);
    else found.push({ at, end });
  }
  return found;
}

function layOut(heaps, width) {
  let cell = heaps[0].page, rows;
  for (;; cell *= 2) {
    const row = cell * width;
    rows = [];
    for (const { at, end } of stretches(heaps, row)) {
      if (rows.length) rows.push(null);
      for (let base = at - at % cell; base < end && rows.length <= MOST_ROWS; base += row) rows.push({ base, end: Math.min(end, base + row) });
    }
    if (rows.length <= MOST_ROWS || cell >= 2 ** 46) return Object.assign(map, { cell, width, rows });
  }
}

/** The cells of a row: {state, fill, used, run}, or nothing where no run is. */
function cellsOf(heap, row) {
  let low = 0, high = heap.runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (heap.runs[middle].end <= row.base) low = middle + 1; else high = middle;
  }
  const cells = [];
  for (let base = row.base, place = low; base < row.end; base += map.cell) {
    while (place < heap.runs.length && heap.runs[place].end <= base) place += 1;
    const covered = {};
    let used = 0, room = 0, first = null;
    for (let i = place; i < heap.runs.length && heap.runs[i].at < base + map.cell; i += 1) {
      const run = heap.runs[i], part = (Math.min(run.end, base + map.cell) - Math.max(run.at, base)) / run.bytes;
      first ??= run;
      covered[run.state] = (covered[run.state] ?? 0) + part * run.bytes;
      used += part * run.used * run.block;
      if (run.state === "slab" || run.state === "samples") room += part * run.blocks * run.block;
    }
    const state = Object.keys(covered).sort((a, b) => covered[b] - covered[a])[0];
    cells.push(state && { state, used, fill: room ? Math.min(used / room, 1) : 1, run: first });
  }
  return cells;
}

function changeOf(before, after) {
  if (!before && !after) return null;
  const [old, used] = [before?.used ?? 0, after?.used ?? 0];
  return !old && !used ? "unused" : !old ? "new" : !used ? "gone" : used > old ? "more" : used < old ? "less" : "same";
}

const isChange = () => $("map-changes").checked && map.earlier !== null;

function drawMap() {
  if (!map.heap) return;
  const canvas = $("map-picture"), width = Math.max(canvas.parentElement.clientWidth, 120);
  const heaps = isChange() ? [map.earlier, map.heap] : [map.heap];
  layOut(heaps, Math.floor(width / CELL));
  const scale = window.devicePixelRatio || 1, height = Math.max(map.rows.length, 1) * CELL;
  Object.assign(canvas, { width: width * scale, height: height * scale });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const brush = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  brush.scale(scale, scale);
  const kinds = isChange() ? CHANGES : STATES;
  const colours = Object.fromEntries(Object.entries(kinds).map(([name, [colour]]) => [name, style.getPropertyValue(colour)]));
  map.rows.forEach((row, y) => row && pictured(row).forEach((cell, x) => {
    if (!cell) return;
    brush.globalAlpha = kinds[cell.kind][1] * (0.2 + 0.8 * cell.fill);
    brush.fillStyle = colours[cell.kind];
    brush.fillRect(x * CELL, y * CELL, CELL - 1, CELL - 1);
  }));
  const { x, y } = placeOf(map.at) ?? {};
  if (x === undefined) return;
  Object.assign(brush, { globalAlpha: 1, strokeStyle: style.getPropertyValue("--ink"), lineWidth: 2 });
  brush.strokeRect(x * CELL - 1, y * CELL - 1, CELL + 1, CELL + 1);
}

/** What is drawn of a row: {kind, fill}. */
function pictured(row) {
  const cells = cellsOf(map.heap, row);
  if (!isChange()) return cells.map(cell => cell && { kind: cell.state, fill: cell.fill });
  const old = cellsOf(map.earlier, row);
  return cells.map((cell, i) => { const kind = changeOf(old[i], cell); return kind && { kind, fill: 1 }; });
}

function placeOf(address) {
  if (address === null) return null;
  const y = map.rows.findIndex(row => row && row.base <= address && address < row.end);
  return y < 0 ? null : { x: Math.floor((address - map.rows[y].base) / map.cell), y };
}

function addressAt(event) {
  const row = map.rows[Math.floor(event.offsetY / CELL)], x = Math.floor(event.offsetX / CELL);
  const address = row && row.base + x * map.cell;
  return row && address < row.end ? address : null;
}

function showLegend() {
  const { runs } = map.heap, kinds = isChange() ? CHANGES : STATES;
  const names = Object.keys(kinds).filter(name => isChange() || runs.some(run => run.state === name));
  $("map-legend").replaceChildren(...names.map(name => {
    const [colour, strength, meaning] = kinds[name], swatch = el("i", { class: "swatch" });
    Object.assign(swatch.style, { background: `var(${colour})`, opacity: strength });
    const bytes = shown(sum(runs.filter(run => run.state === name), run => run.bytes), "bytes");
    return el("span", { title: meaning }, swatch, ...isChange() ? [meaning] : [`${name} `, el("b", {}, bytes)]);
  }));
  const oldest = runs.reduce((most, run) => Math.max(most, run.oldest_ms ?? -1), -1);
  say($("map-note"), `A cell is ${shown(map.cell, "bytes")}. ${shown(runs.length, "count")} runs${map.heap.isPart ? ", and more that are not shown" : ""}. `
    + `A purge would give back ${shown(sum(runs, run => run.purgeable), "bytes")}. `
    + `Huge pages were asked for ${shown(sum(runs.filter(run => run.huge && run.state !== "retained"), run => run.bytes), "bytes")}.`
    + (oldest < 0 ? "" : ` The oldest sample in use is ${shown(oldest, "ms")} old.`));
}

function showMap() {
  drawMap();
  if (map.heap) showLegend();
}

$("map-take").addEventListener("click", event => doing(event.currentTarget, async () => {
  const heap = await takeMap();
  map.earlier = map.heap?.arena === heap.arena ? map.heap : null;
  Object.assign(map, { heap, at: null });
  $("map-changes").disabled = !map.earlier;
  if (!map.earlier) $("map-changes").checked = false;
  $("map-shown").hidden = false;
  say($("map-take"), "Take it again");
  showMap();
}));
$("map-changes").addEventListener("change", showMap);

/** Puts the map of a process away that has ended: its addresses tell nothing about another one. */
function forgetMap() {
  Object.assign(map, { heap: null, earlier: null, at: null });
  $("map-changes").checked = false;
  $("map-changes").disabled = true;
  $("map-shown").hidden = true;
  $("map-place").hidden = true;
  say($("map-take"), "Take a map");
}
new ResizeObserver(drawMap).observe($("map-shown"));
$("theme").addEventListener("change", () => requestAnimationFrame(drawMap));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);

/** Tells what lies at an address: the run, and the sites with samples in use in it. Who holds an arrow key asks for many; one is asked for at a time, and the last one is shown. */
async function lookAt(address) {
  map.at = address;
  drawMap();
  if (map.isAsking) return;
  map.isAsking = true;
  try {
    for (let asked = null; map.at !== null && map.at !== asked;) {
      asked = map.at;
      const found = await read(`/map?at=${hex(asked)}`);
      if (map.at === asked) showPlace(asked, found);
    }
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.message, true);
  } finally {
    map.isAsking = false;
  }
}

function showPlace(address, { run, sites, others }) {
  say($("map-title"), hex(address));
  $("map-facts").replaceChildren(...run ? factsOf(run, address) : [el("dt", {}, "No run is here."), el("dd")]);
  const list = sites.map(siteOf);
  if (others.objects) list.push(el("li", {}, samplesOf(others), " at other sites"));
  if (run && !list.length) list.push(el("li", { class: "quiet" }, "No sampled block is in use here. Blocks are sampled with prof:true."));
  $("map-sites").replaceChildren(...list);
  $("map-place").hidden = false;
}

function factsOf(run, address) {
  const arena = now?.arenas.find(arena => arena.index === run.arena);
  const facts = [["State", `${run.state}: ${STATES[run.state][2].split(";")[0]}`], ["Run", `${shown(run.bytes, "bytes")} from ${run.base}`]];
  if (run.arena !== null) facts.push(["Arena", arena ? `${arena.name} (${run.arena})` : `${run.arena}`]);
  if (run.blocks > 1) {
    const number = Math.floor((address - Number(run.base)) / run.block);
    facts.push(["Blocks", `${grouped.format(run.used)} of ${grouped.format(run.blocks)} in use, ${grouped.format(run.block)} bytes each`]);
    if (number < run.blocks) facts.push(["Block here", `number ${number}, at ${hex(Number(run.base) + number * run.block)}`]);
  }
  facts.push(["Huge pages", run.huge ? "asked for" : "not asked for"], ["A purge gives back", shown(run.purgeable, "bytes")],
    ["Without memory", shown(run.absent, "bytes")]);
  if (run.oldest_ms !== null) facts.push(["Oldest sample", shown(run.oldest_ms, "ms")]);
  return facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

const samplesOf = ({ objects, requested, oldest_ms }) =>
  `${grouped.format(objects)} sampled ${objects === 1 ? "block" : "blocks"}, ${shown(requested, "bytes")}, the oldest ${shown(oldest_ms, "ms")}`;

const codePlaceOf = ({ address, module, offset }) => module ? `${module.split("/").at(-1)}+${offset}` : address;

function siteOf(site) {
  const frames = site.stack.map(frame =>
    el("li", { title: frame.module }, el("code", {}, frame.symbol ? `${frame.symbol}  ${codePlaceOf(frame)}` : codePlaceOf(frame))));
  const [inner] = site.stack;
  const where = inner ? `${inner.symbol || codePlaceOf(inner)}: ` : "";
  return el("li", {}, el("details", {}, el("summary", {}, where + samplesOf(site)), el("ol", {}, ...frames)));
}

$("map-picture").addEventListener("click", event => {
  const address = addressAt(event);
  if (address !== null) lookAt(address);
});
$("map-picture").addEventListener("keydown", event => {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -map.width, ArrowDown: map.width }[event.key];
  const first = map.rows.find(row => row)?.base ?? null;
  if (step === undefined || first === null) return;
  event.preventDefault();
  const next = map.at === null ? first : map.at + step * map.cell;
  // Between two parts of the addresses, the nearest row is taken.
  const rows = map.rows.filter(row => row && (step < 0 ? row.base <= next : row.end > next));
  const row = step < 0 ? rows.at(-1) : rows[0];
  if (row) lookAt(Math.min(Math.max(next, row.base), row.base + Math.floor((row.end - 1 - row.base) / map.cell) * map.cell));
});
$("map-find").addEventListener("submit", event => {
  event.preventDefault();
  const text = $("map-address").value.trim(), address = Number(text.startsWith("0x") ? text : `0x${text}`);
  if (Number.isSafeInteger(address)) lookAt(address);
  else tell(`${text} is not an address like 0x7f0000001000`, true);
});

/** The arenas to choose from. */
function showMapArenas() {
  keyed($("map-of"), [{ index: "merged", name: "all arenas" }, ...now.arenas], arena => arena.index, arena => {
    const node = el("option", { value: arena.index });
    return { node, update: arena => say(node, arena.index === "merged" ? arena.name : `${arena.name} (${arena.index})`) };
  });
}
