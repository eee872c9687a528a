//! A whole snapshot as a value. It is read by the names of the namespace, from any allocator.
//!
//! For the allocator of this executable, it equals the result of
//! [`Snapshot::take`](lumalloc_ctl::Snapshot::take).
use crate::namespace::{Namespace, Target};
use crate::regions;
use lumalloc_ctl::numbers::{
    ArenaSpace, BinStats, ClassesStats, ExtentStats, GuardedSamples, LargeStats, MutexStats,
    PurgeStats, Totals,
};
use lumalloc_ctl::snapshot::{Arena, Bin, Extents, Large, Rss, Settings};
use lumalloc_ctl::{Error, Snapshot, Value};
use std::cell::RefCell;
use std::collections::HashMap;

/// The index of all arenas; [`DESTROYED`] is that of the destroyed ones. Source: jemalloc(3).
const ALL: usize = 4096;
const DESTROYED: usize = 4097;
/// The reading begins again if the epoch changes during it, at most so often in total.
const TRIES: usize = 3;

/// Takes a snapshot. It is of one epoch, unless other threads write epochs all the time.
pub(crate) fn take(namespace: &dyn Namespace) -> Result<Snapshot, Error> {
    let epoch = namespace.find("epoch")?;
    let keys = Keys { namespace, targets: RefCell::default() };
    let mut left = TRIES;
    loop {
        namespace.write(&epoch, Value::U64(1))?;
        let before = namespace.read(&epoch)?;
        let snapshot = keys.snapshot();
        left -= 1;
        if left == 0 || namespace.read(&epoch)? == before {
            return Ok(snapshot);
        }
    }
}

/// Keys that were looked up, by the names of their rows.
struct Keys<'a> {
    namespace: &'a dyn Namespace,
    targets: RefCell<HashMap<&'static str, Option<Target>>>,
}

/// A field of a snapshot. A value of another type gives `None`.
trait Field: Default {
    fn from(value: Value<'static>) -> Option<Self>;
}

macro_rules! fields {
    ($($rust:ty: $($variant:ident)|+;)*) => {$(
        impl Field for $rust {
            fn from(value: Value<'static>) -> Option<$rust> {
                match value {
                    $(Value::$variant(value) => value.try_into().ok(),)+
                    _ => None,
                }
            }
        }
    )*};
}

fields! {
    bool: Bool;
    u32: Unsigned | U32;
    u64: U64 | Size;
    usize: Size | U32;
    isize: Ssize;
}

/// Makes a struct whose fields are keys below one name.
macro_rules! below {
    ($keys:expr, $indices:expr, $base:literal, $of:ident { $($field:ident),* $(,)? }) => {
        $of { $($field: $keys.get(concat!($base, stringify!($field)), $indices),)* }
    };
}

macro_rules! mutex {
    ($keys:expr, $indices:expr, $base:literal) => {
        below!(
            $keys,
            $indices,
            $base,
            MutexStats {
                num_ops,
                num_wait,
                num_spin_acq,
                num_owner_switch,
                total_wait_time,
                max_wait_time,
                max_num_thds,
            }
        )
    };
}

macro_rules! classes {
    ($keys:expr, $indices:expr, $base:literal) => {
        below!(
            $keys,
            $indices,
            $base,
            ClassesStats { allocated, nmalloc, ndalloc, nrequests, nfills, nflushes }
        )
    };
}

impl Keys<'_> {
    /// Returns the value of a row with these indices, or the default value if there is none.
    fn get<T: Field>(&self, row: &'static str, indices: &[usize]) -> T {
        self.read(row, indices).and_then(T::from).unwrap_or_default()
    }

    fn read(&self, row: &'static str, indices: &[usize]) -> Option<Value<'static>> {
        let find = || self.namespace.find(&zeros(row)).ok();
        let target = (*self.targets.borrow_mut().entry(row).or_insert_with(find))?;
        let places = row.split('.').enumerate().filter(|(_, part)| part.starts_with('<'));
        let set = |target: Target, ((place, _), &index): ((usize, &str), &usize)| {
            target.with(place, index)
        };
        self.namespace.read(&places.zip(indices).fold(target, set)).ok()
    }

    fn snapshot(&self) -> Snapshot {
        let narenas: u32 = self.get("arenas.narenas", &[]);
        let exists =
            |&index: &usize| index >= ALL || self.get::<bool>("arena.<i>.initialized", &[index]);
        let arenas: Vec<Arena> =
            (0..narenas as usize).filter(exists).map(|index| self.arena(index)).collect();
        let destroyed = self.arena(DESTROYED);
        Snapshot {
            version: self.text("version"),
            epoch: self.get("epoch", &[]),
            totals: self.totals(),
            guarded: below!(self, &[], "stats.guarded.", GuardedSamples { made, live, failed }),
            rss: below!(self, &[], "stats.rss.", Rss { process, ours, not_ours, untouched }),
            arenas,
            merged: self.arena(ALL),
            destroyed: has_history(&destroyed).then_some(destroyed),
            settings: self.settings(),
            regions: regions::read(self.namespace).unwrap_or_default(),
        }
    }

    fn text(&self, row: &'static str) -> String {
        match self.read(row, &[]) {
            Some(Value::Str(text)) => text.to_string_lossy().into_owned(),
            _ => String::new(),
        }
    }

    fn totals(&self) -> Totals {
        let merged = |row| self.get::<u64>(row, &[ALL]);
        Totals {
            dirty: self.get("stats.rss.dirty", &[]),
            muzzy: self.get("stats.rss.muzzy", &[]),
            cached: self.get("stats.thread_caches.bytes", &[]),
            kept: self.get("stats.thread_caches.kept_bytes", &[]),
            remote_pending: self.get("stats.remote.pending_bytes", &[]),
            arenas_open: self.get("vm.stat.n_region", &[]),
            thread_caches: self.get("stats.thread_caches.count", &[]),
            remote_frees: self.get("stats.remote.frees", &[]),
            requests: self.get("stats.thread_caches.requests", &[]),
            n_open: self.get("vm.stat.n_open", &[]),
            n_lock: self.get("vm.stat.n_lock", &[]),
            n_probe: self.get("vm.stat.n_probe", &[]),
            background_threads: self.get("stats.background_thread.num_threads", &[]),
            background_runs: self.get("stats.background_thread.num_runs", &[]),
            background_interval: self.get("stats.background_thread.run_interval", &[]),
            purges: merged("stats.arenas.<i>.dirty_nmadvise")
                + merged("stats.arenas.<i>.muzzy_nmadvise"),
            purged_pages: merged("stats.arenas.<i>.dirty_purged")
                + merged("stats.arenas.<i>.muzzy_purged"),
            allocated: self.get("stats.allocated", &[]),
            active: self.get("stats.active", &[]),
            metadata: self.get("stats.metadata", &[]),
            metadata_edata: self.get("stats.metadata_edata", &[]),
            metadata_rtree: self.get("stats.metadata_rtree", &[]),
            metadata_thp: self.get("stats.metadata_thp", &[]),
            resident: self.get("stats.resident", &[]),
            mapped: self.get("stats.mapped", &[]),
            retained: self.get("stats.retained", &[]),
            holes: self.get("stats.holes", &[]),
            fork_abandoned: self.get("stats.fork_abandoned", &[]),
            zero_reallocs: self.get("stats.zero_reallocs", &[]),
            out_of_memory: self.get("stats.out_of_memory", &[]),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            background_thread: self.get("background_thread", &[]),
            tcache: self.get("opt.tcache", &[]),
            narenas: self.get("opt.narenas", &[]),
            dirty_decay_ms: self.get("arenas.dirty_decay_ms", &[]),
            held: self.get("limit.held", &[]),
            soft_limit: self.limit("limit.soft", &[]),
            hard_limit: self.limit("limit.hard", &[]),
            locked: Settings::locked_now(),
        }
    }

    /// A limit in bytes. 0, and a number beyond any memory, mean none.
    fn limit(&self, row: &'static str, indices: &[usize]) -> Option<usize> {
        Some(self.get(row, indices)).filter(|bytes| (1..1 << 56).contains(bytes))
    }

    fn arena(&self, index: usize) -> Arena {
        let at = &[index];
        Arena {
            index,
            uptime: self.get("stats.arenas.<i>.uptime", at),
            dirty_decay_ms: self.get("stats.arenas.<i>.dirty_decay_ms", at),
            muzzy_decay_ms: self.get("stats.arenas.<i>.muzzy_decay_ms", at),
            limit: self.limit("arena.<i>.limit", at),
            space: below!(
                self,
                at,
                "stats.arenas.<i>.",
                ArenaSpace {
                    nthreads,
                    pactive,
                    pdirty,
                    pmuzzy,
                    mapped,
                    retained,
                    resident,
                    base,
                    metadata_edata,
                    metadata_rtree,
                    metadata_thp,
                    extent_avail,
                    abandoned_vm,
                    tcache_bytes,
                    tcache_stashed_bytes,
                    kept_bytes,
                    slab_bytes,
                    slab_used_bytes,
                }
            ),
            dirty: below!(
                self,
                at,
                "stats.arenas.<i>.dirty_",
                PurgeStats { npurge, nmadvise, purged }
            ),
            muzzy: below!(
                self,
                at,
                "stats.arenas.<i>.muzzy_",
                PurgeStats { npurge, nmadvise, purged }
            ),
            small: classes!(self, at, "stats.arenas.<i>.small."),
            large: classes!(self, at, "stats.arenas.<i>.large."),
            bins: self.bins(index),
            lextents: self.lextents(index),
            extents: self.extents(index),
            pages_mutex: mutex!(self, at, "stats.arenas.<i>.mutexes.extents_dirty."),
            caches_mutex: mutex!(self, at, "stats.arenas.<i>.mutexes.tcache_list."),
        }
    }

    /// Returns the bins that were ever used.
    fn bins(&self, arena: usize) -> Vec<Bin> {
        let count: u32 = self.get("arenas.nbins", &[]);
        let was_used = |&class: &usize| {
            self.get::<u64>("stats.arenas.<i>.bins.<j>.nmalloc", &[arena, class]) > 0
                || self.get::<u64>("stats.arenas.<i>.bins.<j>.nslabs", &[arena, class]) > 0
        };
        let bin = |class: usize| {
            let at = &[arena, class];
            Bin {
                size: self.get("arenas.bin.<i>.size", &[class]),
                nregs: self.get("arenas.bin.<i>.nregs", &[class]),
                slab_size: self.get("arenas.bin.<i>.slab_size", &[class]),
                stats: below!(
                    self,
                    at,
                    "stats.arenas.<i>.bins.<j>.",
                    BinStats {
                        nmalloc,
                        ndalloc,
                        nrequests,
                        curregs,
                        cached,
                        nfills,
                        nflushes,
                        nslabs,
                        nreslabs,
                        curslabs,
                        nonfull_slabs,
                    }
                ),
                mutex: mutex!(self, at, "stats.arenas.<i>.bins.<j>.mutex."),
            }
        };
        (0..count as usize).filter(was_used).map(bin).collect()
    }

    /// Returns the large classes that were ever used.
    fn lextents(&self, arena: usize) -> Vec<Large> {
        let count: u32 = self.get("arenas.nlextents", &[]);
        let large = |class: usize| Large {
            size: self.get("arenas.lextent.<i>.size", &[class]),
            stats: below!(
                self,
                &[arena, class],
                "stats.arenas.<i>.lextents.<j>.",
                LargeStats { nmalloc, ndalloc, nrequests, curlextents }
            ),
        };
        let was_used = |&class: &usize| {
            self.get::<u64>("stats.arenas.<i>.lextents.<j>.nmalloc", &[arena, class]) > 0
        };
        (0..count as usize).filter(was_used).map(large).collect()
    }

    /// Returns the classes of extents of which some are unused.
    fn extents(&self, arena: usize) -> Vec<Extents> {
        let mut extents = Vec::new();
        for index in 0.. {
            let at = &[arena, index];
            // No key holds their number. The first index that does not exist ends them.
            if self.read("stats.arenas.<i>.extents.<j>.ndirty", at).is_none() {
                return extents;
            }
            let stats = below!(
                self,
                at,
                "stats.arenas.<i>.extents.<j>.",
                ExtentStats { ndirty, dirty_bytes, nmuzzy, muzzy_bytes, nretained, retained_bytes }
            );
            if stats.ndirty + stats.nmuzzy + stats.nretained > 0 {
                extents.push(Extents { index, stats });
            }
        }
        extents
    }
}

/// Returns the name of a row with 0 for each index.
fn zeros(row: &str) -> String {
    let parts = row.split('.').map(|part| if part.starts_with('<') { "0" } else { part });
    parts.collect::<Vec<_>>().join(".")
}

/// Whether any arena was destroyed.
fn has_history(destroyed: &Arena) -> bool {
    let bare = Arena {
        index: destroyed.index,
        dirty_decay_ms: destroyed.dirty_decay_ms,
        muzzy_decay_ms: destroyed.muzzy_decay_ms,
        ..Arena::default()
    };
    *destroyed != bare
}

#[cfg(test)]
#[path = "snapshot_test.rs"]
mod tests;
