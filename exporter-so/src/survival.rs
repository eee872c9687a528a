//! What goes wrong in the exporter stays in the exporter.
//!
//! The library is built to abort at a panic, as liblumalloc.so is, and Rust ends a process that is
//! out of memory. Neither may happen to a program that only wanted to be looked at. So the hook
//! that runs before the abort never comes back: the thread that panicked stands still, and holds
//! no lock of the allocator, whose code it never panics in. And a small allocation that fails is
//! tried again until there is memory: the exporter waits, the program goes on. The exporter asks
//! for large ones before it begins something, and does without where there is none.
//!
//! The hook and the allocator are this object's own: the Rust of a program that is written in it
//! has others.
use crate::start;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic;
use std::thread;
use std::time::Duration;

/// Between two tries to get memory.
const PAUSE: Duration = Duration::from_millis(100);
/// From so many bytes on a lack is answered at once: so the exporter sees whether it can go on.
const LARGE: usize = 64 << 10;

#[global_allocator]
static MEMORY: Patient = Patient;

/// `malloc`, asked until it has memory for what is small.
struct Patient;

// SAFETY: hands on what `System` answers.
unsafe impl GlobalAlloc for Patient {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask(layout.size(), || {
            // SAFETY: the caller's promise is ours.
            unsafe { System.alloc(layout) }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ask(layout.size(), || {
            // SAFETY: the caller's promise is ours.
            unsafe { System.alloc_zeroed(layout) }
        })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ask(size, || {
            // SAFETY: the caller's promise is ours.
            unsafe { System.realloc(block, layout, size) }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

fn ask(size: usize, get: impl Fn() -> *mut u8) -> *mut u8 {
    loop {
        let block = get();
        if !block.is_null() || size >= LARGE || is_main() {
            return block;
        }
        thread::sleep(PAUSE);
    }
}

/// The program's first thread is not made to wait: it starts the exporter, no more.
fn is_main() -> bool {
    // SAFETY: asks for a number.
    let process = unsafe { libc::getpid() };
    // SAFETY: as above.
    process == unsafe { libc::gettid() }
}

/// Sets the hook.
pub(crate) fn prepare() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or("", |location| location.file());
        let line = panic.location().map_or(0, std::panic::Location::line);
        start::say(&format!("it stopped at {place}:{line}; the program goes on"));
        loop {
            thread::park();
        }
    }));
}
