// --- numbers for people ------------------------------------------------------------------------

const grouped = new Intl.NumberFormat("en");
let isExact = false;

/** Three digits that count. */
function short(value) {
  const size = Math.abs(value);
  return size >= 100 || Number.isInteger(value) && size < 1000
    ? value.toFixed(0) : value.toFixed(size >= 10 ? 1 : 2);
}

function scaled(value, step, units) {
  let place = 0;
  while (Math.abs(value) >= step * 0.9995 && place < units.length - 1) {
    value /= step;
    place += 1;
  }
  return short(value).replace("-", "−") + units[place];
}

const seconds = value =>
  value >= 172800 ? `${short(value / 86400)} d` : value >= 7200 ? `${short(value / 3600)} h`
    : value >= 120 ? `${short(value / 60)} min` : value >= 1 || value === 0 ? `${short(value)} s`
      : value >= 1e-3 ? `${short(value * 1e3)} ms` : `${short(value * 1e6)} µs`;

/** How a kind of number is written: for people, and exactly. */
const KINDS = {
  bytes: [value => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]),
    value => `${grouped.format(value)} bytes`],
  count: [value => scaled(value, 1000, ["", " k", " M", " G", " T"]), value => grouped.format(value)],
  rate: [value => `${scaled(value, 1000, ["", " k", " M", " G"])}/s`,
    value => `${grouped.format(Math.round(value))} per second`],
  percent: [value => `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1).replace("-", "−")} %`,
    value => `${value.toFixed(3)} %`],
  ns: [value => seconds(value / 1e9), value => `${grouped.format(value)} ns`],
  ms: [value => value < 0 ? "for ever" : seconds(value / 1e3), value => `${grouped.format(value)} ms`],
};

/** A number as it is shown now; nothing known is a dash. */
function shown(value, kind) {
  return value == null || Number.isNaN(value) ? "–" : KINDS[kind][isExact ? 1 : 0](value);
}

/** Puts a number into an element; the exact one shows when the mouse rests on it. */
function put(node, value, kind) {
  say(node, shown(value, kind));
  mark(node, "title", value == null ? null : KINDS[kind][1](value));
}

const percent = (part, whole) => whole > 0 ? part * 100 / whole : null;
const sum = (items, of) => items.reduce((all, item) => all + of(item), 0);
