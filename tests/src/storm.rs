//! Storms of allocations (`tests/c/storm.c`) under options and refused system calls.
//!
//! The calls that lumalloc makes about pages go by wrappers of the C library (`madvise`, `sbrk`,
//! …; `membarrier` by `syscall`), so that a preloaded object (`tests/c/refuse.c`) can refuse them.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::build::{cc, liblumalloc};
use crate::memory::number;
use crate::run::{Run, ending};

/// Options that change how pages are handled; the first is none.
pub const OPTIONS: [&str; 24] = [
    "",
    "dirty_decay_ms:0",
    "dirty_decay_ms:-1",
    "dirty_decay_ms:100,muzzy_decay_ms:100",
    "dirty_decay_ms:0,muzzy_decay_ms:-1",
    "background_thread:true,dirty_decay_ms:200",
    "dirty_decay_ms:0,hardened:true",
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
    "oversize_threshold:4194304,dirty_decay_ms:1000",
];

/// Kinds of calls that each storm makes many of, as `tests/c/refuse.c` names them: all advice, and
/// MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, and so on.
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
/// Kinds of calls that come a few times only.
const RARE: [&str; 3] = ["sbrk", "prctl", "membarrier"];

/// Which calls are refused by the preloaded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, as `REFUSE` names it; empty: nothing is refused.
    pub kind: &'static str,
    /// Every so many of them.
    pub every: u32,
    /// So many pass first.
    pub after: u32,
}

impl Refusal {
    /// Nothing is refused.
    pub const NONE: Refusal = Refusal { kind: "", every: 0, after: 0 };

    /// All calls of a kind.
    pub const fn all(kind: &'static str) -> Refusal {
        Refusal { kind, every: 1, after: 0 }
    }

    /// Every third call of a kind.
    pub const fn third(kind: &'static str) -> Refusal {
        Refusal { kind, every: 3, after: 0 }
    }

    /// All calls of a kind once some have passed, as under a filter that comes late.
    pub const fn late(kind: &'static str) -> Refusal {
        Refusal { kind, every: 1, after: 50 }
    }
}

/// None, and every kind in every way.
pub fn refusals() -> Vec<Refusal> {
    let mut all = vec![Refusal::NONE];
    for kind in FREQUENT {
        all.extend([Refusal::all(kind), Refusal::third(kind), Refusal::late(kind)]);
    }
    all.extend(RARE.map(Refusal::all));
    all
}

/// What the kernel itself refuses, or others do beside the storm: see `tests/c/storm_hardship.h`.
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
    /// What the preloaded object refuses.
    pub refusal: Refusal,
    /// What the kernel refuses, or others do; empty: nothing.
    pub hardship: &'static str,
    /// How much work.
    pub operations: u32,
    /// Where the random numbers begin.
    pub seed: u64,
}

/// Threads of each storm. In which order they come is left to the system: a seed repeats what each
/// thread asks for, not how they meet.
const THREADS: &str = "4";
/// Bytes that are asked for at once, in MiB.
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

/// The storm's program and the object that refuses, compiled.
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

/// The `number`-th pair of options and one of `others`, which follow each other in no order.
fn pair(number: u64, others: usize) -> (&'static str, usize) {
    let pairs = OPTIONS.len() * others;
    // A prime that divides no number of pairs: all come once before one comes again.
    let place = usize::try_from(number.wrapping_mul(7919) % pairs as u64).unwrap_or(0);
    (OPTIONS[place % OPTIONS.len()], place / OPTIONS.len())
}

impl Storm {
    /// The `number`-th of those that take turns: all options under all refusals, and each fourth
    /// storm under a hardship instead.
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

    /// How many calls were refused. Errors: what the storm found, with how to repeat it. Panics if
    /// it hangs.
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
        if output.status.success() {
            return Ok(number(&text, "refused"));
        }
        Err(format!("{self}: {}\n{text}{errors}", ending(output.status)))
    }
}

/// Runs storms, as many at a time as there are processors. The answer has the refused calls of
/// each. Errors: what went wrong, of all of them.
pub fn run_all(storms: &[Storm]) -> Result<Vec<u64>, String> {
    // Tests run at once, and each storm takes hundreds of megabytes.
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
