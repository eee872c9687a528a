//! The data segment: pages by sbrk(2), before or after the system's other addresses. Source:
//! jemalloc(3), `opt.dss`.
//!
//! Other code may move the break too. What it took is skipped, and never touched. Memory of the
//! segment is kept for ever: it is purged, but neither given back nor moved.

use crate::back::system::page_provider::{Moved, PageProvider, Purged, Reserved, Resident};
use crate::ground::options::{self, Dss};
use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::checked_round_up;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often the break is moved again after other code has moved it in between.
const TRIES: usize = 8;

/// The lock for moves of the break, which fork takes too.
pub(crate) static BREAK: RankedMutex<()> = RankedMutex::new(LockRank::Break, ());

/// All that was ever taken lies between these. What other code took there is in no run.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// `inner`, with the data segment before or after it, as the options say.
pub(crate) struct WithBreak<P> {
    inner: P,
}

impl<P: PageProvider> WithBreak<P> {
    pub(crate) const fn new(inner: P) -> WithBreak<P> {
        WithBreak { inner }
    }
}

/// Whether a range begins in the data segment.
fn is_in_segment(base: NonNull<u8>) -> bool {
    let address = base.as_ptr() as usize;
    address >= LOWEST.load(Relaxed) && address < HIGHEST.load(Relaxed)
}

/// Moves the break by `bytes` and returns where it was.
fn move_break(bytes: usize) -> Option<usize> {
    let bytes = isize::try_from(bytes).ok()?;
    // SAFETY: the break is only ever moved up, so no code loses memory.
    let before = os::keep_errno(|| unsafe { libc::sbrk(bytes) });
    if before.addr() == usize::MAX { None } else { Some(before.expose_provenance()) }
}

/// Takes `size` bytes of the data segment at a multiple of `align`.
fn take(size: usize, align: usize) -> Option<Reserved> {
    let _moving = BREAK.lock();
    for _ in 0..TRIES {
        let now = move_break(0)?;
        let base = checked_round_up(now, align)?;
        let end = base.checked_add(size)?;
        let before = move_break(end - now)?;
        // Other code may have moved the break. What was taken may still suffice.
        let base = checked_round_up(before, align)?;
        if base + size > before + (end - now) {
            continue;
        }
        LOWEST.fetch_min(base, Relaxed);
        HIGHEST.fetch_max(base + size, Relaxed);
        let base = NonNull::new(core::ptr::with_exposed_provenance_mut(base))?;
        return Some(Reserved { base, zeroed: true });
    }
    None
}

// SAFETY: the segment's memory is fresh, readable and writable, and no other code has it. The rest
// is what `inner` returns.
unsafe impl<P: PageProvider> PageProvider for WithBreak<P> {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        self.reserve_by(options::current().dss, size, align)
    }

    fn reserve_by(&self, dss: Dss, size: usize, align: usize) -> Option<Reserved> {
        match dss {
            Dss::Disabled => self.inner.reserve(size, align),
            Dss::Primary => take(size, align).or_else(|| self.inner.reserve(size, align)),
            Dss::Secondary => self.inner.reserve(size, align).or_else(|| take(size, align)),
        }
    }

    fn reserve_readable(&self, size: usize) -> Option<NonNull<u8>> {
        self.inner.reserve_readable(size)
    }

    fn reserve_low(&self, size: usize, align: usize) -> Option<Reserved> {
        self.inner.reserve_low(size, align)
    }

    unsafe fn make_writable(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.make_writable(base, size) }
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !is_in_segment(base) && unsafe { self.inner.release(base, size) }
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.purge(base, size) }
    }

    fn resident(&self, base: NonNull<u8>, size: usize) -> Option<Resident> {
        self.inner.resident(base, size)
    }

    unsafe fn advise_huge(&self, base: NonNull<u8>, size: usize, huge: bool) -> bool {
        // SAFETY: the caller's promise, handed on.
        !is_in_segment(base) && unsafe { self.inner.advise_huge(base, size, huge) }
    }

    unsafe fn renew(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !is_in_segment(base) && unsafe { self.inner.renew(base, size) }
    }

    unsafe fn move_pages(
        &self,
        from: NonNull<u8>,
        size: usize,
        to: NonNull<u8>,
        new_size: usize,
    ) -> Moved {
        if is_in_segment(from) || is_in_segment(to) {
            return Moved::Refused;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.move_pages(from, size, to, new_size) }
    }

    unsafe fn shift_pages(&self, from: NonNull<u8>, size: usize, to: NonNull<u8>) -> Moved {
        if is_in_segment(from) || is_in_segment(to) {
            return Moved::Refused;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.shift_pages(from, size, to) }
    }

    unsafe fn purge_lazily(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.purge_lazily(base, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::failing::{Failing, Refused};
    use crate::back::system::provider::mmap::Mmap;
    use crate::ground::units::PAGE;

    #[test]
    fn the_segment_comes_first_last_or_never() {
        let system = WithBreak::new(Failing::new(Mmap));
        let from_segment =
            |dss, size| system.reserve_by(dss, size, 64 << 10).map(|got| is_in_segment(got.base));
        assert_eq!(from_segment(Dss::Primary, PAGE), Some(true));
        assert_eq!(from_segment(Dss::Secondary, PAGE), Some(false));
        assert_eq!(from_segment(Dss::Disabled, PAGE), Some(false));
        system.inner.fail_every(1, Refused::All);
        assert_eq!(from_segment(Dss::Primary, PAGE), Some(true));
        assert_eq!(from_segment(Dss::Secondary, PAGE), Some(true));
        assert_eq!(from_segment(Dss::Disabled, PAGE), None);
        assert_eq!(from_segment(Dss::Secondary, 1 << 60), None);
    }

    #[test]
    fn the_segment_is_fresh_purged_and_never_given_back() {
        let system = WithBreak::new(Mmap);
        let got = system.reserve_by(Dss::Primary, 3 * PAGE, PAGE).unwrap();
        let last = got.base.as_ptr().wrapping_add(3 * PAGE - 1);
        // SAFETY: just reserved.
        assert_eq!(unsafe { last.read() }, 0);
        // SAFETY: just reserved.
        unsafe { last.write(1) };
        // SAFETY: just reserved, and not used any more.
        assert!(!unsafe { system.release(got.base, 3 * PAGE) });
        // SAFETY: just reserved, and not used any more.
        assert!(!unsafe { system.renew(got.base, 3 * PAGE) });
        // SAFETY: just reserved, and not needed any more.
        let moved = unsafe { system.move_pages(got.base, PAGE, got.base, PAGE) };
        assert_eq!(moved, Moved::Refused);
        // SAFETY: just reserved.
        assert_eq!(unsafe { last.read() }, 1);
        // SAFETY: just reserved, and not used any more.
        assert_eq!(unsafe { system.purge(got.base, 3 * PAGE) }, Purged::Zeroed);
        // SAFETY: just reserved.
        assert_eq!(unsafe { last.read() }, 0);
    }
}
