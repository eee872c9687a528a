//! The hardened tier: misuse that is found when a block is handed out, when the process exits, or
//! by a fault.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, play, scenario, tell};
use lumalloc::{PAGE, raw};

const CONF: &str = "hardened:true";

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(address)) };
}

/// Changes a byte.
fn damage(address: usize) {
    let byte = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: memory of the allocator, or none, which is the mistake that is tested.
    let old = unsafe { byte.read_volatile() };
    // SAFETY: as above.
    unsafe { byte.write_volatile(old ^ 0x41) };
}

/// Ends the process as the return of `main` does, on this thread.
fn exit() -> ! {
    // SAFETY: the test has no handlers of its own.
    unsafe { libc::exit(0) }
}

macro_rules! deaths {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                dies(stringify!($name), CONF);
            }
        )*

        fn play_death(name: &str) -> bool {
            match name {
                $(stringify!($name) => deaths::$name(),)*
                _ => return false,
            }
            true
        }
    };
}

deaths!(
    query_of_a_freed_block,
    query_of_a_freed_long_block,
    write_after_free_found_when_handed_out,
    write_after_free_of_a_long_block_found_when_handed_out,
    write_after_free_found_at_the_exit,
    write_into_a_block_never_used,
    overflow_found_at_the_exit,
    overflow_by_zeroes_found_at_the_exit,
    overflow_into_the_slack_found_at_the_exit,
    underflow_found_at_the_exit,
);

/// Each request is a slow one.
#[test]
fn write_after_free_found_when_handed_out_past_the_caches() {
    dies("write_after_free_of_a_long_block_found_when_handed_out", "hardened:true,tcache:false");
}

macro_rules! faults {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let outcome = play(stringify!($name), &[("LUMALLOC_CONF", CONF)]);
                assert_eq!(outcome.signal, Some(libc::SIGSEGV), "{outcome:?}");
                let outcome = play(stringify!($name), &[]);
                assert!(outcome.success, "not so by default: {outcome:?}");
            }
        )*

        fn play_fault(name: &str) {
            match name {
                $(stringify!($name) => faults::$name(),)*
                _ => panic!("no scenario {name}"),
            }
        }
    };
}

faults!(
    a_large_block_after_its_free,
    a_large_block_of_a_length_that_threads_keep,
    behind_a_large_block_with_a_neighbour,
    before_a_large_block_with_a_neighbour,
    behind_a_block_that_was_shortened,
);

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    let Some(name) = scenario() else { return };
    if play_death(&name) {
        // A look at the exit would come too late.
        // SAFETY: ends the process.
        unsafe { libc::_exit(42) };
    }
    play_fault(&name);
}

mod deaths {
    use super::*;

    /// Plays on the only thread, which the test's own harness is not.
    fn written(address: usize, block: usize, size: usize) {
        let place = format!("inside the free block {block:#x} (size {size}, arena 0)");
        tell(&format!("write after free of {address:#x}: {place}"));
    }

    fn overrun(block: usize, size: usize) {
        let what = format!("the canary behind its at most {} bytes was overwritten", size - 8);
        tell(&format!("buffer overflow of {block:#x}: {what} (size {size}, arena 0)"));
    }

    pub(super) fn query_of_a_freed_block() {
        query_after_free(24);
    }

    pub(super) fn query_of_a_freed_long_block() {
        query_after_free(20_000);
    }

    fn query_after_free(size: usize) {
        let block = malloc(size);
        free(block);
        tell(&format!(
            "use after free of {block:#x}: realloc or a query of a freed block (arena 0)"
        ));
        // SAFETY: none. This is the mistake that is tested.
        _ = unsafe { raw::usable_size(std::ptr::with_exposed_provenance_mut(block)) };
    }

    pub(super) fn write_after_free_found_when_handed_out() {
        let block = malloc(100);
        written(block, block, 112);
        free(block);
        damage(block);
        for _ in 0..5000 {
            free(malloc(100));
        }
    }

    pub(super) fn write_after_free_of_a_long_block_found_when_handed_out() {
        let block = malloc(4000);
        written(block + 5, block, 4096);
        free(block);
        damage(block + 5);
        for _ in 0..5000 {
            free(malloc(4000));
        }
    }

    pub(super) fn write_after_free_found_at_the_exit() {
        let block = malloc(900);
        written(block + 800, block, 1024);
        free(block);
        damage(block + 800);
        exit();
    }

    pub(super) fn write_into_a_block_never_used() {
        let blocks: Vec<usize> = (0..3).map(|_| malloc(100)).collect();
        let last = blocks.into_iter().max().expect("a block");
        // Far behind what a refill takes, in the same slab.
        let free = last + 112 * 100;
        written(free + 5, free, 112);
        damage(free + 5);
        exit();
    }

    pub(super) fn overflow_found_at_the_exit() {
        let block = malloc(104);
        overrun(block, 112);
        damage(block + 104);
        exit();
    }

    pub(super) fn overflow_by_zeroes_found_at_the_exit() {
        let block = malloc(104);
        overrun(block, 112);
        let word = std::ptr::with_exposed_provenance_mut::<u64>(block + 104);
        // SAFETY: memory of the allocator; the mistake that is tested.
        unsafe { word.write_volatile(0) };
        exit();
    }

    pub(super) fn overflow_into_the_slack_found_at_the_exit() {
        let block = malloc(100);
        let what = "the canary behind its 100 bytes was overwritten (size 112, arena 0)";
        tell(&format!("buffer overflow of {block:#x}: {what}"));
        damage(block + 100);
        exit();
    }

    pub(super) fn underflow_found_at_the_exit() {
        let mut blocks: Vec<usize> = (0..14).map(|_| malloc(104)).collect();
        blocks.sort_unstable();
        let two = blocks.windows(2).find(|two| two[1] - two[0] == 112).expect("neighbours");
        overrun(two[0], 112);
        damage(two[1] - 1);
        exit();
    }
}

mod faults {
    use super::*;

    const LONG: usize = 256 << 10;

    pub(super) fn a_large_block_after_its_free() {
        let blocks = [malloc(LONG), malloc(LONG)];
        free(blocks[0]);
        damage(blocks[0] + 100_000);
    }

    /// A thread keeps freed blocks of a length once it has requested several.
    pub(super) fn a_large_block_of_a_length_that_threads_keep() {
        for _ in 0..3 {
            let blocks: Vec<usize> = (0..8).map(|_| malloc(100_000)).collect();
            blocks.into_iter().for_each(free);
        }
        let block = malloc(100_000);
        free(block);
        damage(block + 50_000);
    }

    /// Blocks follow each other, and yet a byte behind each is no other block's.
    pub(super) fn behind_a_large_block_with_a_neighbour() {
        let mut blocks: Vec<usize> = (0..4).map(|_| malloc(LONG)).collect();
        blocks.sort_unstable();
        assert!(blocks[1] - blocks[0] < 2 * LONG, "they are near");
        damage(blocks[0] + LONG);
    }

    /// A block too long for a page behind it is followed by a shorter one, and yet a byte before
    /// that one is not of the long one.
    pub(super) fn before_a_large_block_with_a_neighbour() {
        let blocks: Vec<(usize, usize)> = (0..4).map(|_| (malloc(3 << 20), malloc(LONG))).collect();
        let follows =
            |(long, short): &&(usize, usize)| (*short).wrapping_sub(long + (3 << 20)) <= PAGE;
        let (_, short) = blocks.iter().find(follows).expect("one that follows");
        damage(short - 1);
    }

    pub(super) fn behind_a_block_that_was_shortened() {
        let block = std::ptr::with_exposed_provenance_mut(malloc(2 * LONG));
        // SAFETY: a live block, which realloc takes.
        let shorter = unsafe { raw::realloc(block, LONG) };
        damage(shorter.expose_provenance() + LONG);
    }
}
