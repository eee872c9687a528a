//! Guarded samples: what touches them wrongly faults, and one line says what it was.
#![allow(unsafe_code)]

mod common;

use common::child::{Outcome, play, play_well, scenario, tell};
use lumalloc::raw::{self, Flags};
use lumalloc::{Lumalloc, observe};
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashSet;

const CONF: (&str, &str) = ("LUMALLOC_CONF", "guarded_sample:2");

fn pointer(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn free(address: usize) {
    // SAFETY: live and not used after, or the mistake that is tested.
    unsafe { raw::free(pointer(address)) };
}

fn is_sample(address: usize, size: usize) -> bool {
    // SAFETY: a live block. A sample holds what was asked for, others 112 for 100.
    (unsafe { raw::usable_size(pointer(address)) }) == size
}

/// A sample of 96 bytes at the end of its page, or at the beginning.
fn sample(at_end: bool) -> usize {
    for _ in 0..10_000 {
        let block = raw::malloc(100).expose_provenance();
        let spare = block % 4096;
        if is_sample(block, 100) && (spare != 0) == at_end {
            return block;
        }
        free(block);
    }
    panic!("no sample");
}

fn read(address: usize) -> u8 {
    // SAFETY: the mistake that is tested.
    unsafe { pointer(address).read_volatile() }
}

/// Digits and addresses that differ from run to run become `#`; traces go.
fn plain(message: &str) -> String {
    let mut words = Vec::new();
    let mut in_trace = false;
    for word in message.split(' ') {
        let bare = word.trim_end_matches([',', ';', ':', '\n']);
        let is_address = bare.starts_with("0x");
        in_trace = word == "from" || (in_trace && is_address);
        if in_trace {
            if word != bare
                && word != "from"
                && let Some(last) = words.last_mut()
            {
                *last = format!("{last}{}", &word[bare.len()..]);
            }
        } else if is_address || words.last().is_some_and(|last| last == "thread") {
            words.push(format!("#{}", &word[bare.len()..]));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

#[track_caller]
fn dies(name: &str, signal: i32, expected: &str) {
    let outcome: Outcome = play(name, &[CONF]);
    assert_eq!(outcome.signal, Some(signal), "{outcome:#?}");
    assert_eq!(plain(&outcome.stderr), format!("<lumalloc>: {expected}\n"), "{outcome:#?}");
    // The block that was told is the block that is named.
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

#[test]
fn samples_are_blocks_like_others() {
    for conf in ["guarded_sample:2", "guarded_sample:1,hardened:true", "guarded_sample:3,junk:true"]
    {
        play_well("work", conf);
    }
}

/// A free that tells the size finds a sample, by C's doors and by Rust's, at once.
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

/// One in about a hundred is a sample, and none without the option.
#[test]
fn samples_are_as_many_as_asked_for() {
    let count = |conf| play_well("count", conf)[0].parse::<usize>().expect("a number");
    assert_eq!(count("guarded_sample:0"), 0);
    let samples = count("guarded_sample:100");
    assert!((600..1600).contains(&samples), "{samples} of 100000");
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
            // Unmapped, and none of ours.
            read(0x10);
        }
        Some("work") => work(),
        Some("sized") => {
            let block = sample(true);
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::free_sized(pointer(block), 100) };
            // SAFETY: as above.
            unsafe { raw::free_sized(pointer(block), 100) };
        }
        Some("flags") => {
            let block = sample(false);
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::deallocate_sized(pointer(block), 100, Flags::NONE) };
            // SAFETY: as above.
            unsafe { raw::deallocate_sized(pointer(block), 100, Flags::NONE) };
        }
        Some("layout") => {
            let block = layout_sample();
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { Lumalloc.dealloc(block, LAYOUT) };
            // SAFETY: as above.
            unsafe { Lumalloc.dealloc(block, LAYOUT) };
        }
        Some("layouts") => layouts(),
        Some("overflow_by_one") => {
            let block = raw::malloc(56).expose_provenance();
            damage(block + 56);
            free(block);
        }
        Some("wrong_size") => {
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::free_sized(raw::malloc(100), 40) };
        }
        Some("write_behind_at_end") => {
            let block = sample(true);
            damage(block + 103);
            free(block);
        }
        Some("write_behind_at_begin") => {
            let block = sample(false);
            damage(block + 103);
            free(block);
        }
        Some("write_before") => {
            let block = sample(true);
            damage(block - 1);
            free(block);
        }
        Some("size_too_small") => {
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::free_roomy(pointer(sample(true)), 40, 1) };
        }
        Some("size_by_flags") => {
            let flags = Flags::NONE.uncached();
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::deallocate_sized(pointer(sample(false)), 40, flags) };
        }
        Some("sizes_of_the_class") => {
            for size in 97..=104 {
                // SAFETY: a live block, freed once by a size of its class.
                unsafe { raw::free_roomy(pointer(sample(size % 2 == 0)), size, 1) };
                // SAFETY: as above.
                unsafe { raw::free_sized(pointer(sample(size % 2 == 0)), size) };
            }
        }
        Some("no_slot") => no_slot(),
        Some("every_request") => every_request(),
        Some("counts") => counts(),
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
        // SAFETY: a live block of this layout, not used after.
        unsafe { Lumalloc.dealloc(block, LAYOUT) };
    }
    panic!("no sample");
}

/// Threads have filled their bins before the first layout comes; those that live on free samples
/// by layout, made by others.
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
    // What was freed by layout serves again, the slow way and the fast one.
    let blocks: Vec<usize> = (0..2000).map(|_| raw::malloc(100).expose_provenance()).collect();
    let different: HashSet<&usize> = blocks.iter().collect();
    assert_eq!(different.len(), blocks.len());
    for block in blocks {
        // SAFETY: a live block of this layout.
        unsafe { Lumalloc.dealloc(pointer(block), LAYOUT) };
    }
}

/// The first byte behind a block of 56 bytes, which has no room for more beside its canary, and a
/// size that is not its own.
const MISTAKES: [(&str, &str); 2] =
    [("overflow_by_one", "<lumalloc>: buffer overflow"), ("wrong_size", "<lumalloc>: sized free")];

/// As many as in the hardened tier alone: all. Each run draws other samples, and puts them at
/// either end of their page.
#[test]
fn the_hardened_tier_finds_as_much_with_samples_as_without() {
    for conf in ["hardened:true,guarded_sample:1", "hardened:true,guarded_sample:2"] {
        for (name, text) in MISTAKES {
            for _ in 0..20 {
                let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
                assert!(outcome.stderr.starts_with(text), "{name}, {conf}: {outcome:#?}");
                assert!(outcome.signal.is_some(), "{name}, {conf}: {outcome:#?}");
            }
        }
    }
}

/// Samples alone find what is written between block and guard too.
#[test]
fn a_write_beside_a_sample_is_found_when_it_is_freed() {
    let found = "allocated by thread #; found when it was freed";
    let overflow =
        "buffer overflow at #: 3 bytes behind the end of the guarded block # (size 100),";
    let underflow = "buffer underflow at #: 1 bytes before the guarded block # (size 100),";
    for conf in ["guarded_sample:1", "guarded_sample:1,hardened:true"] {
        for (name, text) in [
            ("write_behind_at_end", overflow),
            ("write_behind_at_begin", overflow),
            ("write_before", underflow),
        ] {
            let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
            assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
            let expected = format!("<lumalloc>: {text} {found}");
            assert!(plain(&outcome.stderr).starts_with(&expected), "{outcome:#?}");
        }
    }
}

#[test]
fn a_sample_freed_by_another_size_dies() {
    let text = "sized free of # with size 40, which is not its own: the guarded block # (size 100), \
                allocated by thread #";
    let hardened = "guarded_sample:1,hardened:true";
    for (name, conf) in [
        ("size_too_small", "guarded_sample:1"),
        ("size_too_small", hardened),
        // Where flags lead past the caches, the hardened tier alone looks at sizes.
        ("size_by_flags", hardened),
    ] {
        let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{conf}: {outcome:#?}");
        let expected = format!("<lumalloc>: {text}");
        assert!(plain(&outcome.stderr).starts_with(&expected), "{conf}: {outcome:#?}");
    }
    // Whatever its class serves is its own size, as for other blocks.
    for conf in ["guarded_sample:1", hardened] {
        play_well("sizes_of_the_class", conf);
    }
}

#[test]
fn without_a_free_slot_a_block_is_hardened_as_others_are() {
    let outcome = play("no_slot", &[("LUMALLOC_CONF", "hardened:true,guarded_sample:1")]);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
    let text = "<lumalloc>: buffer overflow of #: the canary behind its 56 bytes was overwritten";
    assert!(plain(&outcome.stderr).starts_with(text), "{outcome:#?}");
}

#[test]
fn one_in_one_is_every_request_while_there_is_a_slot() {
    for conf in ["guarded_sample:1", "guarded_sample:1,hardened:true", "guarded_sample:1,junk:true"]
    {
        play_well("every_request", conf);
    }
}

/// Blocks of many classes, each several times, in one slot after the other.
fn every_request() {
    for round in 0..3 {
        let before = observe::guarded_samples();
        let blocks: Vec<usize> =
            (0..100).map(|n| raw::malloc(n % 40 * 100).expose_provenance()).collect();
        let now = observe::guarded_samples();
        assert_eq!((now.made - before.made, now.failed), (100, before.failed), "round {round}");
        blocks.into_iter().for_each(free);
    }
}

/// Writes what is not there.
fn damage(address: usize) {
    // SAFETY: memory of the allocator's, or a guard: the mistake that is tested.
    let byte = unsafe { pointer(address).read_volatile() };
    // SAFETY: as above.
    unsafe { pointer(address).write_volatile(byte ^ 0x55) };
}

/// Takes all slots, and then makes a mistake with an ordinary block.
fn no_slot() {
    while observe::guarded_samples().live < 128 {
        assert!(!raw::malloc(56).is_null());
    }
    let block = raw::malloc(56).expose_provenance();
    damage(block + 56);
    free(block);
}

/// Made, live and failed add up to what was asked for, and samples are no blocks of their class.
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
    // SAFETY: a live block.
    let usable = blocks.iter().map(|block| unsafe { raw::usable_size(pointer(*block)) });
    let class = usable.max().expect("blocks").next_multiple_of(16);
    assert_eq!(others, (1000 - samples as usize) * class, "{samples} samples");
    assert_eq!(observe::totals().requests - requests, 1000 - samples);
    blocks.into_iter().for_each(free);
    assert_eq!(observe::guarded_samples().live, before.live);
    assert_eq!(observe::totals().allocated, allocated);
}

/// Every size by every way, over threads, with more alive than there are slots.
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
            // SAFETY: a live block, not used after.
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
}
