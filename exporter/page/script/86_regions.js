// --- regions of vmalloc(3) ---------------------------------------------------------------------
// Most programs have none: then there is no section, and the question is asked seldom.

const REGIONS = [$("regions"), $("regions-link")];
let regions = [];
let regionTurn = 0;

const regionCell = {
  title: "Region", of: region => region.name.toLowerCase(),
  cell: () => {
    const name = el("span"), index = el("span", { class: "index" });
    return { node: [name, " ", index], update: region => { say(name, region.name); say(index, region.index); mark(name, "title", region.file); } };
  },
};

/** A text, which is put as it is. */
const textCell = of => () => {
  const node = el("span");
  return { node, update: region => say(node, of(region)) };
};

const addressOf = region => `0x${region.address.toString(16)}`;
const inUse = region => percent(region.s_busy, region.extent);
/** The free bytes outside the largest free block; blocks of a pool are all alike, and Last has no list. */
const fragmented = region => ["pool", "last"].includes(region.method) ? null : percent(region.s_free - region.m_free, region.s_free);

const regionTable = new Table($("region-table"), "Regions", [
  regionCell,
  { title: "Method", of: region => region.method, cell: textCell(region => region.method), help: "how blocks are cut" },
  { title: "Address", of: region => region.address, wide: true, cell: textCell(addressOf), help: "of the handle" },
  { title: "Blocks", kind: "count", of: region => region.n_busy, wide: true, help: "blocks that the program has" },
  { title: "Bytes", kind: "bytes", of: region => region.s_busy, help: "in these" },
  { title: "Free", kind: "bytes", of: region => region.s_free, help: "in free blocks" },
  { title: "Extent", kind: "bytes", of: region => region.extent, help: "in segments, the region's own words among it" },
  { title: "In use", kind: "percent", of: inUse, wide: true, help: "bytes of blocks, of the extent", cell: () => shareCell(inUse) },
  { title: "Segments", kind: "count", of: region => region.n_seg, wide: true },
  { title: "Fragmented", kind: "percent", of: fragmented, help: "free bytes outside the largest free block, of all free bytes" },
], region => `${region.index} ${region.address}`);

/** Asks for the regions: each time while they are seen, else each fifth time. */
async function askRegions() {
  if (!visible.has("regions") && regionTurn++ % 5 !== 0) return;
  const all = await read("/ctl/vm.region");
  regions = Object.entries(all).filter(([, region]) => region.name != null)
    .map(([index, region]) => ({ index, ...region }));
}

function showRegions() {
  for (const part of REGIONS) part.hidden = regions.length === 0;
  regionTable.show(regions);
}
