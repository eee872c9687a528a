//! A whole snapshot as a value: taken at once, to be kept, compared, and sent as JSON.

use super::numbers::{
    ArenaSpace, BinStats, ClassesStats, ExtentStats, GuardedSamples, LargeStats, MutexStats,
    PurgeStats, Totals,
};
use super::regions::{self, Region};
use lumalloc::control::{self, arenas, limits};
use lumalloc::observe::{self, ArenaStats};
use lumalloc::options;
use lumalloc_namespace::entry::Entry;
use lumalloc_namespace::snapshot::{self, Published};
use lumalloc_namespace::{VERSION, Value, tree};
use serde::{Deserialize, Serialize};

/// A class of blocks from slabs that was used at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Bytes of a block.
    pub size: usize,
    /// Blocks in a slab.
    pub nregs: usize,
    /// Bytes of a slab.
    pub slab_size: usize,
    /// The statistics of the class.
    #[serde(flatten)]
    pub stats: BinStats,
    /// The lock of the bin.
    pub mutex: MutexStats,
}

/// A class of large blocks that was used at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Large {
    /// Bytes of a block.
    pub size: usize,
    /// The statistics of the class.
    #[serde(flatten)]
    pub stats: LargeStats,
}

/// A class of runs of which some are unused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// The index of the class.
    pub index: usize,
    /// The unused runs of the class.
    #[serde(flatten)]
    pub stats: ExtentStats,
}

/// One arena, or several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arena {
    /// The index of the arena; 4096 means all arenas, 4097 the destroyed ones.
    pub index: usize,
    /// Nanoseconds since the arena was made.
    pub uptime: u64,
    /// How long unused dirty pages are kept, in milliseconds; -1: for ever.
    pub dirty_decay_ms: isize,
    /// How long unused muzzy pages are kept, in milliseconds; -1: for ever.
    pub muzzy_decay_ms: isize,
    /// `arena.<i>.limit`, if there is one.
    #[serde(default)]
    pub limit: Option<usize>,
    /// The memory and threads of the arena.
    pub space: ArenaSpace,
    /// How dirty pages were given back.
    pub dirty: PurgeStats,
    /// How muzzy pages were given back.
    pub muzzy: PurgeStats,
    /// All small classes together.
    pub small: ClassesStats,
    /// All large classes together.
    pub large: ClassesStats,
    /// The small classes that were used at least once: up to 32 KiB, blocks from slabs.
    pub bins: Vec<Bin>,
    /// The large classes that were used at least once.
    pub lextents: Vec<Large>,
    /// The classes of runs of which some are unused.
    pub extents: Vec<Extents>,
    /// The lock of the arena's pages.
    pub pages_mutex: MutexStats,
    /// The locks of the thread caches that belong to the arena.
    pub caches_mutex: MutexStats,
}

/// Physical memory in bytes, as the system reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// Of the whole process.
    pub process: usize,
    /// For this allocator.
    pub ours: usize,
    /// For the rest of the process.
    pub not_ours: usize,
    /// `ours` minus the resident bytes of the totals: negative, as a rule.
    pub untouched: isize,
}

/// The settings that the doctor needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// `background_thread`
    pub background_thread: bool,
    /// `opt.tcache`
    pub tcache: bool,
    /// `opt.narenas`: arenas with smaller indices are automatic, those behind were created.
    pub narenas: u32,
    /// `arenas.dirty_decay_ms`
    pub dirty_decay_ms: isize,
    /// `limit.held`, which is compared with `limit.hard`.
    pub held: usize,
    /// `limit.soft`, if there is one.
    pub soft_limit: Option<usize>,
    /// `limit.hard`, if there is one.
    pub hard_limit: Option<usize>,
    /// Bytes that the program has locked in memory (`mlockall`), as far as the system tells.
    #[serde(default)]
    pub locked: usize,
}

impl Settings {
    /// Returns what `locked` is now. Source: proc(5), `/proc/pid/status`, `VmLck`.
    #[must_use]
    pub fn locked_now() -> usize {
        // That of the first thread does not tell it once this has ended.
        let kib = ["/proc/self/status", "/proc/thread-self/status"].into_iter().find_map(|path| {
            let status = std::fs::read_to_string(path).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
            line.split_whitespace().next()?.parse::<usize>().ok()
        });
        kib.unwrap_or(0) << 10
    }
}

/// Everything known at one moment.
///
/// ```
/// use lumalloc_ctl::Snapshot;
///
/// let snapshot = Snapshot::take();
/// assert!(snapshot.totals.allocated <= snapshot.totals.active);
/// let arenas: usize = snapshot.arenas.iter().map(|arena| arena.allocated()).sum();
/// assert_eq!(snapshot.totals.allocated, arenas);
///
/// let json = serde_json::to_string(&snapshot).unwrap();
/// assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The library's version.
    pub version: String,
    /// How many snapshots were taken, this one included.
    pub epoch: u64,
    /// Sums over all arenas and caches.
    pub totals: Totals,
    /// Counts of guarded samples.
    #[serde(default)]
    pub guarded: GuardedSamples,
    /// Physical memory.
    pub rss: Rss,
    /// Each arena that exists.
    pub arenas: Vec<Arena>,
    /// All arenas together, including the destroyed ones.
    pub merged: Arena,
    /// The destroyed arenas together.
    pub destroyed: Option<Arena>,
    /// The settings that the doctor needs.
    pub settings: Settings,
    /// Each region of vmalloc(3) that is open.
    #[serde(default)]
    pub regions: Vec<Region>,
}

impl Snapshot {
    /// Takes a snapshot in one pass, and publishes it as a write to `epoch` does.
    #[must_use]
    pub fn take() -> Snapshot {
        let mut arenas = Vec::new();
        // Nothing may be allocated under the lock of the namespace, so room is reserved before.
        let mut room = snapshot::read(|published| published.detail().arenas_end()) + 3;
        loop {
            arenas.reserve_exact(room);
            match snapshot::renew(|published| copy_arenas(published, &mut arenas)) {
                Ok(taken) => return Snapshot::new(&taken, &arenas),
                Err(needed) => room = needed,
            }
        }
    }

    fn new(taken: &snapshot::Snapshot, arenas: &[(usize, ArenaStats)]) -> Snapshot {
        let of = |wanted| arenas.iter().find(|(index, _)| *index == wanted);
        let made = |wanted| of(wanted).map(|(index, arena)| Arena::new(*index, arena));
        let single = arenas.iter().filter(|(index, _)| *index < snapshot::ALL);
        Snapshot {
            version: VERSION.to_string_lossy().into_owned(),
            epoch: taken.epoch,
            totals: (&taken.totals).into(),
            guarded: (&taken.totals.guarded).into(),
            rss: Rss::of(taken),
            arenas: single.map(|(index, arena)| Arena::new(*index, arena)).collect(),
            merged: made(snapshot::ALL).unwrap_or_default(),
            destroyed: made(snapshot::DESTROYED),
            settings: settings(),
            regions: regions::all(taken.epoch),
        }
    }
}

/// Copies the statistics of all arenas, under the lock of the namespace. The error is the room for
/// them that is needed.
fn copy_arenas(
    published: &Published,
    arenas: &mut Vec<(usize, ArenaStats)>,
) -> Result<snapshot::Snapshot, usize> {
    let end = published.detail().arenas_end();
    let needed = end + 2;
    if arenas.capacity() < needed {
        return Err(needed);
    }
    for index in (0..end).chain([snapshot::ALL, snapshot::DESTROYED]) {
        if let Some(arena) = published.arena(index) {
            arenas.push((index, arena.clone()));
        }
    }
    Ok(published.copied())
}

impl Rss {
    /// Asks the system, without the lock of the namespace.
    fn of(taken: &snapshot::Snapshot) -> Rss {
        let rss = snapshot::rss_of(taken);
        Rss {
            process: rss.process,
            ours: rss.ours,
            not_ours: rss.not_ours,
            untouched: rss.untouched,
        }
    }
}

impl Arena {
    /// Bytes in blocks that the program holds.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.small.allocated + self.large.allocated
    }

    fn new(index: usize, from: &ArenaStats) -> Arena {
        let bins = from.bins.iter().zip(&from.bin_mutexes).enumerate();
        let bins = bins.filter(|(_, (bin, _))| bin.nmalloc > 0 || bin.nslabs > 0);
        let lextents = from.lextents.iter().enumerate().filter(|(_, large)| large.nmalloc > 0);
        let unused = |runs: &observe::ExtentStats| runs.ndirty + runs.nmuzzy + runs.nretained;
        let extents = from.extents.iter().enumerate().filter(|(_, runs)| unused(runs) > 0);
        Arena {
            index,
            uptime: from.uptime,
            dirty_decay_ms: from.dirty_decay_ms,
            muzzy_decay_ms: from.muzzy_decay_ms,
            limit: arenas::limit(index as u32).filter(is_limit),
            space: (&from.space).into(),
            dirty: (&from.dirty).into(),
            muzzy: (&from.muzzy).into(),
            small: (&from.small).into(),
            large: (&from.large).into(),
            bins: bins.map(|(class, (bin, mutex))| Bin::new(class, bin, mutex)).collect(),
            lextents: lextents
                .map(|(class, large)| Large {
                    size: observe::lextent_size(class),
                    stats: large.into(),
                })
                .collect(),
            extents: extents.map(|(index, runs)| Extents { index, stats: runs.into() }).collect(),
            pages_mutex: (&from.pages_mutex).into(),
            caches_mutex: (&from.caches_mutex).into(),
        }
    }
}

impl Bin {
    fn new(class: usize, bin: &observe::BinStats, mutex: &observe::MutexStats) -> Bin {
        let (nregs, slab_size) = observe::slab_class_slab(class);
        let size = observe::slab_class_size(class);
        Bin { size, nregs, slab_size, stats: bin.into(), mutex: mutex.into() }
    }
}

fn settings() -> Settings {
    Settings {
        background_thread: control::background_thread(),
        tcache: options::current().tcache,
        narenas: control::automatic_narenas(),
        dirty_decay_ms: arenas::default_decay_ms(arenas::Pages::Dirty),
        held: limits::held(),
        soft_limit: limit("limit.soft"),
        hard_limit: limit("limit.hard"),
        locked: Settings::locked_now(),
    }
}

/// Whether so many bytes are a limit: not 0, and not beyond any memory.
fn is_limit(bytes: &usize) -> bool {
    (1..1 << 56).contains(bytes)
}

/// A limit in bytes, if there is one.
fn limit(name: &str) -> Option<usize> {
    let mib = tree::complete(name.as_bytes()).ok()?;
    match Entry::find(mib.as_slice()).ok()?.read() {
        Ok(Value::Size(bytes)) => Some(bytes).filter(is_limit),
        _ => None,
    }
}
