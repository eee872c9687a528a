//! Which words of a stack a walk may read.

use crate::ground::os;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A frame with more bytes is not followed without a check that its memory can be read.
pub(super) const LONG_FRAME: usize = 64 << 10;

/// Which memory of the stack is known to be readable.
pub(super) struct Checked {
    /// An address that no frame of this stack has or is above, as far as it is known. 0: not only
    /// unwind tables have led to this frame, but a frame pointer, which may be any number.
    pub(super) end: usize,
    /// The last page that the system was asked about.
    pub(super) page: usize,
}

/// Returns an address above the stack of the first thread: that of random bytes, which the system
/// gives to the program.
#[inline(always)]
fn above_first_stack() -> usize {
    static ABOVE: AtomicUsize = AtomicUsize::new(0);
    #[cold]
    #[inline(never)]
    fn find() -> usize {
        // SAFETY: any value may be asked for.
        let found = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        ABOVE.store(found, Relaxed);
        found
    }
    match ABOVE.load(Relaxed) {
        0 => find(),
        known => known,
    }
}

impl Checked {
    /// Creates the check for a walk that begins at this stack pointer.
    pub(super) fn new(stack: usize) -> Checked {
        // The C library's record of a thread lies above the thread's stack. What the system gives
        // to a program lies above the first stack. They may lie far above other stacks.
        let record = os::thread_address();
        let end = if record > stack { record } else { above_first_stack() };
        Checked { end: if end > stack { end } else { usize::MAX }, page: 0 }
    }

    /// Reads a word of the stack. Near the stack pointer this is safe by the rules of the tables.
    #[inline(always)]
    pub(super) fn word(&mut self, stack: usize, address: usize) -> Option<usize> {
        if !address.is_multiple_of(size_of::<usize>()) {
            return None;
        }
        let is_near = address.wrapping_sub(stack) <= LONG_FRAME && address < self.end;
        if !is_near && !self.can_read(address) {
            return None;
        }
        let place = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: a word of a frame that has not returned, or one that the system can read.
        Some(unsafe { place.read_volatile() })
    }

    #[cold]
    #[inline(never)]
    fn can_read(&mut self, address: usize) -> bool {
        let page = address & !(os::system_page() - 1);
        if page != self.page {
            if !os::is_readable(page) {
                return false;
            }
            self.page = page;
        }
        true
    }
}
