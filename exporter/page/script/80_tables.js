// --- tables ------------------------------------------------------------------------------------

/**
 * A table of numbers. Columns: {title, of: row => value, kind, help, wide, cell: row => {node,
 * update}}. The first column names the row. A click on a heading sorts; while the mouse or the
 * focus is in the table, rows stay where they are.
 */
class Table {
  constructor(place, caption, columns, key) {
    Object.assign(this, { columns, key, sorted: null, order: new Map() });
    this.body = el("tbody");
    this.heads = columns.map(column => this.head(column));
    this.table = el("table", { class: "numbers" }, el("caption", { class: "spoken" }, caption),
      el("thead", {}, el("tr", {}, ...this.heads)), this.body);
    place.className = "scroll";
    place.append(this.table);
    // Where it is wider than the screen, the keyboard must be able to move it.
    new ResizeObserver(() => {
      const isWide = place.scrollWidth > place.clientWidth;
      mark(place, "tabindex", isWide ? 0 : null);
      mark(place, "role", isWide ? "region" : null);
      mark(place, "aria-label", isWide ? caption : null);
    }).observe(this.table);
  }

  head(column) {
    const attributes = { scope: "col", class: column.wide ? "wide" : false, title: column.help };
    if (!column.of) return el("th", attributes, column.title);
    return el("th", attributes, el("button", { type: "button", onclick: () => this.sort(column) }, column.title));
  }

  sort(column) {
    const isSame = this.sorted === column;
    this.direction = isSame ? -this.direction : column.kind ? -1 : 1;
    this.sorted = column;
    this.columns.forEach((one, i) => mark(this.heads[i], "aria-sort",
      one === column ? (this.direction < 0 ? "descending" : "ascending") : null));
    this.isForced = true;
    this.show(this.rows);
  }

  show(rows) {
    this.rows = rows;
    keyed(this.body, this.arranged(rows), this.key, row => this.row(row));
  }

  arranged(rows) {
    if (!this.sorted) return rows;
    const isHeld = !this.isForced && this.table.matches(":hover, :focus-within");
    this.isForced = false;
    const { of } = this.sorted;
    const known = row => this.order.get(this.key(row)) ?? Infinity;
    const compare = isHeld ? (a, b) => known(a) - known(b)
      : (a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) * this.direction;
    const arranged = [...rows].sort(compare);
    this.order = new Map(arranged.map((row, place) => [this.key(row), place]));
    return arranged;
  }

  row(item) {
    const cells = this.columns.map((column, place) => {
      const node = el(place === 0 ? "th" : "td", { scope: place === 0 ? "row" : false, class: column.wide ? "wide" : false });
      if (column.cell) {
        const inside = column.cell(item);
        node.append(...[inside.node].flat());
        return { node, update: inside.update };
      }
      const update = row => {
        const value = column.of(row);
        put(node, value, column.kind);
        node.classList.toggle("zero", !value);
      };
      return { node, update };
    });
    return {
      node: el("tr", {}, ...cells.map(cell => cell.node)),
      update: row => cells.forEach(cell => cell.update(row)),
    };
  }
}

/** A bar with its per cent; below half it has another colour. */
function shareCell(of) {
  const bar = el("i"), text = el("span"), share = el("span", { class: "share wide", "aria-hidden": true }, bar);
  const update = row => {
    const value = of(row);
    share.hidden = value == null;
    bar.style.width = `${Math.min(value ?? 0, 100)}%`;
    share.classList.toggle("low", value < 50);
    put(text, value, "percent");
  };
  return { node: [share, text], update };
}

/** The name of an arena, and its index. */
const arenaCell = {
  title: "Arena", of: arena => arena.name.toLowerCase(),
  cell: () => {
    const name = el("span"), index = el("span", { class: "index" });
    return { node: [name, " ", index], update: arena => { say(name, arena.name); say(index, arena.index == null ? "" : `${arena.index}`); } };
  },
};

// --- arenas ------------------------------------------------------------------------------------

const arenaTable = new Table($("arena-table"), "Arenas", [
  arenaCell,
  { title: "Threads", kind: "count", of: arena => arena.threads, help: "threads whose home the arena is" },
  { title: "Allocated", kind: "bytes", of: arena => arena.allocated, help: "in blocks of the program" },
  { title: "Active", kind: "bytes", of: arena => arena.active, wide: true, help: "in pages of slabs and large blocks" },
  { title: "In use", kind: "percent", of: arena => percent(arena.allocated, arena.active), wide: true, help: "allocated, of active",
    cell: () => shareCell(arena => percent(arena.allocated, arena.active)) },
  { title: "Dirty", kind: "bytes", of: arena => arena.dirty, help: "unused pages that have memory" },
  { title: "Muzzy", kind: "bytes", of: arena => arena.muzzy, wide: true, help: "unused pages, memory perhaps gone" },
  { title: "Resident", kind: "bytes", of: arena => arena.resident, help: "in physical memory, at most" },
  { title: "Allocations", kind: "rate", of: arena => arenaRate(arena.index, one => one.requests), wide: true, help: "requests per second" },
], arena => arena.index);

// --- bins --------------------------------------------------------------------------------------

const usedOf = bin => percent(bin.used, bin.slabs * bin.blocks);
const binTable = new Table($("bin-table"), "Bins", [
  { title: "Class", of: bin => bin.size, kind: "bytes", help: "bytes of a block",
    cell: () => { const node = el("span"); return { node, update: bin => say(node, grouped.format(bin.size)) }; } },
  { title: "Blocks", kind: "count", of: bin => bin.used, help: "blocks that the program has" },
  { title: "Bytes", kind: "bytes", of: bin => bin.used * bin.size, wide: true, help: "in these" },
  { title: "Cached", kind: "count", of: bin => bin.cached, wide: true, help: "blocks in thread caches" },
  { title: "Slabs", kind: "count", of: bin => bin.slabs },
  { title: "Utilisation", kind: "percent", of: usedOf, help: "blocks in use, of those that the slabs hold", cell: () => shareCell(usedOf) },
  { title: "Not in use", kind: "bytes", of: bin => bin.idle, help: "bytes of slabs in blocks that the program does not have" },
  { title: "Allocations", kind: "rate", of: bin => bin.rate, wide: true, help: "requests per second" },
], bin => bin.size);

function binsOf(shot, of) {
  return (of === "merged" ? shot.merged : shot.all["stats.arenas"][of])?.bins;
}

function showBins() {
  const select = $("bins-of");
  keyed(select, [{ index: "merged", name: "all arenas" }, ...now.arenas], arena => arena.index, arena => {
    const node = el("option", { value: arena.index });
    return { node, update: arena => say(node, arena.index === "merged" ? arena.name : `${arena.name} (${arena.index})`) };
  });
  const bins = binsOf(now, select.value), classes = general.arenas?.bin;
  if (!bins || !classes) return;
  const old = before && binsOf(before, select.value);
  const all = bins.map((bin, place) => {
    const { size, nregs, slab_size } = classes[place];
    const cached = bin.cached ?? 0, used = Math.max(bin.curregs - cached, 0);
    return { size, used, cached, blocks: nregs, slabs: bin.curslabs, idle: Math.max(bin.curslabs * slab_size - used * size, 0),
      rate: old ? Math.max(bin.nrequests - old[place].nrequests, 0) * 1000 / (now.at - before.at) : null };
  });
  const some = all.filter(bin => bin.slabs);
  say($("bins-note"), `${some.length} of ${all.length} classes have slabs; ${shown(sum(some, bin => bin.idle), "bytes")} of them are not in use.`);
  binTable.show(some);
}
$("bins-of").addEventListener("change", () => { if (now) { showBins(); refresh(); } });

// --- thread caches -----------------------------------------------------------------------------

const FACTS = [
  ["Threads with a cache", "count", () => now.stats.thread_caches.count, "stats.thread_caches.count"],
  ["In caches", "bytes", () => now.stats.thread_caches.bytes, "stats.thread_caches.bytes"],
  ["A thread, on average", "bytes", () => now.stats.thread_caches.count ? now.stats.thread_caches.bytes / now.stats.thread_caches.count : null],
  ["Of these, in large blocks kept", "bytes", () => now.stats.thread_caches.kept_bytes, "stats.thread_caches.kept_bytes"],
  ["Served by caches", "rate", () => rate(shot => shot.stats.thread_caches.requests), "stats.thread_caches.requests"],
  ["Without a refill", "percent", () => {
    const served = now.stats.thread_caches.requests, { refills_owned, refills_shared } = now.stats.work;
    return served ? Math.max(0, 100 - (refills_owned + refills_shared) * 100 / served) : null;
  }, "requests that needed no refill of the cache, since the process started"],
  ["Batches returned to slabs", "rate", () => rate(shot => shot.stats.work.flushes), "stats.work.flushes"],
  ["Freed into other threads' slabs", "rate", () => rate(shot => shot.stats.remote.frees), "stats.remote.frees"],
  ["System calls", "rate", () => rate(shot => sum(Object.entries(shot.stats.work), ([name, count]) => name.startsWith("call_") ? count : 0)), "stats.work.call_*"],
].map(([title, kind, of, help]) => {
  const value = el("dd");
  $("cache-facts").append(el("dt", { title: help }, title), value);
  return () => put(value, of(), kind);
});

// --- locks -------------------------------------------------------------------------------------

/** Counters of several locks as those of one. */
const together = mutexes => ({
  num_ops: sum(mutexes, one => one.num_ops), num_wait: sum(mutexes, one => one.num_wait),
  total_wait_time: sum(mutexes, one => one.total_wait_time), max_wait_time: Math.max(0, ...mutexes.map(one => one.max_wait_time)),
});
const LOCKS = {
  "Bins": shot => shot.merged.bins?.[0]?.mutex && together(shot.merged.bins.map(bin => bin.mutex)),
  "Pages": shot => shot.merged.mutexes?.extents_dirty,
  "Caches of threads": shot => shot.merged.mutexes?.tcache_list,
  "Allocator's records": shot => shot.merged.mutexes?.base,
  "List of caches": shot => shot.stats.mutexes?.thread_caches,
  "Making of arenas": shot => shot.stats.mutexes?.arenas,
  "Decay pass": shot => shot.stats.mutexes?.max_per_bg_thd,
  "Namespace": shot => shot.stats.mutexes?.ctl,
};
const lockTable = new Table($("lock-table"), "Locks", [
  { title: "Lock", of: lock => lock.name, cell: lock => ({ node: lock.name, update() {} }) },
  { title: "Taken", kind: "rate", of: lock => lock.rate, wide: true },
  { title: "Slept", kind: "count", of: lock => lock.num_wait, help: "times that a thread slept for it" },
  { title: "Of taken", kind: "percent", of: lock => percent(lock.num_wait, lock.num_ops), wide: true },
  { title: "Slept in all", kind: "ns", of: lock => lock.total_wait_time },
  { title: "Longest", kind: "ns", of: lock => lock.max_wait_time, wide: true },
], lock => lock.name);

function showLocks() {
  if (!now.stats.mutexes) return;
  const locks = Object.entries(LOCKS).map(([name, of]) => ({ name, ...of(now), rate: rate(shot => of(shot)?.num_ops) }));
  lockTable.show(locks.filter(lock => lock.num_ops != null));
}
$("locks-reset").addEventListener("click", event =>
  act("stats.mutexes.reset", null, "The statistics of all locks are zero.", event.currentTarget));
