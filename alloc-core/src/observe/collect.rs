//! The only walker of all tiers.

use super::snapshot::Totals;
use crate::back::{metadata, page_map};
use crate::front::{background, fork, registry};
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;
use crate::middle::arena::Arena;
use crate::middle::effort::UNCACHED;
use crate::middle::{arena, arena_list, choose_arena, holes};

/// Walks everything once. Each cache is read under its lock, each arena under its own.
///
/// ```
/// let totals = lumalloc::observe::totals();
/// assert!(totals.allocated <= totals.active);
/// assert!(totals.active <= totals.resident);
/// ```
#[must_use]
pub fn totals() -> Totals {
    let mut sum = Sum::default();
    for cache in registry::all() {
        add_cache(&mut sum, cache);
    }
    for arena in arena::all() {
        add_arena(&mut sum, arena);
    }
    let totals = &mut sum.totals;
    let live = sum.taken.saturating_sub(sum.returned);
    totals.allocated =
        (live as usize).saturating_sub(totals.cached) + sum.large.saturating_sub(sum.kept);
    totals.cached += sum.kept;
    // The walk is not one instant: blocks may have moved between two of its steps.
    totals.allocated = totals.allocated.min(totals.active);
    totals.metadata = (metadata::USED.get() + page_map::USED.get()) as usize;
    totals.resident = totals.active + totals.dirty + totals.muzzy + totals.metadata;
    totals.mapped = totals.active + totals.dirty + totals.muzzy + totals.metadata;
    totals.arenas_open = arena_list::open();
    totals.thread_caches = registry::ALIVE.get() as u32;
    totals.n_lock = choose_arena::WAITS.get();
    totals.n_probe = choose_arena::PROBES.get();
    totals.work.add_effort(&UNCACHED);
    totals.work.add_process();
    totals.work.holes_given = holes::PURGED.get();
    totals.background_threads = background::threads();
    (totals.background_runs, totals.background_interval) = background::runs();
    totals.fork_abandoned = fork::ABANDONED.get();
    sum.totals
}

#[derive(Default)]
struct Sum {
    totals: Totals,
    /// Bytes that left slabs, and that came back, ever.
    taken: u64,
    returned: u64,
    /// Bytes in large blocks, those that caches keep among them.
    large: usize,
    kept: usize,
}

fn add_cache(sum: &mut Sum, cache: &'static registry::RealCache) {
    sum.totals.work.add_cache_lock(cache.owner.state.counts());
    let state = cache.owner.state.lock();
    sum.totals.work.add_effort(&cache.owner.effort);
    sum.kept += state.runs.bytes();
    for class in SizeClass::all() {
        let (counts, size) = (cache.owner.counts(class), class.size());
        sum.taken += counts.filled.get() * size as u64;
        sum.returned += counts.flushed.get() * size as u64;
        sum.totals.remote_frees += counts.remote.get();
        sum.totals.requests += cache.requests(class);
        sum.totals.cached += cache.level(class) * size;
    }
}

fn add_arena(sum: &mut Sum, arena: &'static Arena) {
    for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
        let bin = arena.bin(class);
        sum.totals.work.add_bin_lock(bin.slabs.counts());
        sum.totals.n_open += bin.slabs.lock().opens;
        sum.taken += bin.filled.get() * class.size() as u64;
        sum.returned += bin.flushed.get() * class.size() as u64;
    }
    sum.totals.work.add_pages_lock(arena.pages.counts());
    let pages = arena.pages.lock();
    let counts = pages.allocator.counts();
    sum.large += pages.large.bytes;
    sum.totals.n_open += pages.opens;
    // Pages without memory inside slabs hold no block: they are as good as retained.
    let holes = (arena.holes.get() as usize).min(counts.active);
    sum.totals.active += (counts.active - holes) * PAGE;
    sum.totals.dirty += (counts.dirty + counts.purging) * PAGE;
    sum.totals.muzzy += counts.muzzy * PAGE;
    sum.totals.retained += (counts.retained + holes) * PAGE;
    sum.totals.holes += holes * PAGE;
    sum.totals.purges += counts.purges;
    sum.totals.work.runs_taken += counts.taken;
    sum.totals.work.runs_given += counts.given;
    sum.totals.purged_pages += counts.purged;
}
