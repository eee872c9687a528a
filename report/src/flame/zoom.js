// A click on a frame makes it as wide as the picture; a click on the first one shows everything.
// With the keyboard: arrow keys walk over the frames, Enter enlarges, Escape shows everything.
const width = 1200 - 20, character = 7.3;
const frames = Array.from(document.querySelectorAll("g.frame"));
const all = frames.map((frame) => ({
  frame,
  box: frame.querySelector("rect"),
  text: frame.querySelector("text"),
  name: frame.dataset.name,
  from: Number(frame.dataset.from),
  share: Number(frame.dataset.share),
  level: Number(frame.dataset.level),
}));
const contains = (outer, inner) => outer.from <= inner.from + 1e-9 &&
  outer.from + outer.share >= inner.from + inner.share - 1e-9;
function zoom(to) {
  for (const it of all) {
    const isCaller = it.level < to.level && contains(it, to);
    const isInside = it.level >= to.level && contains(to, it);
    it.frame.style.display = isCaller || isInside ? "" : "none";
    it.frame.style.opacity = isCaller ? "0.6" : "";
    const from = isCaller ? 0 : (it.from - to.from) / to.share * width;
    const wide = isCaller ? width : it.share / to.share * width;
    it.box.setAttribute("x", 10 + from);
    it.box.setAttribute("width", Math.max(wide - 0.5, 0.1));
    it.text.setAttribute("x", 13 + from);
    const room = Math.floor((wide - 6) / character);
    it.text.textContent = room < 3 ? "" :
      it.name.length <= room ? it.name : it.name.slice(0, room - 1) + "…";
  }
}
// The frame that Tab leads to. Only one is, because of thousands the browser takes half a minute.
let stop = all[0];
function go(to) {
  stop.frame.removeAttribute("tabindex");
  stop = to;
  stop.frame.setAttribute("role", "button");
  stop.frame.setAttribute("tabindex", "0");
}
// The frame that an arrow key leads to: down to the widest callee, up to the caller, along a row.
function besides(it, key) {
  const seen = all.filter((other) => other.frame.style.display !== "none");
  const up = key === "ArrowUp" ? -1 : key === "ArrowDown" ? 1 : 0;
  const row = seen.filter((other) => other.level === it.level + up);
  if (up < 0) return row.find((other) => contains(other, it));
  if (up > 0) {
    return row.filter((other) => contains(it, other)).sort((a, b) => b.share - a.share)[0];
  }
  row.sort((a, b) => a.from - b.from);
  return row[row.indexOf(it) + (key === "ArrowRight" ? 1 : -1)];
}
document.addEventListener("keydown", (event) => {
  if (document.activeElement !== stop.frame) return;
  if (event.key === "Enter" || event.key === " ") zoom(stop);
  else if (event.key === "Escape") zoom(all[0]);
  else if (/^Arrow/.test(event.key)) {
    const next = besides(stop, event.key);
    if (next) {
      go(next);
      next.frame.focus();
    }
  } else return;
  event.preventDefault();
});
for (const it of all) {
  it.frame.addEventListener("click", () => {
    go(it);
    zoom(it);
  });
}
go(stop);
