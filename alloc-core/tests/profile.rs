//! The heap profiler: what it samples, and that it notices each free.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::Lumalloc;
use lumalloc::control::{self, arenas};
use lumalloc::observe::{self, LiveSample, ProfileEntry};
use lumalloc::raw::{self, Flags};
use std::alloc::Layout;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

/// Each byte is a sample.
const ALL: &str = "prof:true,lg_prof_sample:0";

#[test]
fn without_the_option_nothing_is_sampled() {
    play_well("off", "lg_prof_sample:0");
}

#[test]
fn each_way_to_allocate_is_sampled_and_each_free_is_noticed() {
    for more in ["", ",tcache:false", ",junk:true", ",hardened:true", ",guarded_sample:5"] {
        let conf = format!("prof:true,lg_prof_sample:0{more}");
        play_well("ways", &conf);
    }
}

#[test]
fn a_sample_that_is_freed_by_its_layout_is_noticed_before_its_place_is_used_again() {
    play_well("layouts", ALL);
    // At other rates a sample may wait in a bin. A block of two bytes on average is still each one.
    play_well("layouts", "prof:true,lg_prof_sample:1,prof_seed:1");
}

#[test]
fn stacks_begin_at_the_caller_of_the_allocator() {
    play_well("stacks", ALL);
}

#[test]
fn a_short_stack_has_the_innermost_callers() {
    play_well("short", "prof:true,lg_prof_sample:0,prof_bt_max:1");
}

#[test]
fn a_thread_and_the_process_can_be_left_out() {
    play_well("switches", ALL);
}

#[test]
fn samples_of_an_arena_end_with_the_arena() {
    play_well("arenas", ALL);
}

#[test]
fn threads_that_come_and_go_and_forks_lose_no_count() {
    play_well("threads", "prof:true,lg_prof_sample:8");
}

#[test]
fn the_same_seed_takes_the_same_samples() {
    let conf = |seed| format!("prof:true,lg_prof_sample:12,prof_seed:{seed}");
    let play = |seed| common::child::play("seed", &[("LUMALLOC_CONF", &conf(seed))]).told;
    let one = play(7);
    assert!(!one.is_empty() && one == play(7) && one != play(8), "{one:?}");
}

#[test]
fn estimates_lie_within_their_own_error() {
    play_well("estimate", "prof:true,lg_prof_sample:14,prof_seed:1");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().expect("a scenario").as_str() {
        "off" => off(),
        "ways" => ways(),
        "layouts" => layouts(),
        "stacks" => stacks(),
        "short" => short(),
        "switches" => switches(),
        "arenas" => of_arenas(),
        "threads" => threads(),
        "seed" => seed(),
        "estimate" => estimate(),
        other => panic!("{other}"),
    }
}

fn off() {
    assert!(!control::profile::is_enabled());
    drop(black_box(vec![1u8; 1 << 20]));
    assert_eq!(observe::profile_counts(), observe::ProfileCounts::default());
    assert_eq!(live_at(black_box(Box::new(1)).as_ref() as *const i32 as usize).len(), 0);
}

/// The live samples at an address.
fn live_at(address: usize) -> Vec<LiveSample> {
    let mut found = [None; 2];
    let mut count = 0;
    observe::live_samples(|sample| {
        if sample.address == address {
            found[count] = Some(sample);
            count += 1;
        }
    });
    found.into_iter().flatten().collect()
}

fn is_live(block: *mut u8) -> bool {
    let live = live_at(block as usize);
    assert!(live.len() <= 1, "{live:?}");
    live.len() == 1
}

/// Checks a block that was requested with `size` bytes, and frees it.
fn check(block: *mut u8, size: usize, free: impl FnOnce(*mut u8)) {
    assert!(!block.is_null());
    let live = live_at(block as usize);
    let [sample] = live.as_slice() else { panic!("{size}: {live:?}") };
    assert_eq!(sample.requested, size);
    // SAFETY: a live block.
    let usable = unsafe { raw::usable_size(block) };
    assert!(sample.usable >= usable && usable >= size, "{sample:?}");
    assert_eq!(arenas::lookup(block), Some(sample.arena));
    // SAFETY: a live block of this size.
    unsafe { block.write_bytes(7, usable) };
    free(block);
    assert!(!is_live(block), "{size}");
}

fn ways() {
    // The guarded samples of that option are no samples of the profiler.
    let is_guarded = observe::guarded_samples().made > 0
        || std::env::var("LUMALLOC_CONF").is_ok_and(|conf| conf.contains("guarded"));
    let free = |block| {
        // SAFETY: each block is freed once.
        unsafe { raw::free(block) };
    };
    let arena = arenas::create().expect("an arena");
    let cache = control::tcache::create().expect("a cache");
    for size in [1, 8, 100, 1000, 5000, 20_000, 32 << 10, 100_000, 3 << 20] {
        for round in 0..3 {
            if is_guarded && size <= 4096 {
                continue;
            }
            check(raw::malloc(size), size, free);
            check(raw::malloc_zeroed(size), size, free);
            check(raw::malloc_aligned(size, 64), size, free);
            let flags = Flags::NONE.align(128).zeroed();
            for flags in [flags, Flags::NONE.arena(arena)] {
                let block = raw::allocate(size, flags);
                // SAFETY: freed once.
                check(block, size, |block| unsafe { raw::deallocate(block, flags) });
            }
            // Past the cache, and into it.
            for to in [Flags::NONE.uncached(), Flags::NONE.tcache(cache)] {
                let block = raw::allocate(size, Flags::NONE.tcache(cache));
                // SAFETY: freed once.
                check(block, size, |block| unsafe { raw::deallocate(block, to) });
            }
            let old = raw::malloc(size);
            // SAFETY: a live block.
            let new = unsafe { raw::realloc(old, 4 * size + round) };
            assert!(new == old || !is_live(old));
            check(new, 4 * size + round, free);
        }
    }
    for size in [100_000, 1 << 20] {
        let block = raw::malloc(size);
        // SAFETY: a live block, freed once.
        let shorter = unsafe { raw::realloc(block, size / 2) };
        check(shorter, size / 2, free);
    }
}

fn layouts() {
    let layout = Layout::from_size_align(43, 1).expect("a layout");
    let allocate = || {
        // SAFETY: the layout has a size.
        unsafe { std::alloc::alloc(black_box(layout)) }
    };
    let free = move |block| {
        // SAFETY: a block of this layout, freed once.
        unsafe { std::alloc::dealloc(block, black_box(layout)) };
    };
    let count = || {
        let mut live = 0;
        observe::live_samples(|sample| live += usize::from(sample.requested == layout.size()));
        live
    };
    // A path or a name of the test harness may be as long.
    let others = count();
    for n in [1, 10, 300] {
        let blocks: Vec<_> = (0..n).map(|_| allocate()).collect();
        assert!(blocks.iter().all(|block| is_live(*block)));
        blocks.iter().for_each(|block| free(*block));
        let again: Vec<_> = (0..n).map(|_| allocate()).collect();
        // Each block is one sample, although its place may have been another sample's.
        assert!(again.iter().all(|block| is_live(*block)));
        again.iter().for_each(|block| free(*block));
    }
    // What waits in bins is noticed by a look at them.
    control::profile::settle();
    assert_eq!(count(), others);
    // A block that another thread frees.
    let moved = allocate() as usize;
    std::thread::spawn(move || free(std::ptr::with_exposed_provenance_mut(moved)))
        .join()
        .expect("a thread");
    assert!(live_at(moved).is_empty(), "the thread's end empties its bins");
}

#[inline(never)]
fn caller(size: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(size))
}

#[inline(never)]
fn caller_of_malloc(size: usize) -> *mut u8 {
    black_box(raw::malloc(size))
}

#[inline(never)]
fn caller_of_realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: a live block.
    black_box(unsafe { raw::realloc(block, size) })
}

/// Whether an address lies in the first bytes of a function.
fn is_in(function: usize, address: usize) -> bool {
    address.wrapping_sub(function) < 1024
}

fn stacks() {
    for size in [77, 777, 77_777] {
        let vector = caller(size);
        let live = live_at(vector.as_ptr() as usize);
        let stack = live[0].stack;
        let at = stack.iter().position(|frame| is_in(caller as *const () as usize, *frame));
        // Between are functions of the standard library, unless they are inlined.
        assert!(at.is_some_and(|at| at < 12), "{size}: {stack:x?}");
        let block = caller_of_malloc(size);
        let live = live_at(block as usize);
        let inner = live[0].stack[0];
        let function = caller_of_malloc as *const () as usize;
        assert!(is_in(function, inner), "{size}: {inner:x}");
        let longer = caller_of_realloc(block, 3 * size);
        let live = live_at(longer as usize);
        let inner = live[0].stack[0];
        assert!(is_in(caller_of_realloc as *const () as usize, inner), "{size}: {inner:x}");
        // SAFETY: freed once.
        unsafe { raw::free(longer) };
    }
}

fn short() {
    for size in [100, 100_000] {
        let block = caller_of_malloc(size);
        let live = live_at(block as usize);
        let [inner] = live[0].stack else { panic!("{live:x?}") };
        assert!(is_in(caller_of_malloc as *const () as usize, *inner), "{inner:x}");
        // SAFETY: freed once.
        unsafe { raw::free(block) };
    }
}

fn switches() {
    let sampled = || {
        let block = caller_of_malloc(100);
        let live = is_live(block);
        // SAFETY: freed once.
        unsafe { raw::free(block) };
        live
    };
    assert!(control::profile::is_enabled() && control::profile::is_active() && sampled());
    assert!(control::profile::set_thread_active(false));
    assert!(!sampled() && std::thread::spawn(sampled).join().expect("a thread"));
    assert!(!control::profile::set_thread_active(true));
    assert!(control::profile::set_samples_new_threads(false));
    assert!(sampled() && !std::thread::spawn(sampled).join().expect("a thread"));
    assert!(!control::profile::set_samples_new_threads(true));
    assert!(control::profile::set_active(false));
    assert!(!sampled());
    assert!(!control::profile::set_active(true) && sampled());
    let block = caller_of_malloc(100);
    control::profile::reset(20);
    assert_eq!(observe::lg_profile_sample(), 20);
    assert!(!is_live(block));
    let mut entries = 0;
    observe::profile(|_| entries += 1);
    assert!(entries < 4, "{entries}");
    // A new rate holds from the next countdown on: within 64 KiB of requests of a size.
    control::profile::reset(40);
    (0..2000).for_each(|_| assert!(!sampled()));
    control::profile::reset(0);
    assert!((0..2000).any(|_| sampled()) && sampled());
    // SAFETY: freed once.
    unsafe { raw::free(block) };
}

fn of_arenas() {
    for _ in 0..3 {
        let arena = lumalloc::Arena::new().expect("an arena");
        let id = arena.index();
        let of_arena = || {
            let mut count = 0;
            observe::live_samples(|sample| count += usize::from(sample.arena == id));
            count
        };
        for size in [16, 500, 40_000] {
            let run = || std::mem::forget(black_box(vec![1u8; size]));
            arena.run(run).expect("a live arena");
        }
        assert_eq!(of_arena(), 3);
        assert!(control::flush_thread_cache());
        // SAFETY: no block of the arena is used any more.
        assert!(unsafe { arenas::reset(id) });
        assert_eq!(of_arena(), 0);
    }
}

fn threads() {
    let work = || {
        let mut kept = Vec::new();
        for n in 0..20_000usize {
            kept.push(black_box(vec![0u8; n % 700 + 1]));
            if n % 3 == 0 {
                kept.swap_remove(n / 2 % kept.len());
            }
        }
        kept
    };
    for _ in 0..3 {
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(work)).collect();
        // SAFETY: the child only exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(work());
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: the child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
    control::flush_thread_cache();
    let mut counted = 0;
    observe::profile(|entry| counted += entry.allocated - entry.freed);
    let mut live = 0;
    observe::live_samples(|_| live += 1);
    assert_eq!(counted, live);
    assert!(live < 100, "{live} samples are left");
    assert!(observe::profile_counts().taken > 10_000);
    assert_eq!(observe::profile_counts().missed, 0);
}

fn seed() {
    let mut blocks = Vec::with_capacity(1000);
    for _ in 0..1000 {
        let block = caller_of_malloc(512);
        blocks.push(block);
    }
    let sampled: Vec<usize> = (0..1000).filter(|n| is_live(blocks[*n])).collect();
    common::child::tell(&format!("{sampled:?}"));
}

/// Estimates the bytes of three sites. Each estimate has a variance of its own.
fn estimate() {
    let mean = f64::from(1u32 << observe::lg_profile_sample());
    for (size, count) in [(64, 40_000), (1000, 8000), (9000, 2000)] {
        let blocks: Vec<_> = (0..count).map(|_| caller_of_malloc(size)).collect();
        // SAFETY: a live block.
        let usable = unsafe { raw::usable_size(blocks[0]) };
        let mut samples = 0;
        observe::profile(|entry: ProfileEntry| {
            if entry.requested == size
                && is_in(caller_of_malloc as *const () as usize, entry.stack[0])
            {
                samples += entry.allocated - entry.freed;
            }
        });
        let chance = -(-(usable as f64) / mean).exp_m1();
        let estimated = samples as f64 / chance;
        let deviation = (samples as f64 * (1.0 - chance)).sqrt() / chance;
        let error = (estimated - f64::from(count)).abs();
        assert!(error < 3.0 * deviation, "{size}: {estimated} of {count}, {deviation}");
    }
}
