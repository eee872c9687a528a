//! Functions that take the place of malloc, as the C library offers them: from the first call on,
//! for every way to allocate and free, in all threads.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use lumalloc::control::diversion::{Diversion, past};
use lumalloc::raw::{self, Flags};

static TABLE: Diversion = Diversion {
    is_wanted: || true,
    allocate,
    free: |block, is_own| {
        !is_own && {
            FREED.fetch_add(1, Relaxed);
            assert!(number_of(block).is_some());
            true
        }
    },
    resize: |block, is_own, size, align| {
        let old = (!is_own).then(|| number_of(block)).flatten()?;
        let new = allocate(size, align)?;
        // SAFETY: blocks of at least this long.
        unsafe { new.copy_from_nonoverlapping(block, size.min(SIZES[old].load(Relaxed))) };
        Some(new)
    },
    size: |block| number_of(block).map(|number| SIZES[number].load(Relaxed)),
};

global_asm!(
    ".pushsection .data.rel.ro.diversion,\"aw\",@progbits",
    ".p2align 3",
    ".hidden LUMALLOC_DIVERSION_0_1",
    ".globl LUMALLOC_DIVERSION_0_1",
    "LUMALLOC_DIVERSION_0_1: .quad {table}",
    ".popsection",
    table = sym TABLE,
);

const BLOCKS: usize = 2000;
const SIZE: usize = 4096;

/// The other heap: blocks of one length, each used once.
static mut MEMORY: [[u8; SIZE]; BLOCKS] = [[0x55; SIZE]; BLOCKS];
static SIZES: [AtomicUsize; BLOCKS] = [const { AtomicUsize::new(0) }; BLOCKS];
static USED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);
/// Whether the table leaves requests to the allocator.
static IS_OFF: AtomicBool = AtomicBool::new(false);

fn allocate(size: usize, _align: usize) -> Option<*mut u8> {
    if size > SIZE || IS_OFF.load(Relaxed) {
        return None;
    }
    // What the table allocates is not diverted.
    let inner = raw::malloc(10);
    assert!(number_of(inner).is_none() && raw::block_size(inner) == Some(16));
    free(inner);
    let number = USED.fetch_add(1, Relaxed);
    SIZES[number].store(size, Relaxed);
    Some((&raw mut MEMORY).cast::<u8>().wrapping_add(number * SIZE))
}

fn number_of(block: *mut u8) -> Option<usize> {
    let offset = block.addr().wrapping_sub((&raw const MEMORY).addr());
    (offset.is_multiple_of(SIZE) && offset / SIZE < BLOCKS).then_some(offset / SIZE)
}

/// Frees a block of this test, which is not used after.
fn free(block: *mut u8) {
    // SAFETY: the tests pass each block once.
    unsafe { raw::free(block) };
}

/// Returns a byte of a block of this test, which has it.
fn byte_at(block: *mut u8, place: usize) -> u8 {
    // SAFETY: the tests pass a place in the block.
    unsafe { block.wrapping_add(place).read() }
}

/// Runs `f`, and returns how many blocks were diverted and freed meanwhile.
fn counted(f: impl FnOnce()) -> (usize, usize) {
    let (used, freed) = (USED.load(Relaxed), FREED.load(Relaxed));
    f();
    (USED.load(Relaxed) - used, FREED.load(Relaxed) - freed)
}

/// One test, because the table is that of the process.
#[test]
fn calls_are_diverted_from_the_first_on() {
    // The first call of the process, of a small block.
    let first = raw::malloc(8);
    assert_eq!(number_of(first), Some(0));
    free(first);
    assert_eq!(FREED.load(Relaxed), 1);
    each_way_to_allocate_and_free();
    blocks_are_resized();
    calls_that_the_table_leaves_to_the_allocator();
    threads_are_diverted();
}

fn each_way_to_allocate_and_free() {
    let all = counted(|| {
        free(raw::malloc(3000));
        let block = raw::malloc(100);
        // SAFETY: the test's own block with its size, freed once.
        unsafe { raw::free_sized(block, 100) };
        let block = raw::malloc_aligned(100, 64);
        // SAFETY: as above, and with its alignment.
        unsafe { raw::free_sized_aligned(block, 100, 64) };
        let block = raw::malloc(64);
        // SAFETY: as above.
        unsafe { raw::free_roomy(block, 64, 1) };
        let block = raw::allocate(100, Flags::NONE);
        // SAFETY: as above.
        unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
    });
    assert_eq!(all, (5, 5));
    let zeroed = counted(|| {
        for block in [raw::malloc_zeroed(4000), raw::malloc_aligned_zeroed(200, 16)] {
            let size = SIZES[number_of(block).expect("a diverted block")].load(Relaxed);
            // SAFETY: the block is so long.
            let bytes = unsafe { core::slice::from_raw_parts(block, size) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            free(block);
        }
    });
    assert_eq!(zeroed, (2, 2));
}

fn blocks_are_resized() {
    let block = raw::malloc(10);
    // SAFETY: the block is the test's, and this long.
    unsafe { block.write_bytes(7, 10) };
    // SAFETY: a live block.
    assert_eq!(unsafe { raw::usable_size(block) }, 10);
    // SAFETY: a live block.
    assert_eq!(unsafe { raw::resize_in_place(block, 4000, 0, Flags::NONE) }, 10);
    // SAFETY: a live block, not used after.
    let longer = unsafe { raw::realloc(block, 20) };
    assert!(number_of(longer).is_some() && longer != block);
    assert_eq!(byte_at(longer, 9), 7);
    // Too long for the table, so that the allocator's own block takes over. It is zeroed on wish.
    // SAFETY: a live block, not used after.
    let moved = unsafe { raw::reallocate(longer, 9000, Flags::NONE.zeroed()) };
    assert!(number_of(moved).is_none());
    assert_eq!([9, 8999].map(|place| byte_at(moved, place)), [7, 0]);
    free(moved);
}

fn calls_that_the_table_leaves_to_the_allocator() {
    let none = counted(|| {
        let block = past(|| raw::malloc(100));
        assert_eq!(raw::block_size(block), Some(112));
        free(block);
        let block = raw::allocate(100, Flags::NONE.uncached());
        // SAFETY: the test's own block, freed once.
        unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
        IS_OFF.store(true, Relaxed);
        free(raw::malloc(100));
        IS_OFF.store(false, Relaxed);
    });
    assert_eq!(none, (0, 0));
}

fn threads_are_diverted() {
    let block = raw::malloc(10).expose_provenance();
    let all = counted(|| {
        let work = move || {
            // The first call of the thread is a free.
            free(core::ptr::with_exposed_provenance_mut(block));
            for _ in 0..100 {
                free(raw::malloc(40));
            }
        };
        std::thread::spawn(work).join().expect("the thread");
    });
    assert_eq!(all, (100, 101));
}
