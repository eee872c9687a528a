//! Misuse that is found by default before a block is returned to its slab, and blocks of no bytes.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, play, scenario, tell};
use lumalloc::raw;
use std::collections::BTreeSet;

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn pointer(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free(pointer(address)) };
}

fn free_sized(address: usize, size: usize) {
    // SAFETY: as above.
    unsafe { raw::free_sized(pointer(address), size) };
}

macro_rules! deaths {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                dies(stringify!($name), "");
            }
        )*

        fn play_death(name: &str) {
            match name {
                $(stringify!($name) => deaths::$name(),)*
                _ => panic!("no scenario {name}"),
            }
        }
    };
}

deaths!(
    twice_found_by_a_request_of_a_new_class,
    inner_address_found_by_a_request_of_a_new_class,
    free_block_found_by_a_request_of_a_new_class,
    twice_found_when_a_countdown_runs_out,
    twice_found_at_the_exit,
    twice_found_at_the_exit_in_an_overflow_stack,
    inner_address_found_at_the_exit,
    twice_found_after_a_free_in_an_ended_thread_5000,
    twice_found_after_a_free_in_an_ended_thread_8000,
    twice_found_after_a_free_in_an_ended_thread_32768,
    twice_found_before_a_free_in_an_ended_thread_5000,
    twice_found_before_a_free_in_an_ended_thread_8000,
    twice_found_before_a_free_in_an_ended_thread_32768,
    twice_found_in_an_ended_thread_by_a_request_of_a_new_class,
    twice_found_at_the_exit_of_others_and_in_an_ended_thread,
    twice_found_at_the_exit_of_others_while_their_thread_waits,
    twice_found_at_the_exit_of_others_while_their_thread_works,
    inner_address_found_at_the_exit_of_others,
    size_of_another_class,
    size_of_another_class_of_a_large_block,
    free_inside_a_freed_large_block,
    empty_block_twice,
    inside_an_empty_block,
);

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("touch") => touch(),
        Some("clean") => clean(),
        Some(name) => {
            play_death(name);
            // A look at the exit would come too late.
            // SAFETY: ends the process.
            unsafe { libc::_exit(42) };
        }
        None => {}
    }
}

/// Ends the process as the return of `main` does, with nothing allocated on the way.
fn exit() -> ! {
    // SAFETY: the test has no handlers of its own.
    unsafe { libc::exit(0) }
}

/// Exits while a thread that has done `first` does `then` again and again.
fn exit_beside(first: impl Fn() + Send + 'static, then: impl Fn() + Send + 'static) -> ! {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        warm();
        first();
        done.send(()).expect("it is awaited");
        loop {
            then();
        }
    });
    is_done.recv().expect("the thread goes on");
    exit()
}

/// Requests of all classes, so that no later one is the first of its class.
fn warm() {
    let blocks: Vec<usize> = (1..=14_336).step_by(8).map(malloc).collect();
    blocks.into_iter().for_each(free);
    lumalloc::control::flush_thread_cache();
}

mod deaths {
    use super::*;

    fn expect(what: &str, block: usize, size: usize) {
        tell(&format!("{what} {block:#x} (size {size}, arena 0)"));
    }

    pub(super) fn twice_found_by_a_request_of_a_new_class() {
        let (block, other) = (malloc(3000), malloc(3000));
        expect("double free of", block, 3072);
        [block, other, block].into_iter().for_each(free);
        malloc(9000);
    }

    pub(super) fn inner_address_found_by_a_request_of_a_new_class() {
        let block = malloc(3000);
        expect(&format!("invalid free of {:#x}: inside the block", block + 8), block, 3072);
        free(block + 8);
        malloc(9000);
    }

    /// The block behind is in the slab, and no thread has it.
    pub(super) fn free_block_found_by_a_request_of_a_new_class() {
        let block = malloc(3000);
        expect("double free of", block + 2 * 3072, 3072);
        free(block + 2 * 3072);
        malloc(9000);
    }

    pub(super) fn twice_found_when_a_countdown_runs_out() {
        warm();
        let (block, other) = (malloc(64), malloc(64));
        expect("double free of", block, 64);
        [block, other, block].into_iter().for_each(free);
        for _ in 0..5000 {
            free(malloc(64));
        }
    }

    pub(super) fn twice_found_at_the_exit() {
        warm();
        let blocks: Vec<usize> = (0..40).map(|_| malloc(64)).collect();
        expect("double free of", blocks[7], 64);
        blocks.iter().for_each(|block| free(*block));
        free(blocks[7]);
        exit();
    }

    /// More blocks than a bin holds, so that the block lies in both.
    pub(super) fn twice_found_at_the_exit_in_an_overflow_stack() {
        let mut blocks: Vec<usize> = (0..20_000).map(|_| malloc(64)).collect();
        blocks.iter().for_each(|block| free(*block));
        blocks = (0..20_000).map(|_| malloc(64)).collect();
        tell(&format!("double free of {:#x} (size 64, arena 0, owner cache 0)", blocks[0]));
        blocks.iter().for_each(|block| free(*block));
        free(blocks[0]);
        exit();
    }

    fn free_in_a_thread_that_ends(block: usize) {
        std::thread::spawn(move || free(block)).join().expect("it ends");
    }

    /// What the other thread frees waits at the arena's bin, with no bit in its slab.
    fn twice_in_two_threads(size: usize, frees: [fn(usize); 2]) -> ! {
        warm();
        let block = malloc(size);
        expect("double free of", block, raw::block_size(pointer(block)).expect("a block"));
        frees.into_iter().for_each(|free| free(block));
        exit();
    }

    pub(super) fn twice_found_after_a_free_in_an_ended_thread_5000() {
        twice_in_two_threads(5000, [free_in_a_thread_that_ends, free]);
    }

    pub(super) fn twice_found_after_a_free_in_an_ended_thread_8000() {
        twice_in_two_threads(8000, [free_in_a_thread_that_ends, free]);
    }

    pub(super) fn twice_found_after_a_free_in_an_ended_thread_32768() {
        twice_in_two_threads(32768, [free_in_a_thread_that_ends, free]);
    }

    pub(super) fn twice_found_before_a_free_in_an_ended_thread_5000() {
        twice_in_two_threads(5000, [free, free_in_a_thread_that_ends]);
    }

    pub(super) fn twice_found_before_a_free_in_an_ended_thread_8000() {
        twice_in_two_threads(8000, [free, free_in_a_thread_that_ends]);
    }

    pub(super) fn twice_found_before_a_free_in_an_ended_thread_32768() {
        twice_in_two_threads(32768, [free, free_in_a_thread_that_ends]);
    }

    pub(super) fn twice_found_in_an_ended_thread_by_a_request_of_a_new_class() {
        let block = malloc(8000);
        expect("double free of", block, 8192);
        free_in_a_thread_that_ends(block);
        free(block);
        malloc(9000);
    }

    pub(super) fn twice_found_at_the_exit_of_others_and_in_an_ended_thread() {
        let twice = || {
            let block = malloc(8000);
            expect("double free of", block, 8192);
            free_in_a_thread_that_ends(block);
            free(block);
        };
        exit_beside(twice, std::thread::park);
    }

    pub(super) fn inner_address_found_at_the_exit() {
        warm();
        let block = malloc(3000);
        expect(&format!("invalid free of {:#x}: inside the block", block + 8), block, 3072);
        free(block + 8);
        exit();
    }

    pub(super) fn twice_found_at_the_exit_of_others_while_their_thread_waits() {
        exit_beside(twice, std::thread::park);
    }

    /// The thread takes and frees other blocks of the bin all the time.
    pub(super) fn twice_found_at_the_exit_of_others_while_their_thread_works() {
        exit_beside(twice, || free(malloc(64)));
    }

    pub(super) fn inner_address_found_at_the_exit_of_others() {
        let inner = || {
            let block = malloc(3000);
            expect(&format!("invalid free of {:#x}: inside the block", block + 8), block, 3072);
            free(block + 8);
        };
        exit_beside(inner, std::thread::park);
    }

    fn twice() {
        let blocks: Vec<usize> = (0..40).map(|_| malloc(64)).collect();
        expect("double free of", blocks[7], 64);
        blocks[..39].iter().for_each(|block| free(*block));
        [blocks[7], blocks[39]].into_iter().for_each(free);
    }

    pub(super) fn size_of_another_class() {
        let block = malloc(3000);
        tell(&format!(
            "sized free of {block:#x} with size 100, which is not its own (size 3072, arena 0)"
        ));
        free_sized(block, 100);
    }

    pub(super) fn free_inside_a_freed_large_block() {
        let blocks = [malloc(100_000), malloc(100_000), malloc(100_000)];
        free(blocks[1]);
        tell(&format!(
            "invalid free of {:#x}: in unused memory (arena 0), freed before or never a block",
            blocks[1] + 64
        ));
        free(blocks[1] + 64);
    }

    pub(super) fn size_of_another_class_of_a_large_block() {
        let block = malloc(100_000);
        tell(&format!(
            "sized free of {block:#x} with size 100, which is not its own (size 114688, arena 0)"
        ));
        free_sized(block, 100);
    }

    pub(super) fn empty_block_twice() {
        let block = malloc(0);
        expect("double free of", block, 0);
        free(block);
        free(block);
    }

    pub(super) fn inside_an_empty_block() {
        let block = malloc(0);
        expect(&format!("invalid free of {:#x}: inside the block", block + 8), block, 0);
        free(block + 8);
    }
}

#[test]
fn empty_blocks_differ_and_have_no_bytes() {
    let mut blocks = BTreeSet::new();
    for _ in 0..1000 {
        assert!(blocks.insert(malloc(0)));
        assert!(blocks.insert(raw::malloc_zeroed(0).expose_provenance()));
    }
    for (n, block) in blocks.into_iter().enumerate() {
        assert!(block.is_multiple_of(16) && raw::is_ours(pointer(block)));
        assert_eq!(raw::block_size(pointer(block)), Some(0));
        if n % 2 == 0 {
            free(block)
        } else {
            free_sized(block, 0)
        }
        assert!(!raw::is_ours(pointer(block)));
    }
}

#[test]
fn an_empty_block_grows() {
    // SAFETY: a live block, which realloc takes.
    let block = unsafe { raw::realloc(pointer(malloc(0)), 100) };
    // SAFETY: a live block of 100 bytes.
    unsafe { block.write_bytes(7, 100) };
    free(block.expose_provenance());
}

/// More than the addresses suffice for. The rest are smallest blocks.
#[test]
fn more_empty_blocks_than_addresses() {
    let blocks: BTreeSet<usize> = (0..70_000).map(|_| malloc(0)).collect();
    assert_eq!(blocks.len(), 70_000);
    let size = |block: &usize| raw::block_size(pointer(*block)).expect("a block");
    assert!(blocks.iter().any(|block| size(block) == 0));
    assert!(blocks.iter().any(|block| size(block) == 8));
    blocks.into_iter().for_each(free);
}

fn touch() {
    // SAFETY: the mistake that is tested.
    unsafe { pointer(malloc(0)).read_volatile() };
}

#[test]
fn a_touch_of_an_empty_block_faults() {
    for conf in ["", "hardened:true", "tcache:false"] {
        assert_eq!(play("touch", &[("LUMALLOC_CONF", conf)]).signal, Some(libc::SIGSEGV), "{conf}");
    }
}

/// A program without misuse exits with full bins and overflow stacks, beside threads that have them
/// and threads that work.
fn clean() {
    let work = || {
        let blocks: Vec<usize> = (0..30_000).map(|n| malloc(1 + n % 700)).collect();
        blocks.into_iter().for_each(free);
    };
    (0..3).map(|_| std::thread::spawn(work)).for_each(|thread| thread.join().expect("it ends"));
    work();
    std::thread::spawn(move || {
        loop {
            work();
        }
    });
    exit_beside(work, std::thread::park);
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for conf in ["", "hardened:true", "tcache:false", "junk:true"] {
        let outcome = play("clean", &[("LUMALLOC_CONF", conf)]);
        assert!(outcome.success && outcome.stderr.is_empty(), "{conf}: {outcome:?}");
    }
}
