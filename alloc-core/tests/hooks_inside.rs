//! What a thread does while an extent hook runs in it: no hooks of other arenas are called, no
//! memory of other arenas is touched, and nothing is lost.
#![allow(unsafe_code)]

mod common;
#[allow(dead_code, reason = "for several test programs")]
#[path = "hooks/recording.rs"]
mod recording;
#[allow(dead_code, reason = "for several test programs")]
#[path = "hooks/at_work.rs"]
mod at_work;
#[path = "hooks/functions.rs"]
mod functions;

use at_work::{block_in, create, destroy, free, stop_at, with_a_hooked_first_arena};
use common::alone;
use common::block::Block;
use common::child::{play_well, scenario, tell};
use common::idling::forked;
use lumalloc::control::arenas::{self, Pages};
use lumalloc::control::{self, ARENAS_ALL, limits, purge};
use lumalloc::observe::{self, totals};
use lumalloc::raw::{self, Flags};
use recording::{Op, Recording};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Allocates and frees a large block, so that the slow path does what is due.
fn tick() {
    let block = raw::malloc(MIB);
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(block) };
}

#[test]
fn what_a_hook_lacks_is_not_taken_from_what_another_thread_lacked() {
    assert_eq!(play_well("lacks", "narenas:2"), ["served"]);
}

#[test]
fn a_hook_that_the_background_thread_calls_may_turn_it_off_and_on() {
    assert_eq!(play_well("turned off", "dirty_decay_ms:100,background_thread:true"), ["off"]);
}

#[test]
fn a_hook_that_the_background_thread_calls_may_reset_locks_while_the_thread_is_stopped() {
    assert_eq!(play_well("resets", "dirty_decay_ms:100,background_thread:true"), ["stopped"]);
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
    match name.as_str() {
        "lacks" => lacks(),
        "turned off" => turned_off(),
        "resets" => resets(),
        _ => panic!("no scenario {name}"),
    }
}

fn lacks() {
    // Gives another automatic arena addresses that serve where the first arena has none.
    free(&block_in(1, 8 * MIB));
    assert!(purge(ARENAS_ALL));
    with_a_hooked_first_arena(|first| {
        let (of_x, of_y) = (Recording::of_buffer(64 * MIB), Recording::of_buffer(64 * MIB));
        let (x, y) = (create(of_x), create(of_y));
        free(&block_in(y, MIB));
        let (door, stopped) = stop_at(first, Op::Alloc);
        // The first arena lacks this run. Its hooks are not asked, as the other arena has one.
        thread::spawn(|| {
            let other = Block::filled(raw::malloc(3 * MIB), 3 * MIB, 1).expect("a block");
            free(&other);
        })
        .join()
        .unwrap();
        // A thread that lacks a run in X and asks the hooks for all lacking runs would stop in the
        // first arena's hook.
        let (done, is_done) = channel();
        let worker = thread::spawn(move || {
            let block = block_in(x, MIB);
            done.send(()).unwrap();
            block
        });
        while stopped.try_recv().is_err() && is_done.try_recv().is_err() {
            thread::yield_now();
        }
        // A hook of Y lacks pages in the first arena. Only these pages come from the system.
        let blocks = Arc::new(AtomicUsize::new(0));
        let seen = blocks.clone();
        of_y.inside(move |op| {
            if op == Op::Dalloc {
                let blocks = [8000; 1000].map(|size| Block::filled(raw::malloc(size), size, 2));
                blocks.iter().flatten().for_each(free);
                assert!(blocks.iter().all(Option::is_some));
                seen.fetch_add(1, Relaxed);
            }
        });
        assert!(purge(y));
        assert!(blocks.load(Relaxed) > 0);
        door.open();
        let block = worker.join().unwrap();
        assert!(of_x.holds(block.address), "the memory of its own hooks");
        tell("served");
        free(&block);
        for (recording, arena) in [(of_x, x), (of_y, y)] {
            destroy(arena);
            assert_eq!(recording.bytes_held(), 0);
        }
    });
}

fn turned_off() {
    static IS_OFF: AtomicBool = AtomicBool::new(false);
    let recording = Recording::of_buffer(16 * MIB);
    recording.inside(|_| {
        if thread::current().id() != *MAIN.get().expect("set") && !IS_OFF.load(Relaxed) {
            assert!(control::set_background_thread(false));
            assert!(control::set_background_thread(true) && control::background_thread());
            assert!(control::set_background_thread(false));
            IS_OFF.store(true, Relaxed);
        }
    });
    MAIN.set(thread::current().id()).expect("once");
    let arena = create(recording);
    while !IS_OFF.load(Relaxed) {
        free(&block_in(arena, 4 * MIB));
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!control::background_thread());
    while totals().background_threads > 0 {
        thread::yield_now();
    }
    // A fork takes the lock under which the thread is started and stopped.
    forked(|| ());
    assert!(control::set_background_thread(true));
    assert!(control::set_background_thread(false));
    assert_eq!(totals().background_threads, 0);
    tell("off");
}

fn resets() {
    let (inside, is_inside) = channel();
    let stops = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stops);
    let recording = Recording::of_buffer(16 * MIB);
    recording.inside(move |_| {
        if thread::current().id() != *MAIN.get().expect("set") {
            inside.send(()).expect("the main thread waits");
            while !stopping.load(Relaxed) {
                thread::yield_now();
            }
            // The main thread has the lock by now, or very soon.
            thread::sleep(Duration::from_millis(50));
            observe::reset_mutexes();
        }
    });
    MAIN.set(thread::current().id()).expect("once");
    let arena = create(recording);
    while is_inside.try_recv().is_err() {
        free(&block_in(arena, 4 * MIB));
        thread::sleep(Duration::from_millis(20));
    }
    stops.store(true, Relaxed);
    assert!(control::set_background_thread(false));
    assert_eq!(totals().background_threads, 0);
    tell("stopped");
}

static MAIN: OnceLock<ThreadId> = OnceLock::new();

#[test]
fn a_purge_inside_a_hook_is_done_after_it_by_the_arena_s_own_hooks() {
    let _alone = alone();
    let (of_x, of_y) = (Recording::of_buffer(64 * MIB), Recording::of_buffer(64 * MIB));
    let (x, y) = (create(of_x), create(of_y));
    free(&block_in(x, MIB));
    of_x.forget();
    type Purge = fn(u32);
    let ways: [Purge; 3] = [
        |_| assert!(purge(ARENAS_ALL)),
        |x| assert!(purge(x)),
        |x| assert!(arenas::set_decay_ms(x, Pages::Dirty, 0)),
    ];
    for (round, way) in ways.into_iter().enumerate() {
        of_y.inside(move |op| {
            if op == Op::Alloc {
                way(x);
                assert!(arenas::decay(x));
                assert_eq!(of_x.ops(), [], "not by the way");
            }
        });
        let block = block_in(y, (4 * MIB) << round);
        tick();
        assert!(of_x.ops().contains(&Op::Dalloc), "{round}");
        free(&block);
        free(&block_in(x, MIB));
        tick();
        of_x.forget();
    }
    destroy(x);
    destroy(y);
    assert_eq!((of_x.bytes_held(), of_y.bytes_held()), (0, 0));
}

#[test]
fn inside_a_hook_blocks_are_freed_and_resized_without_hooks() {
    let _alone = alone();
    let (of_x, of_y) = (Recording::of_buffer(64 * MIB), Recording::of_buffer(64 * MIB));
    let (x, y) = (create(of_x), create(of_y));
    assert!(arenas::set_oversize_threshold(x, 2 * MIB));
    let (long, short) = (block_in(x, 3 * MIB), block_in(x, MIB));
    free(&block_in(x, MIB / 2));
    of_x.forget();
    let freed = AtomicBool::new(false);
    let at = short.address;
    of_y.inside(move |op| {
        if op == Op::Alloc && !freed.swap(true, Relaxed) {
            free(&long);
            let short: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
            for size in [MIB / 2, MIB + MIB / 2] {
                // SAFETY: a block of this allocator.
                let kept = unsafe { raw::resize_in_place(short, size, 0, Flags::NONE) };
                assert_eq!(kept, MIB, "as long as it was");
            }
            assert_eq!(of_x.ops(), []);
        }
    });
    free(&block_in(y, MIB));
    free(&short);
    destroy(x);
    destroy(y);
    assert_eq!((of_x.bytes_held(), of_y.bytes_held()), (0, 0));
}

#[test]
fn an_arena_that_a_hook_names_is_asked_by_its_own_hooks() {
    let _alone = alone();
    let (of_x, of_y) = (Recording::of_buffer(64 * MIB), Recording::of_buffer(64 * MIB));
    let of_z = Recording::of_buffer(64 * MIB);
    let (x, y, z) = (create(of_x), create(of_y), create(of_z));
    free(&block_in(z, MIB));
    let done = AtomicBool::new(false);
    of_y.inside(move |op| {
        if op == Op::Alloc && !done.swap(true, Relaxed) {
            for size in [100, MIB] {
                let block = block_in(x, size);
                assert!(of_x.holds(block.address));
                free(&block);
            }
            destroy(z);
        }
    });
    free(&block_in(y, MIB));
    assert!(of_x.count(Op::Alloc) >= 1);
    assert_eq!(of_x.count(Op::Dalloc), 0);
    assert!(of_z.count(Op::Dalloc) >= 1 && of_z.bytes_held() == 0);
    destroy(x);
    destroy(y);
    assert_eq!((of_x.bytes_held(), of_y.bytes_held()), (0, 0));
}

#[test]
fn with_hooks_on_the_first_arena_a_hook_s_own_blocks_come_from_the_system() {
    let _alone = alone();
    with_a_hooked_first_arena(|first| {
        let (asked, depth) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = asked.clone();
        first.inside(move |op| {
            assert_eq!(depth.fetch_add(1, Relaxed), 0, "never one inside another");
            if op == Op::Alloc {
                // Longer than any unused run.
                let size = (300 + 8 * seen.fetch_add(1, Relaxed)) * MIB;
                let zeroed = raw::malloc_zeroed(size);
                // SAFETY: the block is that long.
                let bytes = unsafe { std::slice::from_raw_parts(zeroed, 4096) };
                assert!(bytes.iter().all(|byte| *byte == 0));
                // SAFETY: a block of this allocator, freed once.
                unsafe { raw::free(zeroed) };
                let small = Block::filled(raw::malloc(3000), 3000, 1).expect("a block");
                free(&small);
            }
            depth.fetch_sub(1, Relaxed);
        });
        free(&block_in(0, 200 * MIB));
        assert!(asked.load(Relaxed) > 0);
        assert!(purge(0));
    });
}

static LIMITED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn make_room(
    recording: *mut c_void,
    _held: usize,
    _bound: usize,
    _wanted: usize,
    arena: u32,
) -> bool {
    // SAFETY: the argument is the recording that the test gave.
    let recording: &Recording = unsafe { &*recording.cast() };
    let before = recording.count(Op::Dalloc);
    let kept = LIMITED.swap(0, Relaxed);
    if kept != 0 {
        // SAFETY: a block of the test, freed once.
        unsafe { raw::deallocate(std::ptr::with_exposed_provenance_mut(kept), Flags::NONE) };
        assert!(purge(arena));
        assert!(recording.count(Op::Dalloc) > before, "no hook runs: it is done at once");
    }
    kept != 0
}

#[test]
fn who_is_asked_at_a_bound_may_purge_arenas_with_hooks() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 * MIB);
    let arena = create(recording);
    let first = block_in(arena, 4 * MIB);
    LIMITED.store(first.address, Relaxed);
    let argument: *mut c_void = std::ptr::from_ref(recording).cast_mut().cast();
    // SAFETY: the function takes its argument, which stays valid.
    assert!(unsafe { limits::set_callback(Some(make_room), argument) });
    assert!(arenas::set_limit(arena, 6 * MIB));
    let second = block_in(arena, 5 * MIB);
    // SAFETY: no function is given.
    assert!(unsafe { limits::set_callback(None, std::ptr::null_mut()) });
    assert_eq!(LIMITED.load(Relaxed), 0, "asked");
    free(&second);
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0);
}

/// Returns a byte of a block that was just allocated, and sets it to 1 before the block is freed.
fn byte_then_one() -> u8 {
    let block = raw::malloc(500);
    // SAFETY: a block of this allocator, this long.
    let byte = unsafe { block.wrapping_add(100).replace(1) };
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(block) };
    byte
}

#[test]
fn a_thread_inside_a_hook_follows_a_switch_of_modes_when_the_hook_is_done() {
    let _alone = alone();
    let before = control::fill();
    for junk_allocated in [true, false] {
        let of_x = Recording::of_buffer(64 * MIB);
        let x = create(of_x);
        let (door, stopped) = stop_at(of_x, Op::Alloc);
        let worker = thread::spawn(move || {
            // The thread has a cache before the hook runs in it.
            byte_then_one();
            free(&block_in(x, MIB));
            byte_then_one()
        });
        stopped.recv().unwrap();
        assert!(control::set_fill(control::Fill { junk_allocated, ..before }));
        door.open();
        assert_eq!(worker.join().unwrap(), if junk_allocated { 0xa5 } else { 1 });
        destroy(x);
    }
    assert!(control::set_fill(before));
}
