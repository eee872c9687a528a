//! The walk over all tiers that collects statistics. No other module makes one.

use super::arena_stats::{
    ArenaStats, BINS, BinStats, LargeStats, PAGE_RUN_CLASSES, PurgeStats, lextent_of_run,
};
use super::class_counts::{ClassCount, Classes};
use super::process::zero_reallocs;
use super::records::Records;
use super::samples::guarded_samples;
use super::snapshot::Totals;
use crate::back::aging::page_counts::Purges;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::metadata;
use crate::front::cache::emptying;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry;
use crate::front::life::{background, background_runs, fork, former_thread};
use crate::front::miss::out_of_memory;
use crate::ground::os;
use crate::ground::size_class::{SizeClass, page_class_ceil};
use crate::ground::sync::aside::{Aside, lock_as};
use crate::ground::units::PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_pages::ArenaPages;
use crate::middle::arenas::{arena_list, choose_arena};
use crate::middle::events::UNCACHED;
use crate::middle::owners::ledger::Account;
use crate::middle::owners::owner::OwnerState;
use crate::middle::owners::run_cache;
use crate::middle::passes::decay_pass::{self, PASS};
use crate::middle::slabs::holes;
use core::sync::atomic::Ordering::Relaxed;

/// Returns the totals, taken in one walk. Reads each cache under its lock, and each arena under its
/// own.
///
/// ```
/// let totals = lumalloc::observe::totals();
/// assert!(totals.allocated <= totals.active);
/// assert!(totals.active <= totals.resident);
/// ```
#[must_use]
pub fn totals() -> Totals {
    counted().totals
}

/// Calls `see` with the counts of each class that the program used, the smallest first, without
/// arenas that are [not profiled](crate::control::profile::set_arena_profiled). `see` may allocate.
/// The walk takes some time, so while other threads run, the counts are not those of one moment.
/// Guarded samples (`opt.guarded_sample`) are in no class.
///
/// ```
/// let block = vec![0u8; 100];
/// let mut sizes = Vec::new();
/// lumalloc::observe::class_counts(|class| sizes.push(class.size));
/// assert!(sizes.is_sorted());
/// drop(block);
/// ```
pub fn class_counts(see: impl FnMut(ClassCount)) {
    decay_pass::between_passes(counted).classes.each().for_each(see);
}

/// Returns the sums over all arenas and caches, taken in one walk.
fn counted() -> Sum {
    let mut sum = Sum::default();
    walk(&mut sum, None);
    sum
}

/// The sums of a walk.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) totals: Totals,
    classes: Classes,
    /// Bytes in blocks that left slabs, and that were returned to slabs, since the start.
    taken: u64,
    returned: u64,
    /// Bytes in blocks that were freed remotely, and that guards took in, since the start.
    sent: u64,
    absorbed: u64,
    /// Bytes in large blocks, and in those of them that caches keep.
    large: usize,
    kept: usize,
}

/// Adds everything up in `sum`, and if `records` are given also by arena and class.
pub(super) fn walk(sum: &mut Sum, mut records: Option<&mut Records>) {
    for_each_cache(|cache, state| add_cache(sum, cache, state, records.as_deref_mut()));
    if let Some(records) = records.as_deref_mut() {
        registry::for_each_arena(|id| {
            let arena = records.arena_mut(id);
            arena.into_iter().for_each(|arena| arena.space.nthreads += 1);
        });
    }
    let now = os::nanoseconds_of_system();
    for arena in arena_list::all() {
        let stats = records.as_deref_mut().and_then(|records| records.arena_mut(arena.id()));
        add_arena(sum, arena, stats, now);
    }
    if let Some(records) = records {
        let mutexes = records.mutexes_mut();
        mutexes.background_thread.add_history(former_thread::CHANGE.history());
        mutexes.decay_pass.add_history(PASS.history());
        mutexes.registry.add_history(registry::REGISTRY.history());
        mutexes.arenas.add_history(arena_list::MAKING.history());
    }
    add_process(sum);
}

fn add_process(sum: &mut Sum) {
    let totals = &mut sum.totals;
    let live = sum.taken.saturating_sub(sum.returned);
    totals.allocated =
        (live as usize).saturating_sub(totals.cached) + sum.large.saturating_sub(sum.kept);
    totals.cached += sum.kept;
    // The walk takes some time, so blocks may have moved between two of its steps.
    totals.allocated = totals.allocated.min(totals.active);
    totals.kept = sum.kept;
    totals.remote_pending = sum.sent.saturating_sub(sum.absorbed) as usize;
    totals.metadata = (metadata::USED.get() + page_map::USED.get()) as usize;
    totals.resident = totals.active + totals.dirty + totals.muzzy + totals.metadata;
    totals.mapped = totals.active + totals.dirty + totals.muzzy + totals.metadata;
    totals.arenas_open = arena_list::open();
    totals.thread_caches = registry::CACHES.get() as u32;
    totals.n_lock = choose_arena::WAITS.get();
    totals.n_probe = choose_arena::PROBES.get();
    totals.work.add_events(&UNCACHED);
    totals.work.add_process();
    totals.work.holes_given = holes::PURGED.get();
    totals.work.caches_emptied = emptying::EMPTIED.get();
    totals.background_threads = background::threads();
    (totals.background_runs, totals.background_interval) = background_runs::runs();
    totals.fork_abandoned = fork::ABANDONED.get();
    totals.zero_reallocs = zero_reallocs();
    totals.out_of_memory = out_of_memory::COUNT.get();
    totals.guarded = guarded_samples();
    totals.metadata_rtree = page_map::USED.get() as usize;
    totals.metadata_thp = metadata::HUGE_PAGES.get() as usize;
}

/// Calls `see` with each cache under its lock. On a busy system threads that do not run may hold
/// many of them.
fn for_each_cache(mut see: impl FnMut(&'static RealCache, &OwnerState)) {
    let mut take = |cache: &'static RealCache, how| {
        let state = &cache.owner.state;
        lock_as(state, how).map(|state| see(cache, &state)).is_some()
    };
    let mut aside = Aside::new();
    registry::all().for_each(|cache| aside.take(cache, &mut take));
    aside.settle(take);
}

fn add_cache(
    sum: &mut Sum,
    cache: &'static RealCache,
    state: &OwnerState,
    mut records: Option<&mut Records>,
) {
    sum.totals.work.add_cache_lock(cache.owner.state.counts());
    let home = cache.owner.home.get().id();
    sum.totals.work.add_events(&cache.owner.events);
    sum.kept += state.runs.bytes();
    let mut served = cache.owner.ledger.used();
    if cache.facade().is_some() {
        // Blocks of classes that the cache never served may wait behind the façade.
        served |= (1 << BINS) - 1;
    }
    for class in SizeClass::all().filter(|class| served >> class.index() & 1 != 0) {
        let (level, waiting) = (cache.level(class), cache.waiting(class));
        sum.totals.cached += level * class.size();
        add_accounts(sum, cache, class, records.as_deref_mut());
        let arena = records.as_deref_mut().and_then(|records| records.arena_mut(home));
        if let Some(arena) = arena {
            arena.space.tcache_stashed_bytes += waiting * class.size();
            if let Some(bin) = arena.bins.get_mut(class.index()) {
                bin.cached += level;
                bin.nonfull_slabs += state.partial_slabs(class);
            }
        }
    }
    add_kept(sum, cache, state.runs.all(), served, records.as_deref_mut());
    if let Some(arena) = records.and_then(|records| records.arena_mut(home)) {
        arena.caches_mutex.add_history(cache.owner.state.history());
    }
}

/// Adds what the cache exchanged with each arena, in one class.
fn add_accounts(
    sum: &mut Sum,
    cache: &'static RealCache,
    class: SizeClass,
    mut records: Option<&mut Records>,
) {
    let (ledger, size) = (&cache.owner.ledger, class.size() as u64);
    let requests = cache.requests(class);
    sum.totals.requests += requests;
    if cache.owner.home.get().is_profiled() {
        sum.classes.add_small(class, -(cache.level(class) as i64), 0);
    }
    for account in ledger.accounts(class.index()) {
        let (filled, flushed) = (account.filled.get(), account.flushed.get());
        sum.taken += filled * size;
        sum.returned += flushed * size;
        if is_profiled(account.arena()) {
            let requests = ledger.requests(class.index(), account, requests);
            sum.classes.add_small(class, filled as i64 - flushed as i64, requests);
        }
        sum.sent += account.sent.get() * size;
        sum.absorbed += account.absorbed.get() * size;
        sum.totals.remote_frees += account.remote.get();
        let bin = records.as_deref_mut().and_then(|records| records.arena_mut(account.arena()));
        if let Some(bin) = bin.and_then(|arena| arena.bins.get_mut(class.index())) {
            let requests = ledger.requests(class.index(), account, requests);
            add_account(bin, account, requests);
        }
    }
}

/// Adds the counts that one arena has, and those that all caches have of it.
pub(super) fn add_one(stats: &mut ArenaStats, arena: &'static Arena) {
    for_each_cache(|cache, _| {
        let ledger = &cache.owner.ledger;
        for class in SizeClass::all() {
            for account in ledger.accounts(class.index()) {
                if account.arena() == arena.id()
                    && let Some(bin) = stats.bins.get_mut(class.index())
                {
                    let requests = ledger.requests(class.index(), account, cache.requests(class));
                    add_account(bin, account, requests);
                }
            }
        }
    });
    add_arena(&mut Sum::default(), arena, Some(stats), 0);
}

fn add_account(bin: &mut BinStats, account: &Account, requests: u64) {
    bin.nmalloc += account.filled.get();
    bin.ndalloc += account.flushed.get();
    bin.nfills += account.fills.get();
    bin.nflushes += account.flushes.get();
    bin.nrequests += requests;
}

/// Adds the large blocks that the cache keeps, and those that it used again.
fn add_kept(
    sum: &mut Sum,
    cache: &'static RealCache,
    runs: impl Iterator<Item = &'static Extent>,
    served: u64,
    mut records: Option<&mut Records>,
) {
    for run in runs {
        if is_profiled(run.arena()) {
            sum.classes.add_large(page_class_ceil(run.pages()), -1, 0);
        }
        let arena = records.as_deref_mut().and_then(|records| records.arena_mut(run.arena()));
        arena.into_iter().for_each(|arena| arena.space.kept_bytes += run.bytes());
    }
    for length in (0..run_cache::LENGTHS).filter(|n| served >> (BINS + n) & 1 != 0) {
        let run = run_cache::page_class(length);
        for account in cache.owner.ledger.accounts(BINS + length) {
            if is_profiled(account.arena()) {
                sum.classes.add_large(run, 0, account.filled.get());
            }
            let arena = records.as_deref_mut();
            let arena = arena.and_then(|records| records.arena_mut(account.arena()));
            let class = lextent_of_run(run);
            if let Some(large) = arena.and_then(|arena| arena.lextents.get_mut(class)) {
                large.nrequests += account.filled.get();
            }
        }
    }
}

/// Whether allocations of the arena with this index are in heap profiles.
fn is_profiled(arena: u32) -> bool {
    arena_list::by_id(arena).is_none_or(Arena::is_profiled)
}

fn add_arena(sum: &mut Sum, arena: &'static Arena, stats: Option<&mut ArenaStats>, now: u64) {
    let mut stats = stats;
    for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
        add_bin(sum, arena, class, stats.as_deref_mut());
    }
    sum.totals.work.add_pages_lock(arena.pages.counts());
    let mut pages = arena.pages.lock();
    let counts = pages.allocator.counts();
    sum.totals.metadata_edata += counts.records * size_of::<Extent>();
    sum.large += pages.large.bytes;
    sum.totals.n_open += pages.entries.open();
    // Pages without memory inside slabs hold no block, so they count as retained.
    let holes = holes::in_arena(arena.id()).min(counts.active);
    sum.totals.active += (counts.active - holes) * PAGE;
    sum.totals.dirty += (counts.dirty + counts.purging) * PAGE;
    sum.totals.muzzy += counts.muzzy * PAGE;
    sum.totals.retained += (counts.retained + holes) * PAGE;
    sum.totals.holes += holes * PAGE;
    sum.totals.purges += counts.purges.dirty.calls + counts.purges.muzzy.calls;
    sum.totals.work.runs_taken += counts.taken;
    sum.totals.work.runs_given += counts.given;
    sum.totals.purged_pages += counts.purges.dirty.pages + counts.purges.muzzy.pages;
    add_large(sum, arena, &pages, stats.as_deref_mut());
    let Some(stats) = stats else { return };
    stats.initialized = arena.is_live();
    stats.uptime = now.saturating_sub(arena.born.load(Relaxed));
    let aging = pages.allocator.aging();
    (stats.dirty_decay_ms, stats.muzzy_decay_ms) = (aging.millis(true), aging.millis(false));
    stats.dirty.add(&purges(counts.purges.dirty));
    stats.muzzy.add(&purges(counts.purges.muzzy));
    stats.pages_mutex.add_history(arena.pages.history());
    let space = &mut stats.space;
    space.pactive = counts.active - holes;
    space.pdirty = counts.dirty + counts.purging;
    space.pmuzzy = counts.muzzy;
    space.retained = (counts.retained + holes) * PAGE;
    space.extent_avail = counts.spares;
    space.abandoned_vm = counts.abandoned * PAGE;
    space.metadata_edata = counts.records * size_of::<Extent>();
    if stats.initialized {
        space.base = size_of::<Arena>() + pages.slabs.record_bytes + space.metadata_edata;
    }
    add_classes(stats, &pages);
}

fn purges(of: Purges) -> PurgeStats {
    PurgeStats { npurge: of.passes, nmadvise: of.calls, purged: of.pages }
}

/// Adds what a bin did past the caches, and its slabs.
fn add_bin(sum: &mut Sum, arena: &Arena, class: SizeClass, stats: Option<&mut ArenaStats>) {
    let bin = arena.bin(class);
    sum.totals.work.add_bin_lock(bin.slabs.counts());
    let slabs = bin.slabs.lock();
    let size = class.size() as u64;
    sum.totals.n_open += slabs.entries.open();
    let (filled, flushed) = (bin.filled.get(), bin.flushed.get());
    sum.taken += filled * size;
    sum.returned += flushed * size;
    if arena.is_profiled() {
        sum.classes.add_small(class, filled as i64 - flushed as i64, filled);
    }
    sum.sent += bin.sent.get() * size;
    sum.absorbed += bin.absorbed.get() * size;
    let Some(stats) = stats else { return };
    if let Some(mutex) = stats.bin_mutexes.get_mut(class.index()) {
        mutex.add_history(bin.slabs.history());
    }
    if let Some(stats) = stats.bins.get_mut(class.index()) {
        stats.nmalloc += filled;
        stats.ndalloc += flushed;
        stats.nrequests += filled;
        stats.nreslabs += slabs.adopted;
        stats.nonfull_slabs += slabs.partial.length();
    }
}

/// Adds large blocks by class.
fn add_large(sum: &mut Sum, arena: &Arena, pages: &ArenaPages, mut stats: Option<&mut ArenaStats>) {
    for class in 0..PAGE_RUN_CLASSES {
        let blocks = pages.large.of(class);
        let (made, gone) = (blocks.made, blocks.gone);
        if arena.is_profiled() {
            sum.classes.add_large(class, made as i64 - gone as i64, made);
        }
        let lextents = stats.as_deref_mut().map(|stats| &mut stats.lextents);
        if let Some(large) = lextents.and_then(|all| all.get_mut(lextent_of_run(class))) {
            let (nmalloc, ndalloc, nrequests) = (made, gone, made);
            large.add(&LargeStats { nmalloc, ndalloc, nrequests, curlextents: 0 });
        }
    }
}

/// Adds slabs and unused runs by class, under the lock of the pages.
fn add_classes(stats: &mut ArenaStats, pages: &ArenaPages) {
    for class in SizeClass::all() {
        let slabs = pages.slabs.of(class);
        let now = (slabs.made - slabs.gone) as usize;
        stats.space.slab_bytes += now * usize::from(class.row().slab_pages) * PAGE;
        if let Some(bin) = stats.bins.get_mut(class.index()) {
            bin.nslabs += slabs.made;
            bin.curslabs += now;
            bin.nonfull_slabs = bin.nonfull_slabs.min(bin.curslabs);
        }
    }
    stats.large.allocated = pages.large.bytes.saturating_sub(stats.space.kept_bytes);
    for class in 0..PAGE_RUN_CLASSES {
        let unused = |state| pages.allocator.filed(state, class);
        if let Some(extents) = stats.extents.get_mut(class) {
            let (dirty, muzzy) = (unused(ExtentState::Dirty), unused(ExtentState::Muzzy));
            let retained = unused(ExtentState::Retained);
            (extents.ndirty, extents.dirty_bytes) = (dirty.runs, dirty.pages * PAGE);
            (extents.nmuzzy, extents.muzzy_bytes) = (muzzy.runs, muzzy.pages * PAGE);
            (extents.nretained, extents.retained_bytes) = (retained.runs, retained.pages * PAGE);
        }
    }
}
