//! Storms of allocations (`tests/c/storm.c`) under options and refused system calls.
//!
//! The system calls of lumalloc about pages go through wrappers of the C library (`madvise`,
//! `sbrk`, …; `membarrier` through `syscall`), so a preloaded object (`tests/c/refuse.c`) can
//! refuse them.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::build::{cc, liblumalloc};
use crate::memory::number;
use crate::run::{Run, ending};

/// Options that change how pages are handled, and those of the profiler. The first entry sets none.
pub const OPTIONS: [&str; 27] = [
    "",
    "dirty_decay_ms:0",
    "dirty_decay_ms:-1",
    "dirty_decay_ms:100,muzzy_decay_ms:100",
    "dirty_decay_ms:0,muzzy_decay_ms:-1",
    "background_thread:true,dirty_decay_ms:200",
    "dirty_decay_ms:0,hardened:true",
    "hardened:true,junk:true",
    "retain:false",
    "retain:false,dirty_decay_ms:0",
    "thp:always",
    "thp:never",
    "metadata_thp:always",
    "dss:primary",
    "dss:primary,dirty_decay_ms:0",
    "dss:disabled",
    "tcache:false",
    "percpu_arena:percpu",
    "narenas:1",
    "narenas:1,lg_extent_max_active_fit:0",
    "guarded_sample:100",
    "junk:true",
    "zero:true",
    "calloc_madvise_threshold:0",
    "tcache_max:4096,dirty_decay_ms:1000",
    "prof:true,lg_prof_sample:12",
    "prof:true,lg_prof_sample:0",
];

/// Kinds of calls that each storm makes often, by their names in `tests/c/refuse.c`: all advice,
/// then MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, and other calls.
const FREQUENT: [&str; 11] = [
    "madvise",
    "madvise:4",
    "madvise:8",
    "madvise:14",
    "madvise:15",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "mincore",
    "any",
];
/// Kinds of calls that a storm makes only a few times.
const RARE: [&str; 3] = ["sbrk", "prctl", "membarrier"];

/// The calls that the preloaded object refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, by its name in `REFUSE`; empty if nothing is refused.
    pub kind: &'static str,
    /// One call in this many is refused.
    pub every: u32,
    /// This many calls pass before the first is refused.
    pub after: u32,
}

impl Refusal {
    /// No call is refused.
    pub const NONE: Refusal = Refusal { kind: "", every: 0, after: 0 };

    /// All calls of a kind are refused.
    pub const fn all(kind: &'static str) -> Refusal {
        Refusal { kind, every: 1, after: 0 }
    }

    /// Every third call of a kind is refused.
    pub const fn third(kind: &'static str) -> Refusal {
        Refusal { kind, every: 3, after: 0 }
    }

    /// All calls of a kind after the first 50 are refused, as under a filter that is installed
    /// late.
    pub const fn late(kind: &'static str) -> Refusal {
        Refusal { kind, every: 1, after: 50 }
    }
}

/// No refusal, and then every kind in every way.
pub fn refusals() -> Vec<Refusal> {
    let mut all = vec![Refusal::NONE];
    for kind in FREQUENT {
        all.extend([Refusal::all(kind), Refusal::third(kind), Refusal::late(kind)]);
    }
    all.extend(RARE.map(Refusal::all));
    all
}

/// Refusals by the kernel itself, and interference by other code: see `tests/c/storm_hardship.h`.
pub const HARDSHIPS: [&str; 11] = [
    "seccomp:madvise",
    "seccomp:madvise:4",
    "seccomp:madvise:14",
    "seccomp:mremap",
    "seccomp:mprotect",
    "seccomp:munmap",
    "seccomp:mincore",
    "seccomp:membarrier",
    "map",
    "keys",
    "break",
];

/// One run of the storm.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// The options.
    pub conf: &'static str,
    /// The calls that the preloaded object refuses.
    pub refusal: Refusal,
    /// One of [`HARDSHIPS`], or empty for none.
    pub hardship: &'static str,
    /// The number of operations.
    pub operations: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The number of threads of each storm. The system decides how they interleave: a seed repeats the
/// requests of each thread, but not their order among threads.
const THREADS: &str = "4";
/// The memory that may be allocated at once, in MiB.
const BUDGET: &str = "600";

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { kind, every, after } = self.refusal;
        write!(
            f,
            "LUMALLOC_CONF={} REFUSE={kind} REFUSE_EVERY={every} REFUSE_AFTER={after} \
             storm {} {THREADS} {BUDGET} {} {}",
            self.conf, self.operations, self.seed, self.hardship
        )
    }
}

/// The storm's program and the object that refuses calls, both compiled.
#[derive(Clone, Debug)]
pub struct Programs {
    storm: PathBuf,
    refuse: PathBuf,
}

impl Programs {
    /// Compiles both.
    pub fn compile() -> Programs {
        Programs { storm: cc("storm.c", &[]), refuse: cc("refuse.c", &["-shared", "-fPIC"]) }
    }
}

/// The `number`-th pair of options and one of `others`. The order of the pairs is scattered.
fn pair(number: u64, others: usize) -> (&'static str, usize) {
    let pairs = OPTIONS.len() * others;
    // A prime that divides no number of pairs, so all pairs occur before one occurs again.
    let place = usize::try_from(number.wrapping_mul(7919) % pairs as u64).unwrap_or(0);
    (OPTIONS[place % OPTIONS.len()], place / OPTIONS.len())
}

impl Storm {
    /// The `number`-th storm of a sequence: all options with all refusals, but each fourth storm
    /// has a hardship instead.
    pub fn in_turn(number: u64) -> Storm {
        let refusals = refusals();
        let (conf, refusal, hardship) = if number % 4 == 3 {
            let (conf, which) = pair(number / 4, HARDSHIPS.len());
            (conf, Refusal::NONE, HARDSHIPS[which])
        } else {
            let (conf, which) = pair(number - (number + 1) / 4, refusals.len());
            (conf, refusals[which], "")
        };
        Storm { conf, refusal, hardship, operations: 10_000, seed: number + 1 }
    }

    /// Runs the storm and returns how many calls were refused. The error says what the storm found
    /// and how to repeat it. Panics if the storm hangs.
    pub fn run(&self, programs: &Programs) -> Result<u64, String> {
        let preload = format!("{}:{}", programs.refuse.display(), liblumalloc().display());
        let (operations, seed) = (self.operations.to_string(), self.seed.to_string());
        let run = Run::plain(&programs.storm)
            .called(&self.to_string())
            .args([&operations, THREADS, BUDGET, &seed, self.hardship])
            .conf(self.conf)
            .env("LD_PRELOAD", preload)
            .env("REFUSE", self.refusal.kind)
            .env("REFUSE_EVERY", self.refusal.every.to_string())
            .env("REFUSE_AFTER", self.refusal.after.to_string());
        let output = run.output();
        let [text, errors] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if output.status.success() && errors.is_empty() {
            return Ok(number(&text, "refused"));
        }
        Err(format!("{self}: {}\n{text}{errors}", ending(output.status)))
    }
}

/// Runs storms, as many at a time as there are processors. Returns the number of refused calls of
/// each. The error collects those of all storms.
pub fn run_all(storms: &[Storm]) -> Result<Vec<u64>, String> {
    // Tests run at the same time, and each storm takes hundreds of megabytes.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = Programs::compile();
    let results = Mutex::new(vec![Ok(0); storms.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(storm) = storms.get(at) else { return };
            let result = storm.run(&programs);
            results.lock().expect("no worker panicked")[at] = result;
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(8) {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().expect("no worker panicked");
    let failures: Vec<&str> =
        results.iter().filter_map(|result| result.as_ref().err().map(String::as_str)).collect();
    if failures.is_empty() {
        return Ok(results.into_iter().flatten().collect());
    }
    Err(format!("{} of {} failed\n{}", failures.len(), storms.len(), failures.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_says_how_to_repeat_it() {
        let (conf, hardship) = ("dss:primary", "map");
        let storm =
            Storm { conf, refusal: Refusal::third("mmap"), hardship, operations: 100, seed: 7 };
        let expected = "LUMALLOC_CONF=dss:primary REFUSE=mmap REFUSE_EVERY=3 REFUSE_AFTER=0 \
                        storm 100 4 600 7 map";
        assert_eq!(storm.to_string(), expected);
    }

    #[test]
    fn storms_that_take_turns_are_all_there_are() {
        let refused = OPTIONS.len() * refusals().len();
        let seen = |of: fn(&Storm) -> String, is_one: fn(&Storm) -> bool| {
            let storms = (0..2 * refused as u64).map(Storm::in_turn).filter(is_one);
            storms.map(|storm| of(&storm)).collect::<std::collections::BTreeSet<_>>().len()
        };
        let by_refusal = |storm: &Storm| format!("{} {:?}", storm.conf, storm.refusal);
        assert_eq!(seen(by_refusal, |storm| storm.hardship.is_empty()), refused);
        let by_hardship = |storm: &Storm| format!("{} {}", storm.conf, storm.hardship);
        let hard = OPTIONS.len() * HARDSHIPS.len();
        assert_eq!(seen(by_hardship, |storm| !storm.hardship.is_empty()), hard);
    }

    #[test]
    fn each_kind_is_refused_in_each_way_once() {
        let all = refusals();
        assert_eq!(all.len(), 1 + 3 * FREQUENT.len() + RARE.len());
        assert!(all.iter().enumerate().all(|(at, one)| !all[..at].contains(one)));
    }
}
