//! One executable, two allocators.
//!
//! The demonstration compares equal machine code on lumalloc and on the system's allocator, so both
//! sides execute the same branch. An environment variable decides once, at the first allocation,
//! which allocator serves. It is read through `getenv`, because `std::env::var` would allocate.
//!
//! `lumalloc run` is on the system's allocator. It does not read the options, because they belong
//! to the program that it becomes. Therefore an error in them is reported once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use lumalloc::Lumalloc;

/// The variable that selects the system's allocator by `system`. Otherwise lumalloc is selected.
pub(crate) const VARIABLE: &CStr = c"LUMALLOC_DEMO_ALLOCATOR";

const UNDECIDED: u8 = 0;
const LUMALLOC: u8 = 1;
const SYSTEM: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// The global allocator. It passes every call to the allocator that was chosen.
pub(crate) struct Switch;

/// Whether this process runs on the system's allocator.
#[inline(always)]
pub(crate) fn is_system() -> bool {
    match MODE.load(Ordering::Relaxed) {
        UNDECIDED => decide(),
        mode => mode == SYSTEM,
    }
}

/// Decides at the first allocation, before `main` and before there is a second thread.
#[cold]
fn decide() -> bool {
    // SAFETY: the name is NUL-terminated, and no other thread can be changing the environment yet.
    let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    let asked = !value.is_null() && {
        // SAFETY: getenv returns a NUL-terminated string of the environment, which is read at once.
        let value = unsafe { CStr::from_ptr(value) };
        value == c"system"
    };
    let system = asked || is_run();
    MODE.store(if system { SYSTEM } else { LUMALLOC }, Ordering::Relaxed);
    system
}

/// Whether the first argument is `run`. By system calls, because nothing can be allocated yet.
fn is_run() -> bool {
    // SAFETY: the path is NUL-terminated.
    let file =
        unsafe { libc::open(c"/proc/self/cmdline".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return false;
    }
    let mut text = [0u8; 4096];
    // SAFETY: the buffer is writable for its length.
    let length = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: the file was opened above, and is not used after.
    unsafe { libc::close(file) };
    let text = text.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    text.split(|&byte| byte == 0).nth(1) == Some(b"run")
}

// SAFETY: each method passes its arguments on unchanged. The choice never changes once it is made,
// so a block always goes back to the allocator that gave it.
unsafe impl GlobalAlloc for Switch {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_system() {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { System.alloc(layout) }
        } else {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { Lumalloc.alloc(layout) }
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_system() {
            // SAFETY: the caller keeps the contract, and the block came from this allocator.
            unsafe { System.dealloc(block, layout) }
        } else {
            // SAFETY: the caller keeps the contract, and the block came from this allocator.
            unsafe { Lumalloc.dealloc(block, layout) }
        }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_system() {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { System.alloc_zeroed(layout) }
        } else {
            // SAFETY: the caller keeps the contract of this method.
            unsafe { Lumalloc.alloc_zeroed(layout) }
        }
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_system() {
            // SAFETY: the caller keeps the contract, and the block came from this allocator.
            unsafe { System.realloc(block, layout, size) }
        } else {
            // SAFETY: the caller keeps the contract, and the block came from this allocator.
            unsafe { Lumalloc.realloc(block, layout, size) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_made_before_main_and_stays() {
        let wanted = std::env::var_os("LUMALLOC_DEMO_ALLOCATOR").is_some_and(|v| v == "system");
        let run = std::env::args().nth(1).is_some_and(|word| word == "run");
        assert_eq!(is_system(), wanted || run);
        assert_ne!(MODE.load(Ordering::Relaxed), UNDECIDED);
    }

    #[test]
    fn every_method_reaches_the_chosen_allocator() {
        let mut grown: Vec<u8> = vec![0; 100];
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            grown.resize(size, 7);
            grown.shrink_to_fit();
        }
        assert_eq!(&grown[..100], &[0; 100]);
        assert!(grown[100..].iter().all(|&b| b == 7));
    }
}
