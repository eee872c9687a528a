//! The background thread that runs for a time when much memory is unused, in children. This program
//! allocates by lumalloc. The tests await figures and never measure time.
#![allow(unsafe_code)]

mod common;

use common::child::{play, play_well, scenario, tell};
use common::idling::{
    MIB, background_threads, dirty, doze, forked, no_threads_for_now, rss_without_allocating,
    threads, threads_again, wait_for,
};
use lumalloc::{control, observe};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("for-a-time") => for_a_time(),
        Some("alone") => alone(),
        Some("producer") => producer(),
        Some("silent") => silent(),
        Some("off") => off(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// A thread that has allocated and sleeps, until the sender is dropped.
fn sleeper() -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        ready.send(Box::new(1)).expect("a receiver");
        receive.recv().ok();
    });
    is_ready.recv().expect("a block");
    (send, thread)
}

fn for_a_time() {
    let (park, thread) = sleeper();
    for _ in 0..2 {
        let before = dirty(64 * MIB);
        wait_for("return of memory", || {
            doze(20);
            rss_without_allocating(&mut [0; 4096]) < before + 8 * MIB
        });
        assert!(!control::background_thread() && control::background_thread_auto());
        let runs = observe::totals().background_runs;
        assert!(runs > 0, "nobody else gives memory back");
        wait_for("end of the thread", || background_threads() == 0);
        assert_eq!(observe::totals().background_threads, 0);
    }
    // Turned off, it is not started again. Turned on, it is kept.
    assert!(control::set_background_thread(false));
    assert!(!control::background_thread_auto());
    dirty(64 * MIB);
    doze(200);
    assert_eq!(background_threads(), 0);
    control::set_background_thread_auto(true);
    // It may end before it is seen. Then it is started again.
    wait_for("thread", || {
        dirty(64 * MIB);
        background_threads() == 1
    });
    assert!(control::set_background_thread(true));
    doze(1000);
    assert_eq!(background_threads(), 1);
    drop(park);
    thread.join().expect("a thread");
}

#[test]
fn by_default_it_runs_for_a_time_once_much_memory_is_unused() {
    play_well("for-a-time", "dirty_decay_ms:200");
    play_well("for-a-time", "dirty_decay_ms:200,tcache:false");
}

/// Hands blocks to another thread, which frees them, and goes on with others.
fn producer() {
    let make = || (0..20_000).map(|_| Box::new([1u8; 100])).collect::<Vec<_>>();
    // The thread needs no new slab, before which it would take in what others freed.
    let mut number = 0;
    let mut kept = make();
    kept.retain(|_| {
        number += 1;
        number % 30 == 0
    });
    let mut text = [0; 4096];
    let before = rss_without_allocating(&mut text);
    let blocks: Vec<Box<[u8; 2000]>> = (0..96 * MIB / 2048).map(|_| Box::new([1; 2000])).collect();
    let (park, parked) = std::sync::mpsc::channel::<()>();
    let consumer = std::thread::spawn(move || {
        drop(blocks);
        parked.recv().ok();
    });
    // It does not pause for as long as the time between two passes.
    while rss_without_allocating(&mut text) > before + 16 * MIB {
        (0..10).for_each(|_| drop(make()));
    }
    drop((park, kept));
    consumer.join().expect("a thread");
}

#[test]
fn what_others_freed_of_a_thread_at_work_is_given_back() {
    play_well("producer", "dirty_decay_ms:200");
    play_well("producer", "dirty_decay_ms:200,hardened:true");
}

/// Not in a process with one thread, and for no longer than there are several.
fn alone() {
    forked(|| {
        dirty(64 * MIB);
        doze(200);
        assert_eq!(threads().len(), 1);
        let (park, thread) = sleeper();
        dirty(64 * MIB);
        wait_for("thread", || background_threads() == 1);
        drop(park);
        thread.join().expect("a thread");
        wait_for("end of the thread", || threads().len() == 1);
    });
}

#[test]
fn a_process_with_one_thread_gets_no_other_one() {
    // The decay time is longer than the test.
    play_well("alone", "dirty_decay_ms:600000");
}

fn silent() {
    let (park, thread) = sleeper();
    let before = no_threads_for_now();
    dirty(64 * MIB);
    assert!(control::background_thread_auto(), "it is tried again");
    assert_eq!(background_threads(), 0);
    threads_again(before);
    wait_for("thread", || {
        dirty(64 * MIB);
        doze(20);
        observe::totals().background_runs > 0
    });
    drop(park);
    thread.join().expect("a thread");
    tell("lives");
}

#[test]
fn a_thread_that_the_system_has_no_room_for_is_tried_again_and_nothing_is_said() {
    let outcome = play("silent", &[("LUMALLOC_CONF", "dirty_decay_ms:200")]);
    assert_eq!(outcome.stderr, "");
    assert!(outcome.success);
    assert_eq!(outcome.told, ["lives"]);
}

/// What would start the thread starts none, until it is turned on.
fn off() {
    let (park, thread) = sleeper();
    assert!(!control::background_thread_auto());
    for _ in 0..3 {
        dirty(64 * MIB);
        doze(50);
        assert_eq!(background_threads(), 0);
    }
    control::set_background_thread_auto(true);
    wait_for("thread", || {
        dirty(64 * MIB);
        background_threads() == 1
    });
    drop(park);
    thread.join().expect("a thread");
}

#[test]
fn an_option_turns_it_off() {
    play_well("off", "background_thread_auto:false,dirty_decay_ms:200");
}
