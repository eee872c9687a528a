// A click on a frame makes it as wide as the picture; a click on the first one shows everything.
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
function zoom(to) {
  for (const it of all) {
    const isCaller = it.level < to.level && it.from <= to.from + 1e-9 &&
      it.from + it.share >= to.from + to.share - 1e-9;
    const isInside = it.level >= to.level && it.from >= to.from - 1e-9 &&
      it.from + it.share <= to.from + to.share + 1e-9;
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
for (const it of all) it.frame.addEventListener("click", () => zoom(it));
