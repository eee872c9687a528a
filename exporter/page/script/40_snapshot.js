// --- one snapshot ------------------------------------------------------------------------------
// Everything on a screen comes from one answer of /stats, which takes one snapshot.

/** The snapshot that is shown, and one before it: far enough away for rates, near enough to be of now. */
let now = null;
let before = null;
let shots = [];
/** The part that never changes during execution. */
let general = {};

/** Reads an answer of malloc_stats_print. */
function understand(text, at) {
  const all = JSON.parse(text).jemalloc;
  const page = all.arenas?.page ?? general.arenas?.page ?? 4096;
  for (const name of ["version", "config", "opt", "prof", "arenas"]) if (name in all) general[name] = all[name];
  const arenas = [];
  for (const [index, stats] of Object.entries(all["stats.arenas"] ?? {})) {
    if (index === "merged" || index === "destroyed") continue;
    arenas.push(describe(Number(index), stats, page));
  }
  // Those that somebody named first, then those that were made, then the automatic ones.
  const rank = arena => arena.name.startsWith("auto_") ? 2 : arena.name.startsWith("manual_") ? 1 : 0;
  arenas.sort((a, b) => rank(a) - rank(b) || a.index - b.index);
  const merged = all["stats.arenas"].merged ?? all["stats.arenas"][arenas[0].index];
  const uptime = Math.max(...arenas.map(arena => arena.stats.uptime_ns));
  return { at, page, all, stats: all.stats, rss: all.stats.rss, limit: all.limit ?? {}, arenas, merged,
    requests: requested(merged), uptime, begun: at - uptime / 1e6 };
}

/** Whether a snapshot is of another process than the one before: it has run for a shorter time, or began later. */
function isOther(shot, asked) {
  const last = shots.at(-1);
  if (!last) return false;
  // The clocks of two machines differ a little, and more over a long time.
  const drift = 1000 + (asked - last.at) / 100;
  return shot.uptime < last.uptime || asked - shot.uptime / 1e6 > last.begun + drift;
}

const requested = stats => stats.small.nrequests + stats.large.nrequests;

function describe(index, stats, page) {
  return {
    index, stats, name: stats.name ?? `arena ${index}`, threads: stats.nthreads,
    allocated: stats.small.allocated + stats.large.allocated,
    active: stats.pactive * page, dirty: stats.pdirty * page, muzzy: stats.pmuzzy * page,
    purged: (stats.dirty_purged + stats.muzzy_purged) * page,
    resident: stats.resident, requests: requested(stats),
  };
}

/** Shows a snapshot. */
function accept(shot) {
  now = shot;
  before = shots.findLast(old => now.at - old.at >= 700 && now.at - old.at < 20 * pace) ?? null;
  shots = [...shots.slice(-4), shot];
}

/** Forgets what was seen of a process that has ended. */
function forgetShots() {
  shots = [];
  samples.length = 0;
  general = {};
}

/** How fast a counter went since the snapshot before; nothing when there is none. */
function rate(of) {
  if (!before || now.at <= before.at) return null;
  const then = of(before), after = of(now);
  return then == null || after == null || after < then ? null : (after - then) * 1000 / (now.at - before.at);
}

/** The same of one arena. */
const arenaRate = (index, of) => rate(shot => {
  const arena = shot.arenas.find(arena => arena.index === index);
  return arena && of(arena);
});

// --- what was seen since the page was opened ---------------------------------------------------

const SAMPLES = 3700;
const samples = [];

function remember() {
  // A gap stays one: a line over it would be made up.
  const last = samples.at(-1);
  if (last && now.at - last.at > 3 * Math.max(pace, 1000)) samples.push({ at: now.at - 1 });
  if (last && now.at - last.at < 500) samples.pop();
  samples.push({
    at: now.at, process: now.rss.process, resident: now.stats.resident, active: now.stats.active,
    allocated: now.rss.allocated, requests: rate(shot => shot.requests),
  });
  if (samples.length > SAMPLES) samples.splice(0, samples.length - SAMPLES);
}

/** Bytes a minute by least squares over the last minute; nothing before twenty seconds are seen. */
function growth(name) {
  const seen = samples.filter(sample => sample[name] != null && now.at - sample.at <= 60000);
  if (seen.length < 5 || now.at - seen[0].at < 20000) return null;
  const at = sum(seen, sample => sample.at) / seen.length;
  const mean = sum(seen, sample => sample[name]) / seen.length;
  const square = sum(seen, sample => (sample.at - at) ** 2);
  return sum(seen, sample => (sample.at - at) * (sample[name] - mean)) / square * 60000;
}
