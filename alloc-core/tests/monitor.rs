//! The heap monitor: each allocation and each free of each thread is an event, in order.
#![allow(unsafe_code)]

mod common;
#[path = "monitor/log.rs"]
mod log;
#[path = "monitor/taken.rs"]
mod taken;
#[path = "monitor/unprofiled.rs"]
mod unprofiled;

use common::child::{play_well, scenario};
use common::random::Random;
use log::{Log, MARKER, SHARED, check_order, check_order_but, check_thread, work};
use lumalloc::Lumalloc;
use lumalloc::control::monitor::{self, Event, Record, What};
use lumalloc::control::{self, arenas, tcache};
use lumalloc::raw::{self, Flags};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

/// Events that a recording may have.
const ROOM: usize = 1 << 18;

/// The events so far. The sink may not allocate.
static EVENTS: Mutex<[Event; ROOM]> = Mutex::new(
    [Event { time: 0, address: 0, what: What::Allocated { size: 0 }, stack: 0, thread: 0 }; ROOM],
);
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether the sink was told that it is in the child of a fork.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Whether the sink refuses events.
static REFUSES: AtomicBool = AtomicBool::new(false);

fn keep(record: Record<'_>) -> bool {
    FORKED.fetch_or(matches!(record, Record::Forked), Ordering::Relaxed);
    let Record::Events(events) = record else { return false };
    if REFUSES.load(Ordering::Relaxed) {
        return false;
    }
    let first = COUNT.fetch_add(events.len(), Ordering::Relaxed);
    EVENTS.lock().expect("no panic")[first..][..events.len()].copy_from_slice(events);
    true
}

/// Returns the events of a recording that is stopped.
fn events() -> Vec<Event> {
    let count = COUNT.swap(0, Ordering::Relaxed);
    EVENTS.lock().expect("no panic")[..count].to_vec()
}

#[test]
fn each_operation_is_an_event_of_its_thread() {
    for conf in [
        "",
        "narenas:2",
        "tcache:false",
        "junk:true",
        "hardened:true",
        "prof:true,lg_prof_sample:0",
        "prof:true,lg_prof_sample:9",
        "guarded_sample:5",
        "hardened:true,guarded_sample:20,prof:true,lg_prof_sample:9",
        "dirty_decay_ms:0",
    ] {
        play_well("each", conf);
    }
}

#[test]
fn stacks_begin_at_the_caller_of_the_allocator() {
    for conf in ["", "hardened:true", "tcache:false", "guarded_sample:2"] {
        play_well("stacks", conf);
    }
}

#[test]
fn a_recording_begins_and_ends_while_threads_go_on() {
    for conf in ["", "hardened:true", "junk:true"] {
        play_well("switches", conf);
    }
}

#[test]
fn what_the_sink_refuses_is_counted() {
    play_well("refuses", "");
}

/// A process that is killed then has lost only the last events of each thread.
#[test]
fn what_a_thread_without_a_buffer_did_does_not_wait_for_the_end() {
    play_well("without_buffer", "");
}

#[test]
fn blocks_that_end_with_their_arena_are_freed() {
    play_well("arenas", "");
}

#[test]
fn blocks_of_arenas_that_are_not_profiled_are_left_out() {
    for conf in ["", "hardened:true", "tcache:false", "prof:true,lg_prof_sample:0"] {
        play_well("left_out", conf);
    }
}

#[test]
fn the_child_of_a_fork_records_nothing_until_it_begins_to() {
    play_well("fork", "");
    play_well("fork", "hardened:true");
}

#[test]
fn functions_are_told_of_each_allocation_and_each_free() {
    for conf in ["", "hardened:true", "tcache:false", "prof:true,lg_prof_sample:9"] {
        play_well("told", conf);
    }
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().expect("a scenario").as_str() {
        "each" => each(),
        "stacks" => stacks(),
        "switches" => switches(),
        "refuses" => taken::refuses(),
        "without_buffer" => taken::without_buffer(),
        "arenas" => of_arenas(),
        "left_out" => unprofiled::left_out(),
        "fork" => fork(),
        "told" => told(),
        other => panic!("{other}"),
    }
}

const THREADS: u64 = 4;

fn each() {
    let arena = arenas::create().expect("an arena");
    let cache = tcache::create().expect("a cache");
    let mut logs: Vec<Log> = (0..THREADS).map(|_| Log::new()).collect();
    // The first use of the lock.
    drop(SHARED.lock());
    assert_eq!(monitor::start(keep), Ok(()));
    assert!(monitor::is_running() && monitor::start(keep) == Err(monitor::Refusal::Busy));
    let numbers: Vec<u32> = std::thread::scope(|scope| {
        let begin = |(log, seed)| {
            scope.spawn(move || {
                work(seed, arena, cache, log);
                // SAFETY: takes nothing, and returns a number.
                unsafe { libc::gettid() }.cast_unsigned()
            })
        };
        let threads: Vec<_> = logs.iter_mut().zip(0..THREADS).map(begin).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    assert!(monitor::stop() && !monitor::stop() && !monitor::is_running());
    let mut events = events();
    assert_eq!(monitor::counts().taken, events.len() as u64);
    assert_eq!(monitor::counts().dropped, 0);
    assert!(events.iter().all(|event| event.stack != 0));
    for (number, log) in numbers.iter().zip(&logs) {
        let mut own: Vec<Event> =
            events.iter().filter(|event| event.thread == *number).copied().collect();
        // Those that it noted without a buffer of its own come with other chunks.
        own.sort_by_key(|event| event.time);
        // A thread begins and ends with blocks of the standard library.
        let is_first = |event: &Event| event.what == What::Allocated { size: MARKER };
        let start = own.iter().position(is_first).expect("the first block");
        check_thread(&own[start..], log);
    }
    let live = check_order(&mut events);
    for block in SHARED.lock().expect("no panic").iter().filter(|block| **block != 0) {
        assert!(live.contains_key(block));
    }
}

#[inline(never)]
fn caller_of_malloc(size: usize) -> *mut u8 {
    black_box(raw::malloc(size))
}

#[inline(never)]
fn caller_of_free(block: *mut u8) {
    // SAFETY: freed once.
    unsafe { raw::free(block) };
    black_box(());
}

#[inline(never)]
fn caller_of_deallocate(block: *mut u8) {
    // SAFETY: freed once.
    unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
    black_box(());
}

#[inline(never)]
fn caller_of_sized_free(block: *mut u8) {
    // SAFETY: freed once, by the size that was asked for.
    unsafe { raw::free_sized(block, black_box(777)) };
    black_box(());
}

fn stacks() {
    let frees: [fn(*mut u8); 2] = [caller_of_free, caller_of_deallocate];
    for size in [77, 777, 7777, 77_777, 1 << 20] {
        for free in frees.into_iter().chain((size == 777).then_some(caller_of_sized_free as fn(_)))
        {
            assert_eq!(monitor::start(keep), Ok(()));
            let block = caller_of_malloc(size);
            free(block);
            assert!(monitor::stop());
            let [.., made, gone] = events()[..] else { panic!("too few events") };
            assert_eq!((made.address, made.what), (block as usize, What::Allocated { size }));
            assert!(gone.address == made.address && matches!(gone.what, What::Freed { .. }));
            for (event, function) in
                [(made, caller_of_malloc as *const () as usize), (gone, free as usize)]
            {
                let inner = stack_of(event)[0];
                assert!(inner.wrapping_sub(function) < 256, "{size}: {inner:x}, {function:x}");
            }
        }
    }
}

fn stack_of(event: Event) -> &'static [usize] {
    let mut found = &[][..];
    monitor::stacks_from(event.stack, |number, frames| {
        if number == event.stack {
            found = frames;
        }
    });
    found
}

fn switches() {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let threads: Vec<_> = (0..2)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut random = Random::new(seed);
                let mut blocks = [core::ptr::null_mut::<u8>(); 32];
                while !ENDS.load(Ordering::Relaxed) {
                    let place = &mut blocks[random.below(32)];
                    // SAFETY: null, or a block that leaves the list.
                    unsafe { raw::free(*place) };
                    *place = raw::malloc(random.size());
                }
                // SAFETY: as above.
                blocks.iter().for_each(|block| unsafe { raw::free(*block) });
            })
        })
        .collect();
    for _ in 0..30 {
        assert_eq!(monitor::start(keep), Ok(()));
        while COUNT.load(Ordering::Relaxed) < 2000 {
            std::thread::yield_now();
        }
        assert!(monitor::stop());
        check_order_but(&mut events(), 2);
        // Nothing is recorded between.
        drop(black_box(vec![1u8; 100]));
        assert!(events().is_empty());
    }
    ENDS.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
}

fn of_arenas() {
    let arena = arenas::create().expect("an arena");
    assert_eq!(monitor::start(keep), Ok(()));
    let blocks =
        [100, 100, 5000, 100_000].map(|size| raw::allocate(size, Flags::NONE.arena(arena)));
    // SAFETY: the blocks are not used any more.
    assert!(unsafe { arenas::reset(arena) });
    let last = raw::allocate(10, Flags::NONE.arena(arena));
    // SAFETY: as above.
    assert!(unsafe { arenas::destroy(arena) });
    assert!(monitor::stop());
    let live = check_order(&mut events());
    let gone = blocks.iter().chain([&last]).all(|block| !live.contains_key(&(*block as usize)));
    assert!(gone, "{live:x?}");
}

fn fork() {
    assert_eq!(monitor::start(keep), Ok(()));
    let block = raw::malloc(100);
    // SAFETY: the child calls the allocator and ends.
    match unsafe { libc::fork() } {
        0 => {
            COUNT.store(0, Ordering::Relaxed);
            assert!(!monitor::is_running() && !monitor::stop());
            (0..2000).for_each(|_| drop(black_box(Box::new(1))));
            assert!(COUNT.load(Ordering::Relaxed) == 0 && FORKED.load(Ordering::Relaxed));
            assert_eq!(monitor::start(keep), Ok(()));
            // SAFETY: freed once in this process.
            unsafe { raw::free(block) };
            assert!(monitor::stop());
            let freed = events().iter().filter(|event| event.address == block as usize).count();
            // SAFETY: ends the process; the number has the system's type.
            unsafe { libc::_exit(i32::from(freed != 1)) };
        }
        child => {
            let mut status = 0;
            // SAFETY: the place is writable.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    // SAFETY: freed once in this process.
    unsafe { raw::free(block) };
    assert!(monitor::stop());
    assert!(!check_order(&mut events()).contains_key(&(block as usize)));
    assert!(control::flush_thread_cache());
}

/// The bytes that were told as allocated, by threads that tell.
static TOLD: AtomicUsize = AtomicUsize::new(0);
/// The addresses of blocks that were told and not freed, added up.
static LIVE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn told_allocated(block: *const core::ffi::c_void, size: usize) {
    // It may allocate, which is not told.
    drop(black_box(Box::new(7)));
    TOLD.fetch_add(size, Ordering::Relaxed);
    LIVE.fetch_add(block as usize, Ordering::Relaxed);
}

/// The first byte of the block that was told last as freed.
static FIRST: AtomicUsize = AtomicUsize::new(0);

extern "C" fn told_freed(block: *const core::ffi::c_void) {
    // SAFETY: the block is freed after this.
    let first = unsafe { block.cast::<u8>().read() };
    FIRST.store(first.into(), Ordering::Relaxed);
    LIVE.fetch_sub(block as usize, Ordering::Relaxed);
}

fn told() {
    let sizes = [1, 100, 5000, 20_000, 100_000, 2 << 20];
    assert!(control::profile::set_hooks(Some(told_allocated), Some(told_freed)));
    assert!(matches!(control::profile::hooks(), (Some(_), Some(_))));
    let before = TOLD.load(Ordering::Relaxed);
    let blocks = sizes.map(raw::malloc);
    assert_eq!(TOLD.load(Ordering::Relaxed) - before, sizes.iter().sum::<usize>());
    // The other function may be changed meanwhile, by a thread that is told of nothing else.
    let before = TOLD.load(Ordering::Relaxed);
    let is_done = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let allocating = scope.spawn(|| {
            let mut rounds = 0;
            while !is_done.load(Ordering::Relaxed) || rounds < 1000 {
                // SAFETY: freed once.
                unsafe { raw::free(raw::malloc(100)) };
                rounds += 1;
            }
            rounds
        });
        for _ in 0..200 {
            assert!(control::profile::set_freed_hook(None));
            assert!(control::profile::set_freed_hook(Some(told_freed)));
        }
        is_done.store(true, Ordering::Relaxed);
        allocating.join().expect("no panic")
    });
    let told = TOLD.load(Ordering::Relaxed) - before;
    assert!(told >= rounds * 100, "{told} of {}", rounds * 100);
    // A recording may begin and end meanwhile.
    assert!(monitor::start(keep) == Ok(()) && monitor::stop());
    let live = LIVE.load(Ordering::Relaxed);
    // SAFETY: freed once.
    blocks.into_iter().for_each(|block| unsafe { raw::free(block) });
    let sum: usize = blocks.iter().map(|block| *block as usize).sum();
    assert_eq!(live.wrapping_sub(LIVE.load(Ordering::Relaxed)), sum);
    let block = raw::malloc(1 << 20);
    // SAFETY: a live block.
    unsafe { block.write(77) };
    let live = LIVE.load(Ordering::Relaxed);
    // SAFETY: a live block, and freed once.
    let longer = unsafe { raw::realloc(block, 64 << 20) };
    let moved = (longer as usize).wrapping_sub(block as usize);
    assert_eq!(LIVE.load(Ordering::Relaxed).wrapping_sub(live), moved);
    assert!(moved == 0 || FIRST.load(Ordering::Relaxed) == 77, "told before the memory goes");
    assert!(control::profile::set_hooks(None, None));
    let before = TOLD.load(Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { raw::free(longer) };
    drop(black_box(vec![1u8; 100]));
    assert_eq!(TOLD.load(Ordering::Relaxed), before);
}
