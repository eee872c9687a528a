//! The background thread, in children: an idle process, forks, toggling, refusals, exits. This
//! program allocates by lumalloc. The tests await figures and never measure time.
#![allow(unsafe_code)]

mod common;

use common::child::{play, play_well, scenario, tell};
use common::idling::{
    MIB, background_threads, dirty, doze, forked, no_more_threads, resident,
    rss_without_allocating, threads, wait_for,
};
use lumalloc::{control, observe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("idle") => idle(),
        Some("owned") => owned(),
        Some("wakes") => forked(wakes),
        Some("kept") => kept(),
        Some("fork") => fork(),
        Some("toggle") => toggle(),
        Some("sleeps") => sleeps(),
        Some("refused") => refused(),
        Some("lent") => lent(),
        Some("exit") => assert_ne!(dirty(MIB), 0),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

fn idle() {
    let before = dirty(64 * MIB);
    assert!(control::background_thread());
    // From here on only the kernel is asked. The file is read into memory that exists already.
    let text = &mut [0u8; 4096];
    wait_for("return of memory", || {
        doze(50);
        rss_without_allocating(text) < before + 8 * MIB
    });
    assert_eq!(background_threads(), 1);
}

#[test]
fn an_idle_process_gives_its_memory_back() {
    play_well("idle", "background_thread:true,dirty_decay_ms:500");
    play_well("idle", "background_thread:true,dirty_decay_ms:500,tcache:false");
}

fn kept() {
    let before = dirty(64 * MIB);
    assert!(!control::background_thread());
    // Many times the decay time. No thread takes a slow path meanwhile.
    doze(1000);
    assert!(rss_without_allocating(&mut [0; 4096]) > before + 32 * MIB);
    assert_eq!(background_threads(), 0);
    // The thread is turned on now and finds the old pages.
    assert!(control::set_background_thread(true));
    wait_for("return of memory", || {
        doze(50);
        rss_without_allocating(&mut [0; 4096]) < before + 8 * MIB
    });
}

#[test]
fn without_it_an_idle_process_keeps_its_memory() {
    play_well("kept", "background_thread:false,dirty_decay_ms:100");
}

/// A burst, a long sleep, and a few blocks.
fn wakes() {
    let before = resident();
    dirty(96 * MIB);
    doze(2000);
    drop((0..4000).map(|_| Box::new([1_u8; 300])).collect::<Vec<_>>());
    let after = resident();
    assert!(after < before + 32 * MIB, "{before} {after}");
}

#[test]
fn a_thread_that_slept_for_long_gives_back_what_was_unused_when_it_wakes() {
    play_well("wakes", "background_thread:false,dirty_decay_ms:400");
}

/// Blocks of a sleeping thread are freed by another thread, which then sleeps too.
fn owned() {
    let (send, receive) = std::sync::mpsc::channel::<Vec<Box<[u8; 1000]>>>();
    let (park, parked) = std::sync::mpsc::channel::<()>();
    let producer = std::thread::spawn(move || {
        send.send((0..40_000).map(|_| Box::new([1; 1000])).collect()).expect("a receiver");
        parked.recv().ok();
    });
    let blocks = receive.recv().expect("blocks");
    let full = resident();
    drop(blocks);
    wait_for("return of memory", || {
        doze(50);
        rss_without_allocating(&mut [0; 4096]) + 30 * MIB < full
    });
    drop(park);
    producer.join().expect("a thread");
}

#[test]
fn what_a_sleeping_thread_s_blocks_left_is_given_back() {
    play_well("owned", "background_thread:true,dirty_decay_ms:300");
}

/// With nothing to purge the background thread does not wake up. The next unused page wakes it.
fn sleeps() {
    let mut last = 0;
    for _ in 0..3 {
        let before = dirty(16 * MIB);
        wait_for("return of memory", || {
            doze(50);
            rss_without_allocating(&mut [0; 4096]) < before + 8 * MIB
        });
        // No run for a while. A nap would have ended within one tenth of that time.
        wait_for("a long sleep", || {
            let runs = observe::totals().background_runs;
            doze(500);
            observe::totals().background_runs == runs
        });
        assert!(observe::totals().background_runs > last, "it was not woken");
        last = observe::totals().background_runs;
    }
    assert!(observe::totals().background_interval > 0);
}

#[test]
fn it_sleeps_while_nothing_is_unused_and_is_woken_when_something_is() {
    play_well("sleeps", "background_thread:true,dirty_decay_ms:400");
}

fn fork() {
    assert!(control::set_background_thread(true));
    for _ in 0..50 {
        dirty(MIB);
        forked(|| {
            assert!(!control::background_thread());
            assert_eq!(observe::totals().background_threads, 0);
            assert_eq!(threads().len(), 1);
            dirty(MIB);
            assert_eq!(threads().len(), 1, "on by option, it is not started in a child");
            assert!(control::set_background_thread(true));
            wait_for("thread", || background_threads() == 1);
            let before = dirty(16 * MIB);
            wait_for("return of memory", || {
                doze(50);
                rss_without_allocating(&mut [0; 4096]) < before + 8 * MIB
            });
            assert!(control::set_background_thread(false));
        });
        assert!(control::background_thread(), "the parent's goes on");
    }
    let runs = observe::totals().background_runs;
    wait_for("run in the parent", || {
        dirty(MIB);
        observe::totals().background_runs > runs
    });
    assert_eq!(background_threads(), 1);
}

#[test]
fn a_forked_child_is_without_and_can_have_its_own() {
    play_well("fork", "dirty_decay_ms:100");
    play_well("fork", "dirty_decay_ms:100,background_thread:true");
}

fn toggle() {
    let stop = Arc::new(AtomicBool::new(false));
    let traffic: Vec<_> = (0..3)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    drop((0..50).map(|n| vec![1u8; n * 700]).collect::<Vec<_>>());
                    control::set_background_thread(true);
                    // The processors must not be the bottleneck: there are 2000 hand-overs.
                    doze(1);
                }
            })
        })
        .collect();
    for round in 0..1000 {
        assert!(control::set_background_thread(round % 2 == 0));
        if round % 50 == 0 {
            forked(|| drop((0..100).map(|n| vec![1u8; n * 700]).collect::<Vec<_>>()));
        }
    }
    stop.store(true, Ordering::Relaxed);
    traffic.into_iter().for_each(|thread| thread.join().expect("a thread"));
    assert!(control::set_background_thread(false));
    assert_eq!(observe::totals().background_threads, 0);
    // The last background thread may still be leaving the C library.
    wait_for("end of the thread", || background_threads() == 0);
}

#[test]
fn a_thousand_times_on_and_off_under_traffic() {
    play_well("toggle", "dirty_decay_ms:10");
    play_well("toggle", "dirty_decay_ms:10,background_thread:true,tcache:false");
}

const REFUSAL: &str = "<lumalloc>: the background thread cannot be started (error 11)\n";

fn refused() {
    no_more_threads();
    assert!(!control::set_background_thread(true));
    assert!(!control::background_thread());
    assert!(control::set_background_thread(false));
    dirty(MIB);
    tell("lives");
}

#[test]
fn a_refused_thread_is_reported_and_nothing_else_happens() {
    let outcome = play("refused", &[]);
    assert_eq!(outcome.stderr, REFUSAL);
    assert!(outcome.success);
    assert_eq!(outcome.told, ["lives"]);
}

fn lent() {
    let before = dirty(32 * MIB);
    // A thread of the program does the work of the background thread.
    while let Some(wait) = control::decay_pass() {
        std::thread::sleep(wait.max(Duration::from_millis(5)));
    }
    assert!(resident() < before + 8 * MIB);
    assert_eq!(observe::totals().dirty, 0);
    assert_eq!(background_threads(), 0);
}

#[test]
fn any_thread_can_make_the_passes() {
    play_well("lent", "background_thread:false,dirty_decay_ms:200");
}

#[test]
fn a_process_exits_while_it_runs() {
    play_well("exit", "background_thread:true,dirty_decay_ms:10");
}

#[test]
fn at_most_one_and_within_the_option() {
    assert_eq!(control::max_background_threads(), 4);
    assert!(control::set_max_background_threads(1));
    assert_eq!(control::max_background_threads(), 1);
    assert!(!control::set_max_background_threads(5));
    assert!(!control::set_max_background_threads(0), "as in jemalloc");
    assert_eq!(control::max_background_threads(), 1);
    assert!(control::set_max_background_threads(4));
}
