//! Which words of a stack a walk may read.

use crate::ground::os;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A frame with more bytes is not followed without a check that its memory can be read.
pub(super) const LONG_FRAME: usize = 64 << 10;

/// Which memory of the stack is known to be readable.
pub(super) struct Checked {
    /// An address that no frame of this stack has or is above, and up to which all memory can be
    /// read. 0: there is none, because the stack is not the thread's own, or because not only
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

/// How far below its top each thread's stack is known to be readable without a gap, as far as a
/// thread has reached so far. A place is shared by threads, and the last one has it.
struct KnownDepths([AtomicU64; KNOWN]);

/// Places of known depths, a power of two.
const KNOWN: usize = 256;
/// A stack that is deeper is not looked at: what lies so far above is hardly the same stack.
const DEEPEST_STACK: usize = 16 << 20;

static DEPTHS: KnownDepths = KnownDepths([const { AtomicU64::new(0) }; KNOWN]);

impl KnownDepths {
    /// Bits of a place that tell the depth in bytes. The others are those of the top.
    const DEPTH_BITS: u32 = 25;

    /// Returns what stands for a top at its place: those bits that tell it from others.
    #[inline(always)]
    fn tag(top: usize) -> u64 {
        (top as u64 >> 6) << KnownDepths::DEPTH_BITS
    }

    #[inline(always)]
    fn place(&self, top: usize) -> Option<&AtomicU64> {
        // Stacks begin at different pages, most of them a power of two and a page apart.
        self.0.get(top / 4096 % KNOWN)
    }

    /// Returns the known depth of the stack with this top. 0: nothing is known of it.
    #[inline(always)]
    fn get(&self, top: usize) -> usize {
        let word = self.place(top).map_or(0, |place| place.load(Relaxed));
        let depth = word & ((1 << KnownDepths::DEPTH_BITS) - 1);
        if word - depth == KnownDepths::tag(top) { depth as usize } else { 0 }
    }

    fn set(&self, top: usize, depth: usize) {
        if let Some(place) = self.place(top) {
            place.store(KnownDepths::tag(top) | depth as u64, Relaxed);
        }
    }

    fn forget(&self, top: usize) {
        if self.get(top) != 0 {
            self.set(top, 0);
        }
    }
}

/// Forgets how deep the calling thread's stack is. Called when a thread begins, before a walk
/// through its stack: one that has ended may have had its record at the same address, above a
/// deeper stack.
pub(super) fn forget_depth() {
    DEPTHS.forget(os::thread_address());
}

const _: () = assert!(DEEPEST_STACK < 1 << KnownDepths::DEPTH_BITS);

/// Returns whether all memory from this stack pointer to the top of the thread's stack can be read:
/// whether both are of one stack. Coroutines and handlers of signals have others, which may end a
/// few bytes above the stack pointer.
#[inline(always)]
fn is_below(stack: usize, top: usize) -> bool {
    top.wrapping_sub(stack) <= DEPTHS.get(top) || reaches(stack, top)
}

/// As [`is_below`], by asking the system about the pages that are not known yet.
#[cold]
#[inline(never)]
fn reaches(stack: usize, top: usize) -> bool {
    let page = os::system_page();
    let known = top - DEPTHS.get(top);
    let mut next = stack & !(page - 1);
    if stack >= top || top - next > DEEPEST_STACK {
        return false;
    }
    let depth = top - next;
    while next < known {
        if !os::is_readable(next) {
            return false;
        }
        next += page;
    }
    DEPTHS.set(top, depth);
    true
}

impl Checked {
    /// Creates the check for a walk that begins at this stack pointer.
    pub(super) fn new(stack: usize) -> Checked {
        // The C library's record of a thread lies above the thread's stack. What the system gives
        // to a program lies above the first stack. They may lie far above other stacks.
        let record = os::thread_address();
        let top = if record > stack { record } else { above_first_stack() };
        Checked { end: if is_below(stack, top) { top } else { 0 }, page: 0 }
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

/// Depths as tests see and set them.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Notes a depth that a thread has left that had its record where the calling one has it.
    pub(crate) fn leave_depth() {
        DEPTHS.set(os::thread_address(), DEEPEST_STACK);
    }

    /// Returns whether that depth is known.
    pub(crate) fn is_left() -> bool {
        DEPTHS.get(os::thread_address()) == DEEPEST_STACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_is_known_of_the_stack_that_set_it_only() {
        let depths = KnownDepths([const { AtomicU64::new(0) }; KNOWN]);
        let (top, other) = (0x7f12_3456_7640, 0x7f12_3456_7640 + 4096 * KNOWN);
        assert_eq!(depths.get(top), 0);
        depths.set(top, 8192);
        assert_eq!((depths.get(top), depths.get(other)), (8192, 0));
        depths.set(other, DEEPEST_STACK);
        assert_eq!((depths.get(top), depths.get(other)), (0, DEEPEST_STACK));
        depths.forget(top);
        assert_eq!(depths.get(other), DEEPEST_STACK);
        depths.forget(other);
        assert_eq!(depths.get(other), 0);
    }

    #[test]
    fn a_stack_with_a_gap_below_the_top_is_another_one() {
        let page = os::system_page();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: new memory, wherever there is room.
        let place =
            unsafe { libc::mmap(core::ptr::null_mut(), 4 * page, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        let begin = place.expose_provenance();
        let top = begin + 4 * page - 64;
        assert!(is_below(begin + 3 * page, top) && is_below(begin + 2 * page + 8, top));
        assert_eq!(DEPTHS.get(top), 2 * page - 64);
        let gap = core::ptr::with_exposed_provenance_mut(begin + page);
        // SAFETY: the page is this test's.
        assert_eq!(unsafe { libc::mprotect(gap, page, libc::PROT_NONE) }, 0);
        assert!(!is_below(begin + page - 8, top), "the second page is a gap");
        assert!(is_below(begin + 2 * page, top) && !is_below(top + 8, top));
        assert!(!is_below(top - DEEPEST_STACK - page, top), "it is too far away");
    }
}
