//! A snapshot in every detail, with one record for each arena, in memory that is kept from one walk
//! to the next.
//!
//! **What is exact.** Each block is charged to the arena and class of its slab, when it leaves the
//! slab and when it is returned. Large blocks are charged likewise. The walk takes some time. A
//! block that moves meanwhile may be seen twice or not at all, so while threads run the numbers are
//! not those of one moment. But counts never decrease from one walk to the next, nothing is
//! negative, and the following always holds:
//!
//! - allocated ≤ active ≤ resident ≤ mapped, for each arena and for the totals
//! - the arenas' numbers add up to the totals
//! - `curregs = nmalloc - ndalloc`, `curlextents = nmalloc - ndalloc`
//!
//! Blocks in thread caches are out of their slabs (`curregs`, as jemalloc counts them), but are not
//! `allocated`, which counts only what the program has. A cache knows how many blocks it holds, but
//! not which arenas they belong to. They are charged to the cache's home arena, as long as it has
//! so many out, then to others. With one arena, and for arenas whose blocks bypass the caches, that
//! is exact too.

use super::arena_stats::{ArenaStats, BINS, slab_class_size};
use super::collect::{self, Sum};
use super::destroyed;
use super::records::{ProcessMutexes, Records, record};
use super::snapshot::Totals;
use crate::back::map::page_map;
use crate::back::metadata;
use crate::front::life::thread_begin::real_cache;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;

/// A snapshot, and the memory for the next one.
pub struct Detail {
    totals: Totals,
    records: Records,
    merged: Option<&'static mut ArenaStats>,
    destroyed: Option<&'static mut ArenaStats>,
    /// Cached blocks that no home arena can be charged with.
    excess: [usize; BINS],
}

// SAFETY: all zero is valid for plain numbers.
const NO_TOTALS: Totals = unsafe { core::mem::zeroed() };

impl Default for Detail {
    fn default() -> Detail {
        Detail::new()
    }
}

impl Detail {
    /// Makes an empty snapshot.
    #[must_use]
    pub const fn new() -> Detail {
        Detail {
            totals: NO_TOTALS,
            records: Records::new(),
            merged: None,
            destroyed: None,
            excess: [0; BINS],
        }
    }

    /// Takes a new snapshot in one walk. Its memory comes from the allocator's own records, and is
    /// never given back. An arena for which there is no memory is in the totals only.
    ///
    /// ```
    /// let mut detail = lumalloc::observe::Detail::new();
    /// detail.refresh();
    /// let arena = detail.arena(0).unwrap();
    /// assert!(arena.allocated() <= arena.space.pactive * lumalloc::PAGE);
    /// assert_eq!(detail.totals().allocated, detail.merged().unwrap().allocated());
    /// ```
    ///
    /// The counts of a destroyed arena are in [`Detail::destroyed`] from the next walk on.
    pub fn refresh(&mut self) {
        // Even as the first call of the process, the walk finds an arena.
        real_cache();
        self.begin();
        let mut sum = Sum::default();
        collect::walk(&mut sum, Some(&mut self.records));
        self.set_ends_apart();
        self.settle_cached();
        self.records.all_mut().for_each(finish);
        self.charge_shared_records();
        self.add_up(sum.totals);
    }

    /// Returns the sums over all arenas.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the statistics of the locks that the process has one of.
    #[must_use]
    pub fn mutexes(&self) -> &ProcessMutexes {
        self.records.mutexes()
    }

    /// Returns the statistics of one arena, or `None` if there was none with this index.
    #[must_use]
    pub fn arena(&self, index: usize) -> Option<&ArenaStats> {
        self.records.arena(index).filter(|arena| arena.initialized)
    }

    /// Returns the statistics of all arenas together. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
    #[must_use]
    pub fn merged(&self) -> Option<&ArenaStats> {
        self.merged.as_deref()
    }

    /// Returns the counts of destroyed arenas, or `None` if there was none. Source: jemalloc(3),
    /// `MALLCTL_ARENAS_DESTROYED`.
    #[must_use]
    pub fn destroyed(&self) -> Option<&ArenaStats> {
        self.destroyed.as_deref()
    }

    /// Returns a number that is above all indices of arenas.
    #[must_use]
    pub fn arenas_end(&self) -> usize {
        self.records.end()
    }

    /// Makes room for the counts, and clears them.
    fn begin(&mut self) {
        if self.merged.is_none() {
            self.merged = record();
        }
        self.records.make_room();
        self.records.clear();
        self.excess = [0; BINS];
    }

    /// Moves the counts of destroyed arenas out of the records of their indices.
    fn set_ends_apart(&mut self) {
        for (index, place) in self.records.places().enumerate() {
            let (Some(arena), Some(stats)) = (arena_list::by_id(index as u32), &mut place.stats)
            else {
                continue;
            };
            if arena.life().ends() != place.ends {
                place.ends = arena.life().ends();
                // These requests count among those of destroyed arenas from now on.
                stats.seen_requests.fill(0);
                destroyed::visit(index as u32, |now| {
                    retire(now, &mut place.before, &mut self.destroyed)
                });
            }
            if let Some(before) = &place.before {
                stats.since(before);
            }
        }
    }

    /// Charges cached blocks to other arenas if a cache's home arena has not so many out.
    fn settle_cached(&mut self) {
        for arena in self.records.all_mut() {
            for (bin, excess) in arena.bins.iter_mut().zip(self.excess.iter_mut()) {
                // The walk may have seen the return of a block, but not yet that it had left.
                bin.nmalloc = bin.nmalloc.max(bin.ndalloc);
                bin.curregs = (bin.nmalloc - bin.ndalloc) as usize;
                let over = bin.cached.saturating_sub(bin.curregs);
                bin.cached -= over;
                *excess += over;
            }
        }
        for arena in self.records.all_mut() {
            for (bin, excess) in arena.bins.iter_mut().zip(self.excess.iter_mut()) {
                let room = (*excess).min(bin.curregs - bin.cached);
                bin.cached += room;
                *excess -= room;
            }
        }
    }

    /// Charges records that belong to no arena, and their lock, to arena 0.
    fn charge_shared_records(&mut self) {
        let known: usize = self.records.all().map(|arena| arena.space.base).sum();
        let map = page_map::USED.get() as usize;
        let all = metadata::USED.get() as usize + map;
        let Some(first) = self.records.arena_mut(0) else { return };
        let more = all.saturating_sub(known);
        first.space.base += more;
        first.space.mapped += more;
        first.space.resident += more;
        first.space.metadata_rtree = map;
        first.space.metadata_thp = metadata::HUGE_PAGES.get() as usize;
        first.base_mutex.add_history(metadata::METADATA.history());
    }

    fn add_up(&mut self, totals: Totals) {
        let Detail { records, merged, destroyed, .. } = self;
        let Some(merged) = merged else { return };
        merged.clear();
        records.all().for_each(|arena| merged.add(arena));
        if let Some(destroyed) = destroyed {
            merged.add(destroyed);
        }
        (merged.dirty_decay_ms, merged.muzzy_decay_ms) = (-1, -1);
        let space = &merged.space;
        self.totals = Totals {
            allocated: merged.allocated(),
            active: space.pactive * PAGE,
            metadata: space.base,
            resident: space.resident,
            mapped: space.mapped,
            retained: space.retained,
            cached: space.tcache_bytes,
            ..totals
        };
    }
}

/// Adds to `destroyed` the counts of the arenas of one index that were destroyed since `before`.
fn retire(
    now: &ArenaStats,
    before: &mut Option<&'static mut ArenaStats>,
    destroyed: &mut Option<&'static mut ArenaStats>,
) {
    if before.is_none() {
        *before = record();
    }
    if destroyed.is_none() {
        *destroyed = record();
    }
    let (Some(before), Some(destroyed)) = (before, destroyed) else { return };
    before.become_difference(now);
    destroyed.add(before);
    destroyed.keep_counts();
    sum_up_classes(destroyed);
    destroyed.initialized = true;
    before.clear();
    before.add(now);
}

/// Derives an arena's sums from its classes.
fn finish(arena: &mut ArenaStats) {
    for (bin, seen) in arena.bins.iter_mut().zip(&arena.seen_requests) {
        bin.nrequests = bin.nrequests.max(*seen);
    }
    sum_up_classes(arena);
    let space = &mut arena.space;
    space.tcache_bytes += space.kept_bytes;
    space.tcache_stashed_bytes = space.tcache_stashed_bytes.min(space.tcache_bytes);
    let (used, active) = (arena.small.allocated + arena.large.allocated, space.pactive * PAGE);
    // The walk takes some time, so blocks may have moved between two of its steps.
    let over = used.saturating_sub(active);
    let of_large = over.min(arena.large.allocated);
    arena.large.allocated -= of_large;
    arena.small.allocated -= over - of_large;
    space.mapped = active + (space.pdirty + space.pmuzzy) * PAGE + space.base;
    space.resident = space.mapped;
}

/// Adds up the statistics of an arena's classes.
fn sum_up_classes(arena: &mut ArenaStats) {
    for (class, bin) in arena.bins.iter().enumerate() {
        let size = slab_class_size(class);
        arena.space.tcache_bytes += bin.cached * size;
        arena.space.slab_used_bytes += bin.curregs * size;
        let sums = &mut arena.small;
        sums.allocated += (bin.curregs - bin.cached) * size;
        sums.nfills += bin.nfills;
        sums.nflushes += bin.nflushes;
        sums.nmalloc += bin.nmalloc;
        sums.ndalloc += bin.ndalloc;
        sums.nrequests += bin.nrequests;
    }
    for large in &mut arena.lextents {
        large.curlextents = (large.nmalloc - large.ndalloc) as usize;
        arena.large.nmalloc += large.nmalloc;
        arena.large.ndalloc += large.ndalloc;
        arena.large.nrequests += large.nrequests;
    }
}
