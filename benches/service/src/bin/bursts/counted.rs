//! The system's allocator, with a count of the bytes that the program holds. The bytes are those
//! that were asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Threads that share a count wait for each other's cache line, so there are several.
const COUNTS: usize = 16;

#[repr(align(128))]
struct Count(AtomicIsize);

static COUNT: [Count; COUNTS] = [const { Count(AtomicIsize::new(0)) }; COUNTS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of the thread's count; `COUNTS` before its first call.
    static MINE: Cell<usize> = const { Cell::new(COUNTS) };
}

/// Returns how many bytes the program holds.
pub(crate) fn allocated() -> isize {
    COUNT.iter().map(|count| count.0.load(Relaxed)).sum()
}

fn add(bytes: isize) {
    let mine = MINE.get();
    let mine = if mine < COUNTS {
        mine
    } else {
        let mine = NEXT.fetch_add(1, Relaxed) % COUNTS;
        MINE.set(mine);
        mine
    };
    COUNT[mine].0.fetch_add(bytes, Relaxed);
}

pub(crate) struct Counted;

#[allow(unsafe_code, reason = "an allocator is unsafe to implement")]
// SAFETY: every call is passed on to `System` unchanged. The counts allocate nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller keeps the promises.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the promises.
        unsafe { System.realloc(block, layout, size) }
    }
}
