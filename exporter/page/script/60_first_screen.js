// --- tiles: how much, and is it growing --------------------------------------------------------

const tiles = {};

function tile(name, title, help) {
  const big = el("dd", { class: "big" }), note = el("dd", { class: "quiet" }), more = el("dd");
  $("tiles").append(el("div", { class: "tile", title: help }, el("dt", {}, title), big, note, more));
  tiles[name] = { big, note, more };
}
tile("process", "Process (RSS)", "physical memory of the whole process (RSS)");
tile("allocated", "Allocated", "in blocks that the program has, rounded up to their classes");
tile("overhead", "Overhead", "what the allocator holds in physical memory beyond the program's blocks");
tile("rate", "Allocations", "requests per second, all arenas");

/** Growth in words: below half a per cent or a megabyte a minute there is none. */
function grows(name, value) {
  const minute = growth(name);
  if (minute == null) return ["watching for growth", false];
  if (Math.abs(minute) < Math.max(value * 0.005, 1 << 20)) return ["steady", false];
  return [`${minute > 0 ? "▲ +" : "▼ −"}${KINDS.bytes[0](Math.abs(minute))} a minute`, minute > 0];
}

function showTiles() {
  const { rss, limit } = now;
  for (const name of ["process", "allocated"]) {
    const [text, isUp] = grows(name, rss[name]);
    put(tiles[name].big, rss[name], "bytes");
    say(tiles[name].note, text);
    tiles[name].note.classList.toggle("grows", isUp);
  }
  const overhead = Math.max(rss.ours - rss.allocated, 0);
  put(tiles.overhead.big, overhead, "bytes");
  const [largest] = LINES.filter(line => line.isHeld).sort((a, b) => rss[b.of] - rss[a.of]);
  say(tiles.overhead.note, `${shown(percent(overhead, rss.ours) ?? 0, "percent")} of ours; most: ${largest.title.toLowerCase()}`);
  const speed = rate(shot => shot.requests);
  put(tiles.rate.big, speed, "rate");
  say(tiles.rate.note, `${shown(now.requests, "count")} in ${seconds(Math.round(now.uptime / 1e9))}`);
  showLimit(limit);
  document.title = `${KINDS.bytes[0](rss.process)} · lumalloc`;
}

/** How near a limit is, where one is set. */
function showLimit(limit) {
  const name = limit.hard ? "hard" : limit.soft ? "soft" : null;
  const place = tiles.process.more;
  if (!name) return place.replaceChildren();
  const full = percent(limit.held, limit[name]);
  if (!place.firstChild) place.append(el("meter", { min: 0, max: 100, high: 90, optimum: 0 }), el("span", { class: "quiet" }));
  place.firstChild.value = full;
  mark(place.firstChild, "aria-label", `held, of limit.${name}`);
  say(place.lastChild, `${shown(full, "percent")} of limit.${name}, ${shown(limit[name], "bytes")}`);
}

// --- the waterfall: where it is ----------------------------------------------------------------

const LINES = [
  { of: "allocated", title: "Blocks in use", look: "used", help: "in blocks that the program has, rounded up to their classes" },
  { of: "slab_free", title: "Free in slabs", look: "idle", isHeld: true, help: "in slabs that other blocks hold: free blocks, and the rest at their ends" },
  { of: "remote", title: "Freed elsewhere", look: "idle", isHeld: true, help: "in blocks that other threads freed, and that their slabs have yet to take in" },
  { of: "thread_caches", title: "Thread caches", look: "idle", isHeld: true, help: "in blocks that threads keep for their next requests" },
  { of: "dirty", title: "Dirty pages", look: "idle", isHeld: true, help: "unused pages that have memory until decay, or a purge, gives them back" },
  { of: "muzzy", title: "Muzzy pages", look: "idle", isHeld: true, help: "unused pages given back lazily: the system takes them when it runs short" },
  { of: "metadata", title: "Metadata", look: "own", isHeld: true, help: "the allocator's own records" },
  { of: "untouched", title: "Never touched", look: "credit", help: "pages among all these that have no memory, as the system says; they count back" },
  { of: "ours", title: "lumalloc", look: "total", isSum: true, help: "in physical memory for this allocator: the sum of the lines above" },
  { of: "not_ours", title: "Not ours", look: "other", help: "the rest of the process: code, stacks, mapped files, other allocators" },
  { of: "process", title: "Process (RSS)", look: "total", isSum: true, help: "in physical memory for the process" },
];

$("meanings").append(...LINES.flatMap(line => [el("dt", {}, line.title), el("dd", {}, `${line.help}. `, el("code", {}, `stats.rss.${line.of}`))]));

function waterfallRow(line) {
  const bar = el("i", { class: line.look }), size = el("td"), share = el("td");
  const node = el("tr", { class: line.isSum ? "sum" : false },
    el("th", { scope: "row", title: line.help }, line.title),
    el("td", { "aria-hidden": true }, el("div", { class: "lane" }, bar)), size, share);
  const update = ({ value, from, top }) => {
    bar.style.left = `${Math.min(from, from + value) / top * 100}%`;
    bar.style.width = `${Math.abs(value) / top * 100}%`;
    bar.hidden = value === 0;
    node.classList.toggle("none", value === 0);
    put(size, value, "bytes");
    put(share, percent(value, now.rss.process), "percent");
  };
  return { node, update };
}

function showWaterfall() {
  let at = 0, top = now.rss.process;
  const rows = LINES.map(line => {
    const value = now.rss[line.of];
    const from = line.isSum ? 0 : at;
    if (!line.isSum) at += value;
    top = Math.max(top, at, from);
    return { line, value, from };
  });
  for (const row of rows) row.top = top || 1;
  keyed($("waterfall").tBodies[0], rows, row => row.line.of, row => waterfallRow(row.line));
}
