//! Misuse ends the process by SIGABRT, with a line that says what is known. Each case runs in a
//! child, which announces the expected message.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::control::flush_thread_cache;
use lumalloc::raw::{self, Flags};

macro_rules! deaths {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                dies(stringify!($name), "");
            }
        )*

        #[test]
        #[ignore = "the scenarios of the tests above"]
        fn child() {
            let Some(name) = scenario() else { return };
            match name.as_str() {
                $(stringify!($name) => scenes::$name(),)*
                _ => panic!("no scenario {name}"),
            }
            panic!("{name} survived");
        }
    };
}

deaths!(
    double_free_in_one_flush,
    double_free_over_two_flushes,
    double_free_of_an_owned_slabs_block,
    double_free_by_two_threads,
    double_free_among_scattered_ones,
    interior_among_scattered_ones,
    double_free_past_the_caches,
    double_free_of_a_large_block,
    double_free_of_a_large_block_by_size,
    double_free_of_a_kept_block,
    foreign_stack,
    foreign_static,
    foreign_never_mapped,
    foreign_mapped_by_the_program,
    foreign_highest,
    foreign_misaligned,
    foreign_by_size,
    interior_small,
    interior_small_misaligned,
    interior_small_past_the_caches,
    interior_small_by_size,
    interior_end_of_a_slab,
    interior_large,
    interior_large_last_page,
    wrong_size_too_large,
    wrong_size_too_small,
    wrong_size_of_a_large_block,
);

/// Frees a block by look-up.
fn free(address: usize) {
    // SAFETY: none. This is the mistake that is tested.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(address)) };
}

/// Frees a block by size.
fn free_sized(address: usize, size: usize) {
    // SAFETY: none. This is the mistake that is tested.
    unsafe { raw::free_sized(std::ptr::with_exposed_provenance_mut(address), size) };
}

/// Frees a block past the cache.
fn free_uncached(address: usize) {
    // SAFETY: none. This is the mistake that is tested.
    unsafe {
        raw::deallocate(std::ptr::with_exposed_provenance_mut(address), Flags::NONE.uncached())
    };
}

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

/// Gives the bin of a class an array, so that it takes freed blocks.
fn warm(size: usize) {
    free(malloc(size));
}

fn foreign_free(address: usize) {
    tell(&format!("invalid free of {address:#x}: not memory of this allocator"));
    free(address);
}

mod scenes {
    use super::*;

    pub(super) fn double_free_in_one_flush() {
        let block = malloc(100);
        free(block);
        free(block);
        tell(&format!("double free of {block:#x} (size 112, arena 0)"));
        flush_thread_cache();
    }

    pub(super) fn double_free_over_two_flushes() {
        let (block, _neighbour) = (malloc(1000), malloc(1000));
        free(block);
        flush_thread_cache();
        free(block);
        tell(&format!("double free of {block:#x} (size 1024, arena 0)"));
        flush_thread_cache();
    }

    pub(super) fn double_free_of_an_owned_slabs_block() {
        // More blocks than shared slabs' refills give, so this cache owns the last block's slab.
        let blocks: Vec<usize> = (0..1000).map(|_| malloc(64)).collect();
        let block = blocks[999];
        free(block);
        free(block);
        tell(&format!("double free of {block:#x} (size 64, arena 0, owner cache 0)"));
        flush_thread_cache();
    }

    pub(super) fn double_free_by_two_threads() {
        let blocks: Vec<usize> = (0..1000).map(|_| malloc(64)).collect();
        let block = blocks[999];
        tell(&format!("double free of {block:#x} (size 64, arena 0, owner cache 0)"));
        for _ in 0..2 {
            let thread = std::thread::spawn(move || {
                warm(64);
                free(block);
                flush_thread_cache();
            });
            thread.join().expect("the other thread");
        }
    }

    /// Frees blocks of another cache on a new thread, each in another word than the one before.
    fn free_scattered(blocks: Vec<usize>) {
        let freer = move || {
            warm(64);
            let count = blocks.len();
            (0..count).for_each(|n| free(blocks[n * 641 % count]));
            flush_thread_cache();
        };
        std::thread::spawn(freer).join().expect("the other thread");
    }

    pub(super) fn double_free_among_scattered_ones() {
        let mut blocks: Vec<usize> = (0..4000).map(|_| malloc(64)).collect();
        let block = blocks[3999];
        blocks[2000] = block;
        tell(&format!("double free of {block:#x} (size 64, arena 0, owner cache 0)"));
        free_scattered(blocks);
    }

    pub(super) fn interior_among_scattered_ones() {
        let mut blocks: Vec<usize> = (0..4000).map(|_| malloc(64)).collect();
        let block = blocks[3999];
        blocks[3999] += 16;
        tell(&format!(
            "invalid free of {:#x}: inside the block {block:#x} (size 64, arena 0, owner cache 0)",
            block + 16
        ));
        free_scattered(blocks);
    }

    pub(super) fn double_free_past_the_caches() {
        let (block, _neighbour) = (malloc(200), malloc(200));
        tell(&format!("double free of {block:#x} (size 224, arena 0)"));
        free_uncached(block);
        free_uncached(block);
    }

    pub(super) fn double_free_of_a_large_block() {
        let blocks = [malloc(100_000), malloc(100_000), malloc(100_000)];
        tell(&format!("double free of {:#x} (arena 0)", blocks[1]));
        free(blocks[1]);
        free(blocks[1]);
    }

    pub(super) fn double_free_of_a_large_block_by_size() {
        let blocks = [malloc(100_000), malloc(100_000), malloc(100_000)];
        tell(&format!("double free of {:#x} (arena 0)", blocks[1]));
        free_sized(blocks[1], 100_000);
        free_sized(blocks[1], 100_000);
    }

    pub(super) fn double_free_of_a_kept_block() {
        // After a few requests the thread keeps what it frees, so this block is still cached.
        let blocks: Vec<usize> = (0..8).map(|_| malloc(100_000)).collect();
        free(blocks[1]);
        assert_eq!(lumalloc::observe::totals().cached, 114_688);
        tell(&format!("double free of {:#x} (size 114688, arena 0)", blocks[1]));
        free(blocks[1]);
    }

    pub(super) fn foreign_stack() {
        warm(100);
        let here = [0u64; 4];
        foreign_free((&raw const here).expose_provenance());
    }

    pub(super) fn foreign_static() {
        static HERE: [u64; 4] = [1; 4];
        warm(100);
        foreign_free((&raw const HERE).expose_provenance());
    }

    pub(super) fn foreign_never_mapped() {
        // This is also the first call of the thread and of the process.
        foreign_free(0x1234_5000);
    }

    pub(super) fn foreign_mapped_by_the_program() {
        let block = malloc(100);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // Near the heap, under the same leaf of the page map.
        let near = (block & !0xffff_ffff) + 0x1000;
        let hint = std::ptr::without_provenance_mut(near);
        // SAFETY: the call maps new memory and replaces none.
        let got = unsafe { libc::mmap(hint, 4096, access, flags, -1, 0) };
        let got = got.expose_provenance();
        foreign_free(if got == usize::MAX { near } else { got });
    }

    pub(super) fn foreign_highest() {
        warm(100);
        foreign_free(usize::MAX - 15);
    }

    pub(super) fn foreign_misaligned() {
        warm(100);
        foreign_free(0x7fff_ffff_0003);
    }

    pub(super) fn foreign_by_size() {
        warm(100);
        let here = [0u64; 4];
        let here = (&raw const here).expose_provenance();
        free_sized(here, 100);
        tell(&format!("invalid free of {here:#x}: not memory of this allocator"));
        flush_thread_cache();
    }

    fn interior(address: usize, block: usize, of: &str) {
        tell(&format!("invalid free of {address:#x}: inside the block {block:#x} ({of})"));
    }

    pub(super) fn interior_small() {
        let block = malloc(100);
        free(block + 16);
        interior(block + 16, block, "size 112, arena 0");
        flush_thread_cache();
    }

    pub(super) fn interior_small_misaligned() {
        let block = malloc(1000);
        free(block + 1);
        interior(block + 1, block, "size 1024, arena 0");
        flush_thread_cache();
    }

    pub(super) fn interior_small_past_the_caches() {
        let block = malloc(5000);
        interior(block + 5119, block, "size 5120, arena 0");
        free_uncached(block + 5119);
    }

    pub(super) fn interior_small_by_size() {
        let block = malloc(100);
        warm(100);
        free_sized(block + 8, 100);
        interior(block + 8, block, "size 112, arena 0");
        flush_thread_cache();
    }

    pub(super) fn interior_end_of_a_slab() {
        // 64 KiB hold 585 blocks of 112 bytes. The 16 bytes after them belong to no block.
        let block = malloc(100);
        let base = block & !0xffff;
        free(base + 585 * 112);
        interior(base + 585 * 112, base + 584 * 112, "size 112, arena 0");
        flush_thread_cache();
    }

    pub(super) fn interior_large() {
        let block = malloc(1 << 20);
        interior(block + 5000, block, "size 1048576, arena 0");
        free(block + 5000);
    }

    pub(super) fn interior_large_last_page() {
        let block = malloc(1 << 20);
        interior(block + (1 << 20) - 4096, block, "size 1048576, arena 0");
        free(block + (1 << 20) - 4096);
    }

    fn wrong_size(address: usize, class: usize, of: &str) {
        tell(&format!("sized free of {address:#x} with size {class}, which is not its own ({of})"));
    }

    pub(super) fn wrong_size_too_large() {
        warm(200);
        let block = malloc(100);
        free_sized(block, 200);
        wrong_size(block, 224, "size 112, arena 0");
        flush_thread_cache();
    }

    pub(super) fn wrong_size_too_small() {
        warm(100);
        let block = malloc(30_000);
        free_sized(block, 100);
        wrong_size(block, 112, "size 32768, arena 0");
        flush_thread_cache();
    }

    pub(super) fn wrong_size_of_a_large_block() {
        warm(100);
        let block = malloc(100_000);
        free_sized(block, 100);
        wrong_size(block, 112, "size 114688, arena 0");
        flush_thread_cache();
    }
}
