// --- the loop ----------------------------------------------------------------------------------
// Once a second while somebody looks, and less often where an answer costs the process much.

let pace = 1000;
let lengths = [];
let timer;
let turn = 0;
let isPaused = false;
let lostSince = null;
const visible = new Set();

/** Leaves out of the answer what no part of the screen shows. */
function letters() {
  const isFirst = !shots.length;
  const isWhole = visible.has("settings") && items.some(item => item.group.open && groupOf(item.key.name) === "stats");
  const needs = (letter, ...sections) => isFirst || isWhole || sections.some(id => visible.has(id)) ? "" : letter;
  return `Jd${isWhole ? "" : "le"}${needs("g", "settings", "decay")}${needs("b", "bins", "locks")}${needs("x", "locks")}`;
}

let isAsking = null;

/** One round; who asks meanwhile waits for the same one. */
function poll() {
  isAsking ??= round().finally(() => { isAsking = null; });
  return isAsking;
}

async function round() {
  // Before the statistics: who waits for this round after a write wants to see what came of it.
  await askRegions();
  const started = performance.now();
  const text = await ask(`/stats?format=json&opts=${letters()}`);
  const at = performance.now();
  const shot = understand(text, at);
  if (isOther(shot, started)) {
    forgetProcess();
    // Once more, with the part that does not change.
    await round();
    return showValues(true);
  }
  accept(shot);
  remember();
  // An answer costs the process time: at most a twentieth of it. One that only waited does not count.
  lengths = [...lengths.slice(-2), at - started];
  pace = Math.min(Math.max(20 * Math.min(...lengths), 1000), 30000);
  render();
}

/** Forgets what is known of a process in whose place another one answers now. */
function forgetProcess() {
  forgetShots();
  forgetMap();
  forgetMark();
  recording = null;
  for (const name of Object.keys(learned)) delete learned[name];
}

function render() {
  say($("version"), `${general.version ?? ""} · ${location.host}`);
  showTiles();
  showWaterfall();
  drawGraphs();
  arenaTable.show(now.arenas);
  showRegions();
  showDecay();
  showBins();
  showMapArenas();
  showProfile();
  showMonitor();
  for (const show of FACTS) show();
  showLocks();
  if (visible.has("settings")) showKeys();
}

async function step() {
  clearTimeout(timer);
  if (isPaused || document.hidden) return;
  let wait = pace;
  try {
    await poll();
    if (turn++ % 5 === 0) await examine();
    found();
  } catch (error) {
    if (!(error instanceof Refused)) console.error(error);
    lost(error);
    wait = 2000;
  }
  clearTimeout(timer);
  if (!isPaused && !document.hidden) timer = setTimeout(step, wait);
}

/** At once, and then by the pace. */
function refresh() {
  clearTimeout(timer);
  return step();
}

function found() {
  lostSince = null;
  document.body.classList.remove("stale");
  $("lamp").dataset.is = "live";
  say($("state"), "Live");
  say($("age"), pace > 1000 ? `every ${seconds(pace / 1000)}` : "");
  mark($("age"), "title", pace > 1000 ? "an answer takes long, so fewer are asked for" : null);
}

function lost(error) {
  if (error.status === 401) askForToken();
  lostSince ??= now?.at ?? performance.now();
  document.body.classList.add("stale");
  $("lamp").dataset.is = "lost";
  say($("state"), error.status ? `Refused: ${error.message}` : "Connection lost");
  say($("age"), now ? `numbers are ${seconds(Math.round((performance.now() - lostSince) / 1000))} old` : "");
}

$("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  say($("pause"), isPaused ? "Go on" : "Pause");
  if (!isPaused) return refresh();
  clearTimeout(timer);
  $("lamp").dataset.is = "";
  say($("state"), "Paused");
  say($("age"), "");
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

const observer = new IntersectionObserver(entries => {
  let isNew = false;
  for (const { target, isIntersecting } of entries) {
    isNew ||= isIntersecting && !visible.has(target.id);
    if (isIntersecting) visible.add(target.id);
    else visible.delete(target.id);
  }
  if (isNew && now && !isPaused) refresh();
}, { rootMargin: "200px" });
for (const section of document.querySelectorAll("main section[id]")) observer.observe(section);

// --- how it looks ------------------------------------------------------------------------------

/** What the browser keeps, where it keeps anything. */
function kept(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name) ?? "";
    localStorage.setItem(name, value);
  } catch { /* A browser that keeps nothing. */ }
  return "";
}

function setTheme(theme) {
  mark(document.documentElement, "data-theme", theme || null);
  $("theme").value = theme;
}
$("theme").addEventListener("change", () => { kept("theme", $("theme").value); setTheme($("theme").value); });
setTheme(kept("theme"));
$("exact").addEventListener("change", () => {
  isExact = $("exact").checked;
  document.body.classList.toggle("exact", isExact);
  if (now) render();
});

step();
