//! The snapshot in every detail: against a model for known patterns, and its invariants while
//! threads run.
#![allow(unsafe_code)]

mod common;

use common::alone;
use lumalloc::control::{ARENAS_ALL, arenas, flush_thread_cache, purge};
use lumalloc::observe::{
    ArenaStats, BINS, BinStats, Detail, LargeStats, lextent_size, reset_mutexes, slab_class_size,
    totals,
};
use lumalloc::raw::{self, Flags};
use lumalloc::{Arena, PAGE};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(address)) };
}

fn taken() -> Box<Detail> {
    let mut detail = Box::new(Detail::new());
    detail.refresh();
    detail
}

fn class_of(size: usize) -> usize {
    (0..BINS).find(|class| slab_class_size(*class) >= size).unwrap()
}

fn bin(detail: &Detail, arena: Arena, size: usize) -> BinStats {
    detail.arena(arena.index() as usize).unwrap().bins[class_of(size)]
}

fn large(detail: &Detail, size: usize) -> LargeStats {
    let class = (0..).find(|class| lextent_size(*class) >= size).unwrap();
    detail.merged().unwrap().lextents[class]
}

/// A class of small blocks before and after `events`, which runs on a new thread in a new arena. So
/// no other blocks are counted, and no other thread sends this one to another arena.
fn small_deeds(size: usize, events: impl FnOnce() + Send + 'static) -> (BinStats, BinStats, Arena) {
    let arena = Arena::new().unwrap();
    let before = bin(&taken(), arena, size);
    let thread = thread::spawn(move || {
        let _scope = arena.enter().unwrap();
        events();
        bin(&taken(), arena, size)
    });
    (before, thread.join().unwrap(), arena)
}

#[test]
fn small_blocks_against_a_model() {
    let _alone = alone();
    const SIZE: usize = 2560;
    let (before, after, _) = small_deeds(SIZE, || {
        let blocks: Vec<usize> = (0..1000).map(|_| malloc(SIZE)).collect();
        blocks[..400].iter().for_each(|block| free(*block));
        flush_thread_cache();
    });
    assert_eq!(after.nrequests - before.nrequests, 1000);
    assert_eq!((after.curregs, after.cached), (600, 0));
    assert_eq!(after.nmalloc - after.ndalloc, 600);
    let (out, back) = (after.nmalloc - before.nmalloc, after.ndalloc - before.ndalloc);
    assert!((1000..1100).contains(&out) && out - back == 600, "{out} {back}");
    // 8 blocks per slab. No other thread has any.
    assert!((75..=130).contains(&after.curslabs), "{after:?}");
    assert!(after.nslabs >= 125 && after.nslabs - before.nslabs < 140, "{after:?}");
    assert!(after.nonfull_slabs <= after.curslabs, "{after:?}");
    let (fills, flushes) = (after.nfills - before.nfills, after.nflushes - before.nflushes);
    assert!((100..=1000).contains(&fills) && (1..400).contains(&flushes), "{after:?}");
}

#[test]
fn cached_blocks_are_out_of_their_slabs_but_not_allocated() {
    let _alone = alone();
    const SIZE: usize = 1024;
    let (_, with, arena) = small_deeds(SIZE, || {
        let blocks: Vec<usize> = (0..8).map(|_| malloc(SIZE)).collect();
        blocks.iter().for_each(|block| free(*block));
    });
    assert!(with.cached >= 8 && with.curregs == with.cached, "{with:?}");
    let gone = bin(&taken(), arena, SIZE);
    assert_eq!((gone.curregs, gone.cached), (0, 0), "the thread is gone");
}

#[test]
fn blocks_past_the_caches_are_counted_one_by_one() {
    let _alone = alone();
    const SIZE: usize = 7168;
    let (before, after, _) = small_deeds(SIZE, || {
        let flags = Flags::NONE.uncached();
        let blocks: Vec<_> = (0..10).map(|_| raw::allocate(SIZE, flags)).collect();
        // SAFETY: live blocks, not used afterwards.
        blocks[..3].iter().for_each(|block| unsafe { raw::deallocate(*block, flags) });
    });
    let (out, back) = (after.nmalloc - before.nmalloc, after.ndalloc - before.ndalloc);
    assert_eq!((out, back, after.nrequests - before.nrequests), (10, 3, 10));
    // Four blocks per slab: three slabs, of which the first has one block left.
    assert_eq!((after.curregs, after.cached, after.curslabs), (7, 0, 3));
    assert_eq!((after.nfills, after.nflushes), (before.nfills, before.nflushes));
}

#[test]
fn large_blocks_against_a_model() {
    let _alone = alone();
    let before = taken();
    thread::spawn(move || {
        let blocks: Vec<usize> = (0..5).map(|_| malloc(3 << 20)).collect();
        blocks[..2].iter().for_each(|block| free(*block));
        let after = taken();
        let (was, is) = (large(&before, 3 << 20), large(&after, 3 << 20));
        assert_eq!((is.nmalloc - was.nmalloc, is.ndalloc - was.ndalloc), (5, 2));
        assert_eq!((is.nrequests - was.nrequests, is.curlextents - was.curlextents), (5, 3));
        let allocated = |detail: &Detail| detail.merged().unwrap().large.allocated;
        assert!(allocated(&after) - allocated(&before) >= 9 << 20);
        // A block that moves to another class counts as another block.
        let ptr = std::ptr::with_exposed_provenance_mut(blocks[4]);
        // SAFETY: a live block, not used afterwards.
        let longer = unsafe { raw::realloc(ptr, 20 << 20) };
        assert!(!longer.is_null());
        let moved = taken();
        assert_eq!(large(&moved, 3 << 20).curlextents, is.curlextents - 1);
        assert_eq!(large(&moved, 20 << 20).curlextents, large(&after, 20 << 20).curlextents + 1);
    })
    .join()
    .unwrap();
}

#[test]
fn kept_blocks_are_requests_but_not_allocated() {
    let _alone = alone();
    const SIZE: usize = 448 << 10;
    thread::spawn(|| {
        let before = taken();
        (0..50).for_each(|_| free(malloc(SIZE)));
        let after = taken();
        let (was, is) = (large(&before, SIZE), large(&after, SIZE));
        assert_eq!(is.nrequests - was.nrequests, 50);
        assert!(is.nmalloc - was.nmalloc < 10, "{is:?}");
        let (all, then) = (after.merged().unwrap(), before.merged().unwrap());
        assert!(all.space.kept_bytes >= then.space.kept_bytes + SIZE, "{all:?}");
        assert_eq!(after.totals().kept, all.space.kept_bytes);
        let more = after.totals().allocated.abs_diff(before.totals().allocated);
        assert!(more < SIZE / 2, "{more}");
    })
    .join()
    .unwrap();
}

#[test]
fn unused_runs_are_counted_by_class_and_state() {
    let _alone = alone();
    free(malloc(1 << 20));
    assert!(purge(ARENAS_ALL));
    free(malloc(100 << 10));
    let detail = taken();
    let all = detail.merged().unwrap();
    let bytes = |of: fn(&lumalloc::observe::ExtentStats) -> usize| {
        all.extents.iter().map(of).sum::<usize>()
    };
    assert_eq!(bytes(|class| class.dirty_bytes), all.space.pdirty * PAGE);
    assert_eq!(bytes(|class| class.muzzy_bytes), all.space.pmuzzy * PAGE);
    // Free pages inside slabs are not runs.
    assert_eq!(bytes(|class| class.retained_bytes) + detail.totals().holes, all.space.retained);
    assert!(all.extents.iter().any(|class| class.nretained > 0));
    assert!(all.extents.iter().any(|class| class.ndirty > 0));
}

#[test]
fn locks_have_a_history_that_can_begin_anew() {
    let _alone = alone();
    let pages = || taken().merged().unwrap().pages_mutex;
    (0..100).for_each(|_| free(malloc(1 << 20)));
    assert!(pages().num_ops >= 200);
    reset_mutexes();
    assert!(pages().num_ops < 20);
    let waits =
        taken().merged().unwrap().bin_mutexes.iter().map(|mutex| mutex.num_wait).sum::<u64>();
    assert_eq!(waits, 0);
}

/// Checks what must hold of every snapshot.
fn judge(detail: &Detail) {
    let (totals, all) = (detail.totals(), detail.merged().unwrap());
    let arenas: Vec<&ArenaStats> =
        (0..detail.arenas_end()).filter_map(|index| detail.arena(index)).collect();
    for arena in arenas.iter().chain([&all]) {
        let (space, active) = (&arena.space, arena.space.pactive * PAGE);
        assert!(arena.allocated() <= active && active <= space.resident, "{space:?}");
        assert!(space.resident <= space.mapped + space.base);
        for bin in &arena.bins {
            assert_eq!(bin.curregs as u64, bin.nmalloc - bin.ndalloc);
            assert!(bin.cached <= bin.curregs && bin.nonfull_slabs <= bin.curslabs);
        }
        for large in &arena.lextents {
            assert_eq!(large.curlextents as u64, large.nmalloc - large.ndalloc);
        }
        let small = arena.bins.iter().map(|bin| bin.nmalloc).sum::<u64>();
        assert_eq!(small, arena.small.nmalloc);
        let large = arena.lextents.iter().map(|large| large.nmalloc).sum::<u64>();
        assert_eq!(large, arena.large.nmalloc);
    }
    let sum = |of: fn(&ArenaStats) -> usize| arenas.iter().map(|arena| of(arena)).sum::<usize>();
    assert_eq!(totals.allocated, sum(ArenaStats::allocated));
    assert_eq!(totals.active, sum(|arena| arena.space.pactive * PAGE));
    assert_eq!(totals.resident, sum(|arena| arena.space.resident));
    assert_eq!(totals.mapped, sum(|arena| arena.space.mapped));
    assert_eq!(totals.metadata, sum(|arena| arena.space.base));
    assert_eq!(totals.cached, sum(|arena| arena.space.tcache_bytes));
    assert!(totals.allocated <= totals.active && totals.active <= totals.resident);
    assert!(totals.resident <= totals.mapped + totals.metadata);
}

/// The counts of all classes of an arena, which never decrease.
fn counters(arena: &ArenaStats) -> Vec<u64> {
    let bins = arena.bins.iter().flat_map(|bin| {
        [bin.nmalloc, bin.ndalloc, bin.nrequests, bin.nfills, bin.nflushes, bin.nslabs]
    });
    let large = arena.lextents.iter().flat_map(|l| [l.nmalloc, l.ndalloc, l.nrequests]);
    bins.chain(large).collect()
}

#[test]
fn invariants_hold_and_counts_never_go_back_while_threads_run() {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let requests = AtomicUsize::new(0);
    thread::scope(|scope| {
        let worker = |seed| {
            let (stop, requests) = (&stop, &requests);
            scope.spawn(move || {
                let mut random = common::random::Random::new(seed);
                let mut live: Vec<usize> = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let most = if random.below(50) == 0 { 600_000 } else { 5000 };
                    let size = 1 + random.below(most);
                    live.push(malloc(size));
                    requests.fetch_add(1, Ordering::Relaxed);
                    if live.len() > 300 {
                        let at = random.below(live.len());
                        free(live.swap_remove(at));
                    }
                    if random.below(2000) == 0 {
                        // Another thread frees the rest.
                        let rest = std::mem::take(&mut live);
                        thread::spawn(move || rest.into_iter().for_each(free)).join().unwrap();
                    }
                }
                live.into_iter().for_each(free);
            })
        };
        let workers: Vec<_> = (0..4).map(worker).collect();
        let mut detail = Box::new(Detail::new());
        let mut before: Vec<Vec<u64>> = Vec::new();
        let mut walks = 0;
        while walks < 400 || requests.load(Ordering::Relaxed) < 100_000 {
            walks += 1;
            detail.refresh();
            judge(&detail);
            let now: Vec<Vec<u64>> = (0..detail.arenas_end())
                .map(|index| detail.arena(index).map(counters).unwrap_or_default())
                .collect();
            for (now, before) in now.iter().zip(&before) {
                assert!(now.iter().zip(before).all(|(now, before)| now >= before));
            }
            before = now;
        }
        stop.store(true, Ordering::Relaxed);
        // The scope waits only for the closures, not until the caches have returned their blocks.
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    });
    let detail = taken();
    judge(&detail);
    let simple = totals();
    assert_eq!(detail.totals().active, simple.active);
    assert_eq!(detail.totals().remote_frees, simple.remote_frees);
    // No thread runs, so not one block may be miscounted.
    assert_eq!(detail.totals().allocated, simple.allocated);
}

#[test]
fn a_destroyed_arena_leaves_its_counts_and_the_next_of_its_index_begins_at_none() {
    let _alone = alone();
    let create = || arenas::create().expect("an arena");
    let fill = |index: u32, n: usize| {
        for size in [5120, 20_000, 200_000] {
            (0..n).for_each(|_| assert!(!raw::allocate(size, Flags::NONE.arena(index)).is_null()));
        }
    };
    let requests = |detail: &Detail| {
        let merged = detail.merged().unwrap();
        merged.small.nrequests + merged.large.nrequests
    };
    let mut detail = taken();
    let merged = counters(detail.merged().unwrap());
    let requested = requests(&detail);
    for n in [10, 3] {
        let index = create();
        fill(index, n);
        detail.refresh();
        judge(&detail);
        let lived = detail.arena(index as usize).unwrap();
        let class = class_of(5120);
        assert_eq!((lived.bins[class].curregs, lived.bins[class].nmalloc), (n, n as u64));
        assert_eq!((lived.small.nmalloc, lived.large.nmalloc), (2 * n as u64, n as u64));
        assert_eq!(lived.bins[class_of(20_000)].curregs, n, "slabs end at 32 KiB");
        assert!(lived.allocated() >= n * 225_000 && lived.space.tcache_bytes == 0);
        // SAFETY: the blocks of the arena are no longer used.
        assert!(unsafe { arenas::destroy(index) });
        detail.refresh();
        judge(&detail);
        assert!(detail.arena(index as usize).is_none());
    }
    let destroyed = detail.destroyed().unwrap();
    assert_eq!((destroyed.small.nmalloc, destroyed.small.ndalloc), (26, 26));
    assert_eq!((destroyed.large.nmalloc, destroyed.large.ndalloc), (13, 13));
    assert_eq!((destroyed.bins[class_of(20_000)].nmalloc, destroyed.allocated()), (13, 0));
    let now = counters(detail.merged().unwrap());
    assert!(now.iter().zip(&merged).all(|(now, before)| now >= before));
    assert_eq!(requests(&detail) - requested, 39, "none is counted twice");
}

#[test]
fn an_arena_in_the_place_of_another_is_no_older_than_itself() {
    let _alone = alone();
    let [place, other] = [0; 2].map(|_| arenas::create().expect("an arena"));
    // SAFETY: the arena has no blocks.
    assert!(unsafe { arenas::destroy(place) });
    assert_eq!(arenas::create(), Some(place), "the lowest index is used again");
    let detail = taken();
    let age = |index: u32| detail.arena(index as usize).unwrap().uptime;
    assert!(age(place) < age(other), "{} {}", age(place), age(other));
    for arena in [place, other] {
        // SAFETY: the arena has no blocks.
        assert!(unsafe { arenas::destroy(arena) });
    }
}
