//! Identities that hold for every snapshot of one epoch, each with a name.
//!
//! A snapshot is the JSON of `malloc_stats_print` (`/stats?format=json` of the exporter).
//! Collecting it from a running process takes some time. Numbers that are counted at different
//! moments, such as blocks in slabs and the slabs themselves, need not fit together and are not
//! checked here.

use serde_json::Value as Json;

/// How the two sides of a fact compare.
#[derive(Clone, Copy)]
enum Order {
    Equal,
    AtMost,
}

use Order::{AtMost, Equal};

/// A fact: its name, the comparison, and the function that computes both sides.
struct Fact<Of: ?Sized>(&'static str, Order, fn(&Of) -> (i128, i128));

impl<Of: ?Sized> Fact<Of> {
    /// Describes the violation if the fact does not hold.
    fn wrong(&self, of: &Of) -> Option<String> {
        let Fact(name, order, sides) = self;
        let (left, right) = sides(of);
        let holds = match order {
            Equal => left == right,
            AtMost => left <= right,
        };
        (!holds).then(|| format!("{name}: {left} and {right}"))
    }
}

/// Facts about the process.
const WHOLE: [Fact<Snapshot>; 14] = [
    Fact("allocated <= active", AtMost, |s| (s.total("allocated"), s.total("active"))),
    Fact("resident = active + dirty + muzzy + metadata", Equal, |s| {
        (s.total("resident"), s.with_memory())
    }),
    Fact("mapped = active + dirty + muzzy + metadata", Equal, |s| {
        (s.total("mapped"), s.with_memory())
    }),
    Fact("holes <= retained", AtMost, |s| (s.total("holes"), s.total("retained"))),
    Fact("metadata of runs and map <= metadata", AtMost, |s| {
        (s.total("metadata_edata") + s.total("metadata_rtree"), s.total("metadata"))
    }),
    Fact("rss.allocated = allocated", Equal, |s| (s.rss("allocated"), s.total("allocated"))),
    Fact("rss.metadata = metadata", Equal, |s| (s.rss("metadata"), s.total("metadata"))),
    Fact("allocated + thread_caches + slab_free + remote = active or more", Equal, |s| {
        let blocks = s.rss("allocated") + s.rss("thread_caches");
        (blocks + s.rss("slab_free") + s.rss("remote"), s.total("active").max(blocks))
    }),
    Fact("the lines of rss add up to ours", Equal, |s| {
        let lines = ["allocated", "slab_free", "remote", "thread_caches", "dirty", "muzzy"];
        let lines: i128 = lines.map(|line| s.rss(line)).iter().sum();
        (lines + s.rss("metadata") + s.rss("untouched"), s.rss("ours"))
    }),
    Fact("ours + not_ours = process", Equal, |s| {
        (s.rss("ours") + s.rss("not_ours"), s.rss("process"))
    }),
    Fact("thread_caches.bytes = rss.thread_caches", Equal, |s| {
        (of(&s.stats["thread_caches"], "bytes"), s.rss("thread_caches"))
    }),
    Fact("thread_caches.kept_bytes <= thread_caches.bytes", AtMost, |s| {
        (of(&s.stats["thread_caches"], "kept_bytes"), s.rss("thread_caches"))
    }),
    Fact("unused runs without memory + holes = retained", Equal, |s| {
        let runs = sum(&s.merged()["extents"], "retained_bytes");
        (runs + s.total("holes"), s.total("retained"))
    }),
    Fact("vm.stat: s_busy + s_free = extent", Equal, |s| {
        (s.vm("s_busy") + s.vm("s_free"), s.vm("extent"))
    }),
];

/// A number of the process and the same number of an arena. The latter adds up over all arenas.
struct Sum(&'static str, fn(&Snapshot) -> i128, fn(&Json) -> i128);

const SUMS: [Sum; 8] = [
    Sum("allocated", |s| s.total("allocated"), allocated),
    Sum("active", |s| s.total("active"), active),
    Sum("dirty", |s| s.rss("dirty"), |arena| pages(arena, "pdirty")),
    Sum("muzzy", |s| s.rss("muzzy"), |arena| pages(arena, "pmuzzy")),
    Sum("retained", |s| s.total("retained"), |arena| of(arena, "retained")),
    Sum("mapped", |s| s.total("mapped"), |arena| of(arena, "mapped")),
    Sum("metadata", |s| s.total("metadata"), |arena| of(arena, "base")),
    Sum("cached", |s| s.rss("thread_caches"), |arena| of(arena, "tcache_bytes")),
];

/// Facts about an arena, and about all arenas merged.
const OF_ARENA: [Fact<Json>; 8] = [
    Fact("allocated <= active", AtMost, |arena| (allocated(arena), active(arena))),
    Fact("mapped = pages with memory + records", Equal, |arena| {
        let unused = pages(arena, "pdirty") + pages(arena, "pmuzzy");
        (of(arena, "mapped"), active(arena) + unused + of(arena, "base"))
    }),
    Fact("resident = mapped", Equal, |arena| (of(arena, "resident"), of(arena, "mapped"))),
    Fact("unused runs with memory <= dirty pages", AtMost, |arena| {
        (sum(&arena["extents"], "dirty_bytes"), pages(arena, "pdirty"))
    }),
    Fact("small.nmalloc = sum of bins", Equal, |arena| {
        (of(&arena["small"], "nmalloc"), sum(&arena["bins"], "nmalloc"))
    }),
    Fact("small.ndalloc = sum of bins", Equal, |arena| {
        (of(&arena["small"], "ndalloc"), sum(&arena["bins"], "ndalloc"))
    }),
    Fact("large.nmalloc = sum of classes", Equal, |arena| {
        (of(&arena["large"], "nmalloc"), sum(&arena["lextents"], "nmalloc"))
    }),
    Fact("large.ndalloc = sum of classes", Equal, |arena| {
        (of(&arena["large"], "ndalloc"), sum(&arena["lextents"], "ndalloc"))
    }),
];

/// Facts about a bin.
const OF_BIN: [Fact<Json>; 4] = [
    Fact("nmalloc - ndalloc = curregs", Equal, |bin| {
        (of(bin, "nmalloc") - of(bin, "ndalloc"), of(bin, "curregs"))
    }),
    Fact("cached <= curregs", AtMost, |bin| (of(bin, "cached"), of(bin, "curregs"))),
    Fact("nonfull_slabs <= curslabs", AtMost, |bin| {
        (of(bin, "nonfull_slabs"), of(bin, "curslabs"))
    }),
    Fact("curslabs <= nslabs", AtMost, |bin| (of(bin, "curslabs"), of(bin, "nslabs"))),
];

/// Facts about a class of large blocks.
const OF_LARGE: [Fact<Json>; 1] = [Fact("nmalloc - ndalloc = curlextents", Equal, |class| {
    (of(class, "nmalloc") - of(class, "ndalloc"), of(class, "curlextents"))
})];

/// The counts that never decrease in the sum over all arenas.
const COUNTS: [&str; 3] = ["nmalloc", "ndalloc", "nrequests"];

const PAGE: i128 = 4096;

/// Stands for a missing number; it equals no other number.
const MISSING: i128 = -(1 << 80);

fn of(object: &Json, name: &str) -> i128 {
    let value = &object[name];
    let signed = value.as_i64().map(i128::from);
    signed.or(value.as_u64().map(i128::from)).unwrap_or(MISSING)
}

fn pages(arena: &Json, name: &str) -> i128 {
    of(arena, name) * PAGE
}

fn active(arena: &Json) -> i128 {
    pages(arena, "pactive")
}

fn allocated(arena: &Json) -> i128 {
    of(&arena["small"], "allocated") + of(&arena["large"], "allocated")
}

fn sum(classes: &Json, name: &str) -> i128 {
    classes.as_array().map_or(MISSING, |all| all.iter().map(|one| of(one, name)).sum())
}

fn entries(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// One snapshot.
struct Snapshot {
    stats: Json,
    vm: Json,
    arenas: Json,
}

impl Snapshot {
    fn total(&self, name: &str) -> i128 {
        of(&self.stats, name)
    }

    fn rss(&self, name: &str) -> i128 {
        of(&self.stats["rss"], name)
    }

    fn vm(&self, name: &str) -> i128 {
        of(&self.vm["stat"], name)
    }

    fn with_memory(&self) -> i128 {
        self.total("active") + self.rss("dirty") + self.rss("muzzy") + self.total("metadata")
    }

    /// The arenas that exist.
    fn single(&self) -> impl Iterator<Item = &Json> {
        let arenas = self.arenas.as_object().into_iter().flatten();
        let single = arenas.filter(|(name, _)| name.bytes().all(|c| c.is_ascii_digit()));
        single.map(|(_, arena)| arena)
    }

    /// All arenas merged. They are only printed if there is more than one arena.
    fn merged(&self) -> &Json {
        self.arenas.get("merged").unwrap_or(&self.arenas["0"])
    }

    /// The counts that never decrease.
    fn counts(&self) -> Vec<i128> {
        let merged = self.merged();
        let classes = entries(&merged["bins"]).chain(entries(&merged["lextents"]));
        classes.flat_map(|class| COUNTS.map(|name| of(class, name))).collect()
    }
}

/// Checks the snapshots of one process, one after another.
#[derive(Default)]
pub struct Watch {
    arenas_end: bool,
    counts: Vec<i128>,
    checked: u64,
}

impl Watch {
    /// For a process that destroys arenas: only the merged arenas are checked. An arena destroyed
    /// before the process prints is not printed; one destroyed while the statistics are collected
    /// has lost its counts but not its pages.
    pub fn where_arenas_end() -> Watch {
        Watch { arenas_end: true, ..Watch::default() }
    }

    /// The number of identities checked so far.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// Checks all identities. The error names those that do not hold, with both sides.
    pub fn check(&mut self, json: &str) -> Result<(), String> {
        let mut parsed: Json =
            serde_json::from_str(json).map_err(|error| format!("JSON: {error}"))?;
        let mut part = |name| parsed["jemalloc"][name].take();
        let snapshot =
            Snapshot { stats: part("stats"), vm: part("vm"), arenas: part("stats.arenas") };
        let mut wrong = self.apply("process", &WHOLE, &snapshot);
        for Sum(name, whole, part) in SUMS {
            let whole = whole(&snapshot);
            wrong.extend(self.equal(name, "all arenas merged", part(snapshot.merged()), whole));
            if !self.arenas_end {
                let sum = snapshot.single().map(part).sum();
                wrong.extend(self.equal(name, "the sum of all arenas", sum, whole));
            }
        }
        let arenas_end = self.arenas_end;
        let arenas = snapshot.arenas.as_object().into_iter().flatten();
        for (name, arena) in arenas.filter(|(name, _)| !arenas_end || *name == "merged") {
            wrong.extend(self.apply(&format!("arena {name}"), &OF_ARENA, arena));
            for (class, bin) in entries(&arena["bins"]).enumerate() {
                wrong.extend(self.apply(&format!("arena {name}, bin {class}"), &OF_BIN, bin));
            }
            for (class, large) in entries(&arena["lextents"]).enumerate() {
                wrong.extend(self.apply(&format!("arena {name}, large {class}"), &OF_LARGE, large));
            }
        }
        let counts = snapshot.counts();
        for (place, (before, now)) in self.counts.iter().zip(&counts).enumerate() {
            self.checked += 1;
            if now < before {
                let (class, name) = (place / COUNTS.len(), COUNTS[place % COUNTS.len()]);
                wrong.push(format!("class {class} of all: {name} went from {before} to {now}"));
            }
        }
        self.counts = counts;
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn equal(&mut self, name: &str, of: &str, part: i128, whole: i128) -> Option<String> {
        self.checked += 1;
        (part != whole).then(|| format!("process: {name} of {of} is {part}, not {whole}"))
    }

    fn apply<Of>(&mut self, place: &str, facts: &[Fact<Of>], of: &Of) -> Vec<String> {
        self.checked += facts.len() as u64;
        let wrong = facts.iter().filter_map(|fact| fact.wrong(of));
        wrong.map(|wrong| format!("{place}: {wrong}")).collect()
    }
}
