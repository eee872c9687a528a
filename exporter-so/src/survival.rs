//! What goes wrong in the exporter stays in the exporter.
//!
//! The library is built to abort at a panic, as liblumalloc.so is, and Rust ends a process that is
//! out of memory. Neither may happen to a program that is only observed. Therefore the hook that
//! runs before the abort never returns. The thread that panicked stands still. It holds no lock of
//! the allocator, because it never panics in the allocator's code. A small allocation that fails is
//! tried again until there is memory, so the exporter waits and the program goes on, also if it
//! has not reached `main`: it does not wait for the start of the exporter for ever. The exporter
//! asks for large blocks before it begins something, and does without if there is no memory. Before
//! `main` the first thread allocates a little for it. Without that memory the program ends, as it
//! would soon after.
//!
//! The hook and the allocator belong to this object. A program that is written in Rust has others.
use exporter::say::say;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic;
use std::thread;
use std::time::Duration;

/// The pause between two tries to get memory.
const PAUSE: Duration = Duration::from_millis(100);
/// From this size on a failure is returned at once, so that the exporter sees if it can go on.
const LARGE: usize = 64 << 10;

#[global_allocator]
static MEMORY: Patient = Patient;

/// `malloc`, which is called until it has memory for a small block.
struct Patient;

// SAFETY: returns what `System` returns.
unsafe impl GlobalAlloc for Patient {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask(layout.size(), || {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { System.alloc(layout) }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ask(layout.size(), || {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { System.alloc_zeroed(layout) }
        })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ask(size, || {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { System.realloc(block, layout, size) }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of this method.
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

/// Whether this is the program's first thread, which does not wait. It only starts the exporter.
fn is_main() -> bool {
    // SAFETY: `getpid` only returns a number.
    let process = unsafe { libc::getpid() };
    // SAFETY: `gettid` only returns a number.
    process == unsafe { libc::gettid() }
}

/// Sets the panic hook.
pub(crate) fn prepare() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or("", |location| location.file());
        let line = panic.location().map_or(0, std::panic::Location::line);
        let why = panic.payload_as_str().unwrap_or("?");
        say(&format!("it stopped at {place}:{line}: {why}; the program goes on"));
        loop {
            thread::park();
        }
    }));
}
