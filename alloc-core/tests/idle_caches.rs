//! The caches of threads that do nothing are emptied by other threads, and the threads go on when
//! they wake. This program allocates by lumalloc, in children. The tests await figures and never
//! measure time.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::idling::{forked, wait_for};
use lumalloc::{Arena, control, observe};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("sleepers") => sleepers(How::default()),
        Some("hardened sleepers") => sleepers(How { is_hardened: true, ..How::default() }),
        Some("movers") => sleepers(How { arena: Arena::new(), ..How::default() }),
        Some("watched") => sleepers(How { is_watched: true, ..How::default() }),
        Some("wakers") => wakers(false),
        Some("watched wakers") => wakers(true),
        Some("modes") => modes(),
        Some("forks") => forks(),
        Some("pool") => pool(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

const THREADS: u64 = 20;
/// Of how many blocks one is kept.
const KEPT_OF: usize = 200;

fn emptied() -> u64 {
    observe::totals().work.caches_emptied
}

/// Fills the bins of many classes with blocks that were freed, and keeps a few blocks. There are so
/// many that the cache is no longer a small one.
fn fill(number: u64) -> Vec<Vec<u8>> {
    let blocks: Vec<Vec<u8>> =
        (0..2000).map(|n| vec![(number + n) as u8; 16 << (n % 7) as usize]).collect();
    blocks.into_iter().step_by(KEPT_OF).collect()
}

fn check(number: u64, kept: &[Vec<u8>]) {
    for (n, block) in kept.iter().enumerate() {
        assert!(block.iter().all(|byte| *byte == (number + (KEPT_OF * n) as u64) as u8));
    }
}

/// How a thread fills its cache.
#[derive(Clone, Copy, Default)]
struct How {
    /// The arena whose cache it fills. It sleeps outside of the arena.
    arena: Option<Arena>,
    /// Whether each of its operations is seen.
    is_watched: bool,
    /// Whether freed blocks wait, and long ones stay in the cache.
    is_hardened: bool,
}

/// A thread that fills its cache each time that it is told to.
struct Sleeper {
    tell: Sender<()>,
    done: Receiver<(u64, u64)>,
    thread: std::thread::JoinHandle<()>,
}

impl Sleeper {
    fn start(number: u64, how: How) -> Sleeper {
        let (tell, told) = channel::<()>();
        let (answer, done) = channel();
        let thread = std::thread::spawn(move || {
            if how.is_watched {
                control::thread::allocatedp().expect("a thread");
            }
            let mut kept = Vec::new();
            while told.recv().is_ok() {
                check(number, &kept);
                let scope = how.arena.map(|arena| arena.enter().expect("a scope"));
                kept = fill(number);
                drop(scope);
                answer.send((control::thread::allocated(), control::thread::deallocated())).ok();
            }
        });
        Sleeper { tell, done, thread }
    }

    fn wake(&self) -> (u64, u64) {
        self.tell.send(()).expect("a thread");
        self.done.recv().expect("an answer")
    }

    fn end(self) {
        drop(self.tell);
        self.thread.join().expect("a thread");
    }
}

/// Starts the background thread, which a process with unused pages gets.
fn start_passes() {
    drop(vec![1u8; 4 << 20]);
}

fn start_all(how: How) -> Vec<Sleeper> {
    start_passes();
    (0..THREADS).map(|number| Sleeper::start(number, how)).collect()
}

fn wake_all(sleepers: &[Sleeper]) {
    for sleeper in sleepers {
        sleeper.wake();
    }
}

/// The bytes in thread caches.
fn held() -> usize {
    observe::totals().cached
}

/// The most bytes that a thread's cache holds once it is emptied, and with another one of an arena.
/// Full ones hold twice as many.
const LEFT: usize = 8 << 10;
const LEFT_WITH_ANOTHER: usize = 2 * LEFT;
const LEFT_HARDENED: usize = 8 * LEFT;

fn sleepers(how: How) {
    let sleepers = start_all(how);
    let left = match how {
        How { is_hardened: true, .. } => LEFT_HARDENED,
        How { arena: Some(_), .. } => LEFT_WITH_ANOTHER,
        _ => LEFT,
    };
    for _ in 0..3 {
        let before = emptied();
        let counts: Vec<_> = sleepers.iter().map(Sleeper::wake).collect();
        wait_for("emptied caches", || {
            emptied() >= before + THREADS && held() < THREADS as usize * left
        });
        let before = emptied();
        // What a thread allocated and freed is counted once, whoever takes the blocks back.
        for (sleeper, counted) in sleepers.iter().zip(counts) {
            let now = sleeper.wake();
            // The channel keeps some blocks.
            let kept = (now.0 - counted.0).abs_diff(now.1 - counted.1);
            assert!(kept < 4096 && now.0 > counted.0 + 50_000, "{counted:?} {now:?}");
        }
        wait_for("emptied caches", || emptied() >= before + THREADS);
    }
    sleepers.into_iter().for_each(Sleeper::end);
}

#[test]
fn caches_of_sleeping_threads_are_emptied_and_fill_again() {
    play_well("sleepers", "background_thread:true,dirty_decay_ms:10");
}

#[test]
fn caches_that_sleeping_threads_have_left_are_emptied_too() {
    play_well("movers", "background_thread:true,dirty_decay_ms:10");
}

#[test]
fn caches_of_sleeping_threads_that_read_their_counts_are_emptied_too() {
    play_well("watched", "background_thread:true,dirty_decay_ms:10");
}

#[test]
fn caches_of_sleeping_threads_are_emptied_while_a_mode_sees_all_operations() {
    play_well("sleepers", "background_thread:true,dirty_decay_ms:10,junk:true");
    play_well("wakers", "background_thread:true,dirty_decay_ms:10,junk:true");
}

/// The fast path of the hardened tier takes blocks from the bins behind the façade.
#[test]
fn caches_of_sleeping_threads_are_emptied_in_the_hardened_tier() {
    for more in ["", ",junk:true"] {
        let conf = format!("hardened:true,background_thread:true,dirty_decay_ms:10{more}");
        play_well("hardened sleepers", &conf);
        play_well("wakers", &conf);
        play_well("modes", &conf);
        play_well("forks", &conf);
    }
}

/// Threads wake at any moment of the emptying. Some of them use another cache then.
fn wakers(are_watched: bool) {
    start_passes();
    let arena = Arena::new().expect("an arena");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..50 {
            let stop = &stop;
            scope.spawn(move || {
                if are_watched {
                    control::thread::allocatedp().expect("a thread");
                }
                let (mut kept, mut turn) = (fill(number), number);
                while !stop.load(Relaxed) {
                    // A cache is emptied 400 to 500 ms after its thread's last operation.
                    std::thread::sleep(Duration::from_millis(400 + turn * 7 % 120));
                    check(number, &kept);
                    let other = turn.is_multiple_of(2).then(|| arena.enter().expect("a scope"));
                    kept = fill(number);
                    drop(other);
                    turn += 1;
                }
            });
        }
        wait_for("emptied caches", || emptied() >= 400);
        stop.store(true, Relaxed);
    });
}

#[test]
fn threads_may_wake_while_their_caches_are_emptied() {
    play_well("wakers", "background_thread:true,dirty_decay_ms:10");
    play_well("wakers", "background_thread:true,dirty_decay_ms:10,prof:true,lg_prof_sample:12");
    play_well("watched wakers", "background_thread:true,dirty_decay_ms:10");
}

/// Threads whose caches hold most of what they freed, so that the program has never held much less
/// than before, and which sleep then.
fn pool() {
    const POOL: usize = 48;
    let (asleep, wake) = (Barrier::new(POOL + 1), Barrier::new(POOL + 1));
    std::thread::scope(|scope| {
        for number in 0..POOL {
            let (asleep, wake) = (&asleep, &wake);
            let blocks = || (0..1000).map(|n| vec![1u8; 16 + n * 61 % 8000]).collect::<Vec<_>>();
            scope.spawn(move || {
                (0..60).for_each(|_| drop(blocks()));
                asleep.wait();
                wake.wait();
            });
            // One after the other, so that there is no fall.
            while observe::totals().requests < 50_000 * (number as u64 + 1) {
                std::thread::yield_now();
            }
        }
        asleep.wait();
        wait_for("emptied caches", || emptied() >= POOL as u64 / 2);
        wake.wait();
    });
}

#[test]
fn caches_of_a_pool_of_threads_are_emptied_by_default() {
    play_well("pool", "dirty_decay_ms:1000");
}

/// A mode is switched while caches are emptied, and threads wake in it.
fn modes() {
    let sleepers = start_all(How::default());
    for _ in 0..4 {
        let emptied_before = emptied();
        wake_all(&sleepers);
        wait_for("emptied caches", || emptied() >= emptied_before + THREADS);
        let before = control::fill();
        assert!(control::set_fill(control::Fill { junk_allocated: true, ..before }));
        wake_all(&sleepers);
        assert!(control::set_fill(before));
    }
    sleepers.into_iter().for_each(Sleeper::end);
}

#[test]
fn modes_are_switched_while_caches_are_empty() {
    play_well("modes", "background_thread:true,dirty_decay_ms:10");
}

/// A child of a fork has the empty caches of threads that it does not have.
fn forks() {
    let sleepers = start_all(How::default());
    wake_all(&sleepers);
    let mine = fill(3);
    wait_for("emptied caches", || {
        std::thread::sleep(Duration::from_millis(600));
        emptied() >= THREADS
    });
    forked(|| {
        check(3, &mine);
        check(4, &fill(4));
    });
    sleepers.into_iter().for_each(Sleeper::end);
}

#[test]
fn a_fork_finds_empty_caches() {
    play_well("forks", "background_thread:true,dirty_decay_ms:10");
}
