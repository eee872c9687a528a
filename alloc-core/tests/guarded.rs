//! Guarded samples: a wrong access to one faults, and one line says what was wrong.
#![allow(unsafe_code)]

mod common;
#[path = "guarded/samples.rs"]
mod samples;

use common::child::{Outcome, play, play_well, scenario, tell};
use lumalloc::raw::{self, Flags};
use lumalloc::{Lumalloc, observe};
use samples::{free, is_sample, plain, pointer, sample};
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashSet;

const CONF: (&str, &str) = ("LUMALLOC_CONF", "guarded_sample:2");

fn read(address: usize) -> u8 {
    // SAFETY: the mistake that is tested.
    unsafe { pointer(address).read_volatile() }
}

#[track_caller]
fn dies(name: &str, signal: i32, expected: &str) {
    let outcome: Outcome = play(name, &[CONF]);
    assert_eq!(outcome.signal, Some(signal), "{outcome:#?}");
    assert_eq!(plain(&outcome.stderr), format!("<lumalloc>: {expected}\n"), "{outcome:#?}");
    // It says from where the block was allocated and freed, and who called what touched it.
    let traces =
        outcome.stderr.split(" from ").skip(1).chain(outcome.stderr.split("; by ").skip(1));
    for trace in traces {
        let addresses = trace.split(' ').take_while(|word| word.starts_with("0x")).count();
        assert!(addresses >= 3, "{outcome:#?}");
    }
    assert_eq!(
        outcome.stderr.matches(" thread ").count(),
        outcome.stderr.matches(" from 0x").count()
    );
    // The message names the block that the child told.
    let [block] = outcome.told.as_slice() else { panic!("{outcome:#?}") };
    assert!(outcome.stderr.contains(block), "{outcome:#?}");
}

#[test]
fn a_read_behind_a_sample_faults() {
    let text = "buffer overflow at #: 12 bytes behind the end of the guarded block # (size 100), \
                allocated by thread #; by #";
    dies("overflow", libc::SIGSEGV, text);
}

#[test]
fn a_read_before_a_sample_faults() {
    let text = "buffer underflow at #: 8 bytes before the guarded block # (size 100), allocated by \
                thread #; by #";
    dies("underflow", libc::SIGSEGV, text);
}

#[test]
fn a_read_of_a_freed_sample_faults() {
    let text = "use after free at #: the guarded block # (size 100), allocated by thread #, freed \
                by thread #; by #";
    dies("after_free", libc::SIGSEGV, text);
}

#[test]
fn a_second_free_of_a_sample_dies() {
    let text = "double free of #: the guarded block # (size 100), allocated by thread #, freed by \
                thread #";
    let outcome = play("twice", &[CONF]);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
    assert!(plain(&outcome.stderr).starts_with(&format!("<lumalloc>: {text}")), "{outcome:#?}");
}

#[test]
fn a_free_inside_a_sample_dies() {
    let text = "invalid free of #: inside the guarded block # (size 100), allocated by thread #";
    let outcome = play("inside", &[CONF]);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
    assert!(plain(&outcome.stderr).starts_with(&format!("<lumalloc>: {text}")), "{outcome:#?}");
}

#[test]
fn the_handler_of_before_still_runs() {
    let outcome = play("elsewhere", &[CONF]);
    assert_eq!(outcome.signal, Some(libc::SIGSEGV), "{outcome:#?}");
    assert!(!outcome.stderr.contains("lumalloc"), "{outcome:#?}");
}

/// A watchdog that wants a core sends the signal of a fault.
#[test]
fn a_signal_that_was_sent_does_what_it_does_without_samples() {
    let outcome = play("sent", &[CONF]);
    assert_eq!(outcome.signal, Some(libc::SIGSEGV), "{outcome:#?}");
    assert_eq!((outcome.told.len(), outcome.stderr.as_str()), (1, ""), "{outcome:#?}");
    let outcome = play("ignored", &[CONF]);
    assert_eq!(outcome.signal, Some(libc::SIGSEGV), "{outcome:#?}");
    let text = "<lumalloc>: buffer overflow at #";
    assert!(plain(&outcome.stderr).starts_with(text), "faults are still reported: {outcome:#?}");
    assert_eq!(outcome.told.len(), 2, "{outcome:#?}");
}

#[test]
fn samples_are_blocks_like_others() {
    for conf in ["guarded_sample:2", "guarded_sample:1,hardened:true", "guarded_sample:3,junk:true"]
    {
        play_well("work", conf);
    }
}

/// A sized free detects a freed sample at once, by the C functions and by Rust's.
#[test]
fn sized_frees_know_samples() {
    let text = "double free of #: the guarded block # (size 100), allocated by thread #, freed by \
                thread #";
    for name in ["sized", "layout", "flags"] {
        for conf in ["guarded_sample:2", "guarded_sample:2,hardened:true"] {
            let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
            assert_eq!(outcome.signal, Some(libc::SIGABRT), "{conf}: {outcome:#?}");
            let expected = format!("<lumalloc>: {text}");
            assert!(plain(&outcome.stderr).starts_with(&expected), "{conf}: {outcome:#?}");
        }
    }
}

#[test]
fn layouts_come_after_other_blocks() {
    for conf in ["guarded_sample:2", "guarded_sample:1,hardened:true", "guarded_sample:3,junk:true"]
    {
        play_well("layouts", conf);
    }
}

#[test]
fn samples_are_counted() {
    for conf in ["guarded_sample:2", "guarded_sample:2,hardened:true", "guarded_sample:1"] {
        play_well("counts", conf);
    }
}

/// In the hardened tier such a request is of a larger class, because of its canary.
#[test]
fn requests_of_a_page_are_samples_too() {
    for conf in ["guarded_sample:1", "guarded_sample:1,hardened:true"] {
        assert_eq!(play_well("largest", conf), ["[true, true, true, false]"], "{conf}");
    }
}

/// About one in a hundred is a sample, and none without the option.
#[test]
fn samples_are_as_many_as_asked_for() {
    let count = |conf| play_well("count", conf)[0].parse::<usize>().expect("a number");
    assert_eq!(count("guarded_sample:0"), 0);
    let samples = count("guarded_sample:100");
    assert!((600..1600).contains(&samples), "{samples} of 100000");
}

/// Sends itself the signal of a fault, whose action is this one and not that of the standard
/// library. If the process goes on, it makes a mistake.
fn sends_itself_a_fault(action: libc::sighandler_t) {
    // SAFETY: no handler is set.
    unsafe { libc::signal(libc::SIGSEGV, action) };
    let block = sample(true);
    tell("begins");
    // SAFETY: the call takes only a number.
    unsafe { libc::raise(libc::SIGSEGV) };
    tell("lives");
    read(block + 112);
}

#[test]
fn a_thread_of_a_created_arena_has_no_samples_that_a_reset_would_leave() {
    play_well("created", "guarded_sample:2");
}

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("overflow") => {
            let block = sample(true);
            tell(&format!("{block:#x}"));
            read(block + 112);
        }
        Some("underflow") => {
            let block = sample(false);
            tell(&format!("{block:#x}"));
            read(block - 8);
        }
        Some("after_free") => {
            let block = sample(true);
            tell(&format!("{block:#x}"));
            free(block);
            read(block + 5);
        }
        Some("twice") => {
            let block = sample(true);
            free(block);
            free(block);
        }
        Some("inside") => free(sample(false) + 16),
        Some("elsewhere") => {
            free(sample(true));
            // Unmapped, and not an address of this allocator.
            read(0x10);
        }
        Some("sent") => sends_itself_a_fault(libc::SIG_DFL),
        Some("ignored") => sends_itself_a_fault(libc::SIG_IGN),
        Some("work") => work(),
        Some("created") => of_created_arena(),
        Some("sized") => {
            let block = sample(true);
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::free_sized(pointer(block), 100) };
            // SAFETY: the block was freed, which is the mistake that is tested.
            unsafe { raw::free_sized(pointer(block), 100) };
        }
        Some("flags") => {
            let block = sample(false);
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::deallocate_sized(pointer(block), 100, Flags::NONE) };
            // SAFETY: the block was freed, which is the mistake that is tested.
            unsafe { raw::deallocate_sized(pointer(block), 100, Flags::NONE) };
        }
        Some("layout") => {
            let block = layout_sample();
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { Lumalloc.dealloc(block, LAYOUT) };
            // SAFETY: the block was freed, which is the mistake that is tested.
            unsafe { Lumalloc.dealloc(block, LAYOUT) };
        }
        Some("layouts") => layouts(),
        Some("counts") => counts(),
        Some("largest") => tell(&format!("{:?}", [4000, 4089, 4096, 4097].map(gets_sample))),
        Some("count") => {
            let mut samples = 0;
            for _ in 0..100_000 {
                let block = raw::malloc(100).expose_provenance();
                samples += usize::from(is_sample(block, 100));
                free(block);
            }
            tell(&samples.to_string());
        }
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Whether a request gets a sample.
fn gets_sample(size: usize) -> bool {
    let block = raw::malloc(size).expose_provenance();
    let is = is_sample(block, size);
    free(block);
    is
}

const LAYOUT: Layout = match Layout::from_size_align(100, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn layout_sample() -> *mut u8 {
    for _ in 0..10_000 {
        // SAFETY: the layout is not empty.
        let block = unsafe { Lumalloc.alloc(LAYOUT) };
        if is_sample(block.expose_provenance(), 100) {
            return block;
        }
        // SAFETY: a live block of this layout, not used afterwards.
        unsafe { Lumalloc.dealloc(block, LAYOUT) };
    }
    panic!("no sample");
}

/// Threads have filled their bins before the first layout comes. A thread that runs on frees by
/// layout samples that another thread made.
fn layouts() {
    let (send, receive) = std::sync::mpsc::channel::<Vec<usize>>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        (0..200)
            .map(|_| raw::malloc(100).expose_provenance())
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(free);
        ready.send(()).expect("the test");
        for block in receive.recv().expect("the blocks") {
            let was_sample = u64::from(is_sample(block, 100));
            let before = observe::guarded_samples().live;
            // SAFETY: a live block of this layout.
            unsafe { Lumalloc.dealloc(pointer(block), LAYOUT) };
            assert_eq!(observe::guarded_samples().live, before - was_sample);
        }
    });
    is_ready.recv().expect("the thread");
    let samples = (0..50).map(|_| layout_sample().expose_provenance()).collect();
    send.send(samples).expect("the thread");
    other.join().expect("the thread");
    // Blocks that were freed by layout are allocated again, on the slow path and the fast one.
    let blocks: Vec<usize> = (0..2000).map(|_| raw::malloc(100).expose_provenance()).collect();
    let different: HashSet<&usize> = blocks.iter().collect();
    assert_eq!(different.len(), blocks.len());
    for block in blocks {
        // SAFETY: a live block of this layout.
        unsafe { Lumalloc.dealloc(pointer(block), LAYOUT) };
    }
}

/// Made, live and failed samples add up to the requests. Samples do not count as blocks of a class.
fn counts() {
    let before = observe::guarded_samples();
    let (allocated, requests) = (observe::totals().allocated, observe::totals().requests);
    let blocks: Vec<usize> = (0..1000).map(|_| raw::malloc(100).expose_provenance()).collect();
    let samples = blocks.iter().filter(|block| is_sample(**block, 100)).count() as u64;
    let now = observe::guarded_samples();
    assert!(samples > 50 && now.made - before.made == samples, "{samples}: {before:?} {now:?}");
    assert_eq!(now.live - before.live, samples);
    assert!(now.live <= 128 && now.failed > before.failed, "more were due than there are slots");
    let others = observe::totals().allocated - allocated;
    let class = common::hardened_class(100, 1).unwrap_or(112);
    assert_eq!(others, (1000 - samples as usize) * class, "{samples} samples");
    assert_eq!(observe::totals().requests - requests, 1000 - samples);
    blocks.into_iter().for_each(free);
    assert_eq!(observe::guarded_samples().live, before.live);
    assert_eq!(observe::totals().allocated, allocated);
}

fn of_created_arena() {
    let own = |arena| assert_eq!(lumalloc::control::thread::set_arena(arena), Ok(()));
    let samples = || (0..1000).filter(|_| is_sample(raw::malloc(100).expose_provenance(), 100));
    own(lumalloc::control::arenas::create().expect("an arena"));
    assert_eq!(samples().count(), 0);
    own(0);
    assert!(samples().count() > 0);
}

/// Every size by every function, over threads, with more live blocks than slots.
fn work() {
    let round = || {
        let mut seen = HashSet::new();
        let blocks: Vec<(usize, usize)> =
            (0..600).map(|n| (raw::malloc_zeroed(n * 11).expose_provenance(), n * 11)).collect();
        for (block, size) in &blocks {
            assert!(*block != 0 && seen.insert(*block) && raw::is_ours(pointer(*block)));
            // SAFETY: a live block, this long.
            let usable = unsafe { raw::usable_size(pointer(*block)) };
            assert!(usable >= *size);
            // SAFETY: a live block, this long.
            let bytes = unsafe { std::slice::from_raw_parts_mut(pointer(*block), *size) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(*size as u8);
        }
        for (n, (block, size)) in blocks.into_iter().enumerate() {
            // SAFETY: a live block, not used afterwards.
            let moved = unsafe { raw::realloc(pointer(block), size + 30) };
            // SAFETY: a live block, this long.
            let bytes = unsafe { std::slice::from_raw_parts(moved, size) };
            assert!(bytes.iter().all(|byte| *byte == size as u8));
            match n % 2 {
                // SAFETY: a live block, freed once.
                0 => unsafe { raw::free(moved) },
                // SAFETY: a live block, freed once.
                _ => unsafe { raw::free_sized(moved, size + 30) },
            }
        }
    };
    round();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(round)).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
    round();
    // An alignment stays, also where it is larger than the size.
    for _ in 0..600 {
        let layout = Layout::from_size_align(64, 16).expect("a layout");
        // SAFETY: the layout has a size.
        let block = unsafe { Lumalloc.alloc(layout) };
        // SAFETY: a live block of this layout.
        let shorter = unsafe { Lumalloc.realloc(block, layout, 8) };
        assert!(shorter.addr().is_multiple_of(16), "{shorter:?}");
        let layout = Layout::from_size_align(8, 16).expect("a layout");
        // SAFETY: a live block of this layout, freed once.
        unsafe { Lumalloc.dealloc(shorter, layout) };
    }
    // Of an aligned block the usable size is enough.
    for size in 1..600 {
        let block = raw::allocate(size, Flags::NONE.align(512));
        // SAFETY: a live block.
        let usable = unsafe { raw::usable_size(block) };
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate_sized(block, usable, Flags::NONE) };
        let block = raw::allocate(size, Flags::NONE.align(512));
        // SAFETY: a live block.
        let usable = unsafe { raw::usable_size(block) };
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate_sized(block, usable, Flags::NONE.uncached()) };
    }
}
