// --- graphs ------------------------------------------------------------------------------------

const LEFT = 62, BOTTOM = 18, HEIGHT = 150;

/** A round number at or above a third of the highest. */
function roundStep(top, kind) {
  const base = kind === "bytes" ? 1024 : 1000;
  let unit = 1;
  while (unit * base <= top / 3) unit *= base;
  const steps = kind === "bytes" ? [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 512]
    : [1, 2, 5, 10, 20, 50, 100, 200, 500];
  return unit * (steps.find(step => step * unit >= top / 3) ?? base);
}

/** A graph of lines over time, with its legend; the arrow keys and the mouse move a cursor. */
class Graph {
  constructor(place, title, kind, lines) {
    Object.assign(this, { kind, lines, title, cursor: null });
    this.values = lines.map(() => el("b"));
    const legend = lines.map((line, i) => el("span", { class: line.look, title: line.help },
      el("span", { class: line.dash ? "mark dashed" : "mark" }), `${line.title} `, this.values[i]));
    this.when = el("span", { class: "quiet" });
    this.svg = el("svg:svg", { tabindex: 0, role: "slider", "aria-label": `${title}: moment`,
      "aria-valuemin": -3600, "aria-valuemax": 0, "aria-valuenow": 0, "aria-valuetext": "now" });
    place.className = "graph";
    place.append(el("div", { class: "legend" }, ...legend, this.when), this.svg);
    this.svg.addEventListener("pointermove", event => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.move(null));
    this.svg.addEventListener("keydown", event => this.key(event));
    this.svg.addEventListener("blur", () => this.move(null));
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** The samples of the time shown. */
  seen() {
    const from = now.at - spanShown() * 1000;
    return samples.filter(sample => sample.at >= from);
  }

  point(event) {
    if (!now) return;
    const box = this.svg.getBoundingClientRect();
    const part = (event.clientX - box.left - LEFT) / (box.width - LEFT);
    this.move(now.at - (1 - Math.min(Math.max(part, 0), 1)) * spanShown() * 1000);
  }

  key(event) {
    if (!now) return;
    const step = spanShown() * 1000 / 60;
    const at = this.cursor ?? now.at;
    const to = { ArrowLeft: at - step, ArrowRight: at + step, Home: this.seen()[0]?.at, End: now.at }[event.key];
    if (to == null) return;
    event.preventDefault();
    this.move(Math.min(Math.max(to, this.seen()[0]?.at ?? to), now.at));
  }

  move(at) {
    this.cursor = at;
    this.draw();
    const ago = Math.round(((at ?? now?.at) - now?.at) / 1000) || 0;
    mark(this.svg, "aria-valuenow", ago);
    const values = this.lines.map((line, i) => `${line.title} ${this.values[i].textContent}`).join(", ");
    mark(this.svg, "aria-valuetext", `${ago ? `${seconds(-ago)} ago` : "now"}: ${values}`);
  }

  draw() {
    if (!now) return;
    const width = this.svg.clientWidth || 300;
    const seen = this.seen();
    const highest = Math.max(1, ...seen.flatMap(sample => this.lines.map(line => sample[line.of] ?? 0)));
    const step = roundStep(highest * 1.02, this.kind);
    const top = Math.ceil(highest * 1.02 / step) * step;
    const length = spanShown() * 1000;
    const x = at => LEFT + (width - LEFT) * (1 - (now.at - at) / length);
    const y = value => (HEIGHT - BOTTOM) * (1 - value / top) + 4;
    const parts = [];
    for (let value = 0; value <= top; value += step) {
      parts.push(el("svg:line", { class: "grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }));
      parts.push(el("svg:text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, KINDS[this.kind][0](value)));
    }
    const ends = [[now.at, "now", "end"], [now.at - length / 2, `−${seconds(length / 2000)}`, "middle"],
      [now.at - length, `−${seconds(length / 1000)}`, "start"]];
    for (const [at, text, anchor] of ends) {
      parts.push(el("svg:text", { x: x(at), y: HEIGHT, "text-anchor": anchor }, text));
    }
    for (const line of this.lines) parts.push(...this.path(line, thinned(seen, line.of, width), x, y));
    const sample = this.cursor == null ? samples.at(-1) : nearest(seen, this.cursor);
    if (this.cursor != null && sample) {
      parts.push(el("svg:line", { class: "cursor", x1: x(sample.at), x2: x(sample.at), y1: 0, y2: y(0) }));
    }
    this.svg.replaceChildren(...parts);
    this.lines.forEach((line, i) => put(this.values[i], sample?.[line.of], this.kind));
    say(this.when, this.cursor != null && sample ? `${seconds(Math.round((now.at - sample.at) / 1000))} ago` : "");
  }

  path(line, points, x, y) {
    let drawn = "", area = "", from = null, last = null;
    const close = () => { if (from != null && last != null) area += `L${x(last)} ${y(0)}L${x(from)} ${y(0)}Z`; };
    for (const sample of points) {
      const value = sample[line.of];
      if (value == null) { close(); from = null; continue; }
      const step = `${from == null ? "M" : "L"}${x(sample.at).toFixed(1)} ${y(value).toFixed(1)}`;
      drawn += step;
      area += step;
      from ??= sample.at;
      last = sample.at;
    }
    close();
    const made = [el("svg:path", { class: line.look, d: drawn, "stroke-dasharray": line.dash })];
    if (line.filled) made.unshift(el("svg:path", { class: `${line.look} area`, d: area }));
    return made;
  }
}

/** At most a sample a pixel: the highest of those that share one, and every gap. */
function thinned(seen, of, width) {
  const each = Math.ceil(seen.length / width);
  if (each <= 1) return seen;
  const kept = [];
  for (let at = 0; at < seen.length; at += each) {
    const some = seen.slice(at, at + each);
    kept.push(some.find(sample => sample[of] == null) ?? some.reduce((a, b) => b[of] > a[of] ? b : a));
  }
  return kept;
}

const nearest = (seen, at) => seen.filter(sample => sample.process != null)
  .reduce((best, sample) => !best || Math.abs(sample.at - at) < Math.abs(best.at - at) ? sample : best, null);

const spanShown = () => Number(document.querySelector("#span :checked").value);

const memoryGraph = new Graph($("memory-graph"), "Memory", "bytes", [
  { of: "process", title: "Process", look: "other", help: "physical memory of the process" },
  { of: "resident", title: "Resident", look: "idle", dash: "6 3", help: "stats.resident: in pages that may have memory, at most" },
  { of: "active", title: "Active", look: "own", dash: "2 2", help: "stats.active: in pages with at least one block" },
  { of: "allocated", title: "Allocated", look: "used", filled: true, help: "stats.allocated: in blocks of the program" },
]);
const rateGraph = new Graph($("rate-graph"), "Allocations per second", "rate", [
  { of: "requests", title: "Allocations", look: "used", filled: true, help: "requests per second, all arenas" },
]);
document.getElementById("span").addEventListener("change", drawGraphs);

function drawGraphs() {
  memoryGraph.draw();
  rateGraph.draw();
}
