//! The mistakes that are found beside samples, with the hardened tier and without, and the requests
//! that get a sample.
#![allow(unsafe_code)]

mod common;
#[path = "guarded/samples.rs"]
mod samples;

use common::child::{play, play_well, scenario};
use lumalloc::observe;
use lumalloc::raw::{self, Flags};
use samples::{free, plain, pointer, sample};

/// Scenarios and their messages: a write of the first byte behind a block of 56 bytes, which has no
/// room for more beside its canary, and a free with a wrong size.
const MISTAKES: [(&str, &str); 2] =
    [("overflow_by_one", "<lumalloc>: buffer overflow"), ("wrong_size", "<lumalloc>: sized free")];

/// All mistakes are found, as in the hardened tier alone. Each run draws other samples and puts
/// them at either end of their page.
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

/// Samples also detect writes between block and guard, without the hardened tier.
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
fn a_query_and_a_realloc_of_a_freed_sample_die() {
    let text = "use after free of #: realloc or a query of the guarded block # (size 100), \
                allocated by thread #, freed by thread #";
    for name in ["queried", "resized"] {
        let outcome = play(name, &[("LUMALLOC_CONF", "guarded_sample:1")]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
        let expected = format!("<lumalloc>: {text}");
        assert!(plain(&outcome.stderr).starts_with(&expected), "{outcome:#?}");
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
        // Where flags lead past the caches, only the hardened tier checks sizes.
        ("size_by_flags", hardened),
    ] {
        let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{conf}: {outcome:#?}");
        let expected = format!("<lumalloc>: {text}");
        assert!(plain(&outcome.stderr).starts_with(&expected), "{conf}: {outcome:#?}");
    }
    // Any size of the block's class is accepted, as for other blocks.
    for conf in ["guarded_sample:1", hardened] {
        play_well("sizes_of_the_class", conf);
    }
}

/// A block that is no sample is compared as without samples. One in a billion requests is one.
#[test]
fn a_block_that_is_no_sample_dies_of_another_size_too() {
    let text = "<lumalloc>: sized free of # with size 40, which is not its own";
    for conf in ["guarded_sample:1000000000", "guarded_sample:1000000000,hardened:true"] {
        let outcome = play("wrong_size", &[("LUMALLOC_CONF", conf)]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{conf}: {outcome:#?}");
        assert!(plain(&outcome.stderr).starts_with(text), "{conf}: {outcome:#?}");
    }
    play_well("right_sizes", "guarded_sample:1000000000");
}

/// A program may use all of the bytes that `good_size` tells, whether it gets a sample or not.
#[test]
fn the_size_that_is_told_before_is_usable() {
    for conf in ["guarded_sample:2", "guarded_sample:2,hardened:true"] {
        play_well("good_size", conf);
    }
}

#[test]
fn without_a_free_slot_a_block_is_hardened_as_others_are() {
    let outcome = play("no_slot", &[("LUMALLOC_CONF", "hardened:true,guarded_sample:1")]);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
    let text = "<lumalloc>: buffer overflow of #: the canary behind its at most 56 bytes was \
                overwritten";
    assert!(plain(&outcome.stderr).starts_with(text), "{outcome:#?}");
}

#[test]
fn one_in_one_is_every_request_while_there_is_a_slot() {
    for conf in ["guarded_sample:1", "guarded_sample:1,hardened:true", "guarded_sample:1,junk:true"]
    {
        play_well("every_request", conf);
    }
}

fn use_after_free(is_resized: bool) {
    let block = sample(is_resized);
    free(block);
    if is_resized {
        // SAFETY: the block was freed, which is the mistake that is tested.
        _ = unsafe { raw::realloc(pointer(block), 200) };
    } else {
        // SAFETY: as above.
        _ = unsafe { raw::usable_size(pointer(block)) };
    }
}

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("overflow_by_one") => {
            let block = raw::malloc(56).expose_provenance();
            damage(block + 56);
            free(block);
        }
        Some(name @ ("queried" | "resized")) => use_after_free(name == "resized"),
        Some("wrong_size") => {
            // SAFETY: a live block, and the mistake that is tested.
            unsafe { raw::free_sized(raw::malloc(100), 40) };
        }
        Some("right_sizes") => {
            for size in 1..20_000 {
                // SAFETY: a live block, freed once by its size.
                unsafe { raw::free_sized(raw::malloc(size), size) };
            }
        }
        Some("good_size") => {
            for size in (1..5000).step_by(7).chain([20_000, 40_000, 1 << 20]) {
                let blocks: Vec<usize> =
                    (0..8).map(|_| raw::malloc(size).expose_provenance()).collect();
                for block in blocks {
                    // SAFETY: a live block, which holds as many bytes.
                    unsafe { pointer(block).write_bytes(1, raw::good_size(size, 1)) };
                    free(block);
                }
            }
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
                // SAFETY: a live block, freed once by a size of its class.
                unsafe { raw::free_sized(pointer(sample(size % 2 == 0)), size) };
            }
        }
        Some("no_slot") => no_slot(),
        Some("every_request") => every_request(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Allocates blocks of many classes, each several times, in one slot after the other.
fn every_request() {
    for round in 0..3 {
        let before = observe::guarded_samples();
        let blocks: Vec<usize> =
            (0..100).map(|n| raw::malloc((n % 40 * 100).max(1)).expose_provenance()).collect();
        let now = observe::guarded_samples();
        assert_eq!((now.made - before.made, now.failed), (100, before.failed), "round {round}");
        blocks.into_iter().for_each(free);
    }
}

/// Writes a different value than the byte has.
fn damage(address: usize) {
    // SAFETY: memory of the allocator, or a guard, which is the mistake that is tested.
    let byte = unsafe { pointer(address).read_volatile() };
    // SAFETY: memory of the allocator, or a guard, which is the mistake that is tested.
    unsafe { pointer(address).write_volatile(byte ^ 0x55) };
}

/// Takes all slots, then writes behind an ordinary block.
fn no_slot() {
    while observe::guarded_samples().live < 128 {
        assert!(!raw::malloc(56).is_null());
    }
    let block = raw::malloc(56).expose_provenance();
    damage(block + 56);
    free(block);
}
