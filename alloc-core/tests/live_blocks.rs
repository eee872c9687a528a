//! The walk over live blocks: what the program holds is found, and nothing else.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::hardened_class;
use common::random::Random;
use lumalloc::control::{arenas, tcache};
use lumalloc::observe::{self, Block, ClassCount};
use lumalloc::raw::{self, Flags};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

const THREADS: u64 = 4;
/// The way of blocks of an arena of their own.
const IN_ARENA: usize = 3;

#[test]
fn what_is_live_is_found_and_nothing_else() {
    for conf in [
        "",
        "narenas:3",
        "tcache:false",
        "hardened:true",
        "junk:true",
        "prof:true,lg_prof_sample:0",
        "prof:true,lg_prof_sample:9",
        "guarded_sample:5",
        "hardened:true,prof:true,lg_prof_sample:9,guarded_sample:20",
        "dirty_decay_ms:0",
    ] {
        play_well("quiet", conf);
    }
}

#[test]
fn blocks_that_stay_are_found_once_while_others_come_and_go() {
    for conf in ["", "hardened:true", "prof:true,lg_prof_sample:9", "guarded_sample:5"] {
        play_well("busy", conf);
    }
}

#[test]
fn each_allocation_is_counted_once_by_its_class() {
    for conf in
        ["", "tcache:false", "narenas:3", "percpu_arena:percpu", "prof:true,lg_prof_sample:9"]
    {
        play_well("counted", conf);
    }
}

#[test]
fn the_child_of_a_fork_finds_the_same_blocks() {
    play_well("fork", "");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().as_deref() {
        Some("quiet") => quiet(),
        Some("busy") => busy(),
        Some("counted") => counted(),
        Some("fork") => fork(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// A block, and how it has to be freed.
#[derive(Clone, Copy)]
struct Held {
    address: usize,
    size: usize,
    align: usize,
    flags: Flags,
    /// The number of its flags among those that there were to choose from.
    way: usize,
}

impl Held {
    fn new(size: usize, align: usize, flags: Flags, way: usize) -> Held {
        let block = raw::allocate(size, flags);
        assert!(!block.is_null(), "{size} {align}");
        Held { address: block.expose_provenance(), size, align, flags, way }
    }

    fn ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// The usable bytes. In the hardened tier, those that the block may hold at most.
    fn usable(&self) -> usize {
        // SAFETY: a live block.
        let usable = unsafe { raw::usable_size(self.ptr()) };
        let is_sample = || observe::heap_map().any(|run| self.is_in_guarded(&run));
        match hardened_class(self.size, self.align) {
            Some(class) if !is_sample() => class - 8,
            _ => raw::block_size(self.ptr()).unwrap_or(usable),
        }
    }

    fn is_in_guarded(&self, run: &observe::Run) -> bool {
        run.state == observe::RunState::Guarded && self.address.wrapping_sub(run.base) < run.bytes
    }

    fn resize(&mut self, size: usize) {
        // SAFETY: a live block, whose old address is not used afterwards.
        let block = unsafe { raw::reallocate(self.ptr(), size, self.flags) };
        assert!(!block.is_null(), "{size}");
        (self.address, self.size) = (block.expose_provenance(), size);
    }

    fn free(self, sized: bool) {
        match sized {
            // SAFETY: a live block with its size and flags, not used afterwards.
            true => unsafe { raw::deallocate_sized(self.ptr(), self.size, self.flags) },
            // SAFETY: a live block, not used afterwards.
            false => unsafe { raw::deallocate(self.ptr(), self.flags) },
        }
    }
}

/// A size of any class, mostly small, now and then large or huge. With their canaries some sizes
/// are of the first large class, but may be used as blocks of the last small one: none of these.
fn size(random: &mut Random) -> usize {
    loop {
        let size = match random.below(100) {
            0 => random.below(8 << 20),
            1..5 => 32768 + random.below(600 << 10),
            5..30 => random.below(33 << 10),
            _ => random.below(1025),
        };
        if !(32761..=32768).contains(&size) {
            return size;
        }
    }
}

/// Allocates a block in one of several ways.
fn make(random: &mut Random, ways: &[Flags]) -> Held {
    let align = 1 << if random.below(8) == 0 { random.below(15) } else { 0 };
    let way = random.below(ways.len());
    Held::new(size(random), align, ways[way].align(align), way)
}

/// Threads allocate, and free what any of them allocated, and then wait while the blocks are
/// compared.
fn quiet() {
    let [arena, later] = [(); 2].map(|()| arenas::create().expect("an arena"));
    let cache = tcache::create().expect("a cache");
    let ways = [
        Flags::NONE,
        Flags::NONE,
        Flags::NONE.uncached(),
        Flags::NONE.arena(arena),
        Flags::NONE.arena(later),
        Flags::NONE.tcache(cache),
    ];
    let held: Arc<Mutex<Vec<Held>>> = Arc::default();
    let barrier = Arc::new(Barrier::new(THREADS as usize + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|seed| {
            let (held, barrier) = (Arc::clone(&held), Arc::clone(&barrier));
            thread::spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..12 {
                    turn(&mut random, &held, &ways);
                    barrier.wait();
                    barrier.wait();
                }
            })
        })
        .collect();
    for _ in 0..12 {
        barrier.wait();
        compare(&held.lock().unwrap(), arena);
        barrier.wait();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for held in held.lock().unwrap().drain(..) {
        held.free(false);
    }
    assert_eq!(observe::blocks(None).next(), None);
    assert!(tcache::destroy(cache));
}

fn turn(random: &mut Random, held: &Mutex<Vec<Held>>, ways: &[Flags]) {
    for _ in 0..400 {
        let mut all = held.lock().unwrap();
        if all.len() > 1500 || (!all.is_empty() && random.below(5) < 2) {
            let at = random.below(all.len());
            let mut taken = all.swap_remove(at);
            drop(all);
            if random.below(3) == 0 {
                taken.resize(size(random));
                held.lock().unwrap().push(taken);
            } else {
                taken.free(random.below(2) == 0);
            }
        } else {
            drop(all);
            let made = make(random, ways);
            held.lock().unwrap().push(made);
        }
    }
}

/// Compares the walks over all blocks and over those of one arena with what is held.
#[track_caller]
fn compare(held: &[Held], arena: u32) {
    let expected: BTreeMap<usize, usize> =
        held.iter().map(|block| (block.address, block.usable())).collect();
    let found: Vec<Block> = observe::blocks(None).collect();
    let seen: BTreeMap<usize, usize> =
        found.iter().map(|block| (block.address, block.usable)).collect();
    assert!(found.len() == seen.len() && seen == expected, "{seen:x?} {expected:x?}");
    let ours: Vec<Block> =
        found.iter().copied().filter(|block| block.arena == Some(arena)).collect();
    assert_eq!(observe::blocks(Some(arena)).collect::<Vec<Block>>(), ours);
    for block in held.iter().filter(|block| block.way == IN_ARENA) {
        let found = found.iter().find(|found| found.address == block.address).unwrap();
        assert!(found.arena.is_none_or(|its| its == arena), "{found:x?}");
    }
    assert_eq!(observe::blocks(Some(u32::MAX)).next(), None);
    assert_eq!(live_counts(), expected_counts(&found));
}

/// The live blocks of each size class that is used, as these blocks say. Guarded samples belong to
/// no arena and no class.
fn expected_counts(found: &[Block]) -> BTreeMap<usize, u64> {
    let mut expected: BTreeMap<usize, u64> = counts().keys().map(|size| (*size, 0)).collect();
    for block in found.iter().filter(|block| block.arena.is_some()) {
        let class = expected.range_mut(block.usable..).next();
        *class.expect("a class that is used").1 += 1;
    }
    expected
}

/// The live blocks of each size class that is used, as they are counted.
fn live_counts() -> BTreeMap<usize, u64> {
    counts().iter().map(|(size, class)| (*size, class.live)).collect()
}

/// The counts of the size classes, by their size.
fn counts() -> BTreeMap<usize, ClassCount> {
    let mut counts = BTreeMap::new();
    observe::class_counts(|class| {
        assert!(class.live <= class.allocations, "{class:?}");
        assert!(counts.insert(class.size, class).is_none(), "{class:?}");
    });
    counts
}

/// Blocks are counted while they are allocated by one thread and freed by another. A third is freed
/// at once, so that the same blocks serve again.
fn counted() {
    for round in 1..=3 {
        for (size, class) in [(100, 112), (5000, 5120), (33_000, 40_960), (3 << 20, 3 << 20)] {
            let mut held = Vec::new();
            for n in 0..300 {
                let block = Held::new(size, 1, Flags::NONE, 0);
                if n % 3 == 0 { block.free(true) } else { held.push(block) }
            }
            let now = counts()[&class];
            assert_eq!((now.allocations, now.live), (300 * round, 200), "{size}");
            thread::scope(|scope| {
                scope.spawn(|| held.into_iter().for_each(|block| block.free(false)));
            });
            assert_eq!(counts()[&class].live, 0, "{size}");
        }
    }
}

/// Threads allocate and free without a pause, and end and start, while the blocks that stay are
/// looked for.
fn busy() {
    let mut random = Random::new(99);
    let stay: Vec<Held> = (0..600).map(|_| make(&mut random, &[Flags::NONE])).collect();
    let stay: BTreeMap<usize, usize> =
        stay.iter().map(|block| (block.address, block.usable())).collect();
    let end = AtomicBool::new(false);
    let passed: Mutex<Vec<Held>> = Mutex::default();
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (end, passed) = (&end, &passed);
            scope.spawn(move || {
                for round in 0.. {
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                    // A thread of its own, whose cache ends with it.
                    thread::scope(|scope| {
                        let mut random = Random::new(seed + round * THREADS);
                        scope.spawn(move || turn(&mut random, passed, &[Flags::NONE]));
                    });
                }
            });
        }
        let end = &end;
        scope.spawn(move || {
            let mut random = Random::new(1234);
            while !end.load(Ordering::Relaxed) {
                tenant(&mut random);
            }
        });
        let ends = Ends(end);
        for _ in 0..20 {
            look_for(&stay);
        }
        drop(ends);
    });
}

/// An arena comes, has blocks, loses them all at once, and goes.
fn tenant(random: &mut Random) {
    let arena = arenas::create().expect("an arena");
    for _ in 0..2 {
        let ways = [Flags::NONE.arena(arena).uncached()];
        for _ in 0..200 {
            make(random, &ways);
        }
        // SAFETY: nothing uses the blocks, and no cache has any.
        assert!(unsafe { arenas::reset(arena) });
    }
    // SAFETY: as above.
    assert!(unsafe { arenas::destroy(arena) });
}

/// Ends the threads, also when a comparison panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Walks while the caller allocates too, and compares what is found with the blocks that stay.
#[track_caller]
fn look_for(stay: &BTreeMap<usize, usize>) {
    let mut found = BTreeMap::new();
    observe::for_each_block(None, |block| {
        let own = raw::malloc(block.usable % 5000);
        assert!(!own.is_null());
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(own) };
        let is_first = found.insert(block.address, block.usable).is_none();
        assert!(is_first || !stay.contains_key(&block.address), "{block:x?} is found twice");
    });
    for (address, usable) in stay {
        assert_eq!(found.get(address), Some(usable), "{address:#x}");
    }
    let runs: Vec<observe::Run> = observe::heap_map().collect();
    assert!(runs.windows(2).all(|two| two[0].base + two[0].bytes <= two[1].base), "{runs:x?}");
    for (address, usable) in stay {
        let run = runs.iter().rfind(|run| run.base <= *address).expect("a run");
        assert!(address + usable <= run.base + run.bytes && run.used > 0, "{address:#x} {run:x?}");
    }
}

/// What a program holds is found in its child too. Blocks that waited in the cache of the other
/// thread are found in addition, because they are lost there.
fn fork() {
    let waits = Arc::new(Barrier::new(2));
    let others = Arc::clone(&waits);
    let thread = thread::spawn(move || {
        let mut random = Random::new(8);
        let freed: Vec<Held> = (0..50).map(|_| make(&mut random, &[Flags::NONE])).collect();
        freed.into_iter().for_each(|block| block.free(true));
        others.wait();
        others.wait();
    });
    waits.wait();
    let mut random = Random::new(7);
    let held: Vec<Held> = (0..500).map(|_| make(&mut random, &[Flags::NONE])).collect();
    let stay: BTreeMap<usize, usize> =
        held.iter().map(|block| (block.address, block.usable())).collect();
    let found = observe::blocks(None).map(|block| (block.address, block.usable));
    assert!(found.eq(stay.iter().map(|(address, usable)| (*address, *usable))));
    // SAFETY: the child walks, and ends without running the parent's code.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let is_right = std::panic::catch_unwind(|| look_for(&stay)).is_ok();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    waits.wait();
    thread.join().unwrap();
    held.into_iter().for_each(|block| block.free(true));
    assert_eq!(observe::blocks(None).next(), None);
}
