//! A provider that refuses on demand, for tests: every n-th call of one kind, or of any kind, fails
//! as the system would.

use super::dss::WithBreak;
use super::mmap::Mmap;
use crate::back::system::page_provider::{Moved, PageProvider, Purged, Reserved, Resident};
use crate::ground::options::Dss;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// The provider of the whole allocator in test builds.
pub(crate) static SYSTEM: Failing<WithBreak<Mmap>> = Failing::new(WithBreak::new(Mmap));

/// A kind of call that a test makes the system refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "public for tests outside"))]
pub enum Refused {
    /// Every kind.
    All,
    /// Reserving addresses.
    Reserve,
    /// Making a table of the allocator writable.
    MakeWritable,
    /// Giving addresses back.
    Release,
    /// Giving memory back.
    Purge,
    /// Giving memory back when the system likes.
    PurgeLazily,
    /// Asking which pages have memory.
    Resident,
    /// Asking for huge pages.
    AdviseHuge,
    /// Asking for small pages.
    AdviseSmall,
    /// Making an ordinary mapping of a range.
    Renew,
    /// Moving a run to other addresses.
    Move,
    /// Moving memory while its addresses stay.
    Shift,
}

impl Refused {
    /// Each kind, and [`Refused::All`].
    #[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "as the type"))]
    pub const EACH: [Refused; 12] = [
        Refused::All,
        Refused::Reserve,
        Refused::MakeWritable,
        Refused::Release,
        Refused::Purge,
        Refused::PurgeLazily,
        Refused::Resident,
        Refused::AdviseHuge,
        Refused::AdviseSmall,
        Refused::Renew,
        Refused::Move,
        Refused::Shift,
    ];
}

/// `inner`, with every `period`-th call of a kind refused. 0 refuses none.
pub(crate) struct Failing<P> {
    inner: P,
    period: AtomicU64,
    kind: AtomicU8,
    /// Calls of the refused kind.
    calls: AtomicU64,
    /// Whether the next page that is shifted loses its new place.
    loses: AtomicBool,
}

impl<P> Failing<P> {
    pub(crate) const fn new(inner: P) -> Failing<P> {
        Failing {
            inner,
            period: AtomicU64::new(0),
            kind: AtomicU8::new(Refused::All as u8),
            calls: AtomicU64::new(0),
            loses: AtomicBool::new(false),
        }
    }

    /// Makes every `period`-th call of a kind fail from now on. 0 is none, 1 is all.
    pub(crate) fn fail_every(&self, period: u64, kind: Refused) {
        self.kind.store(kind as u8, Relaxed);
        self.period.store(period, Relaxed);
    }

    /// Makes the next shift of pages one in which other code takes the new place.
    #[cfg(test)]
    pub(crate) fn lose_next(&self) {
        self.loses.store(true, Relaxed);
    }

    fn refuses(&self, kind: Refused) -> bool {
        let refused = self.kind.load(Relaxed);
        if refused != Refused::All as u8 && refused != kind as u8 {
            return false;
        }
        let call = self.calls.fetch_add(1, Relaxed) + 1;
        match self.period.load(Relaxed) {
            0 => false,
            period => call.is_multiple_of(period),
        }
    }
}

// SAFETY: returns what `inner` returns, or refuses without changing anything.
unsafe impl<P: PageProvider> PageProvider for Failing<P> {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        if self.refuses(Refused::Reserve) { None } else { self.inner.reserve(size, align) }
    }

    fn reserve_by(&self, dss: Dss, size: usize, align: usize) -> Option<Reserved> {
        if self.refuses(Refused::Reserve) { None } else { self.inner.reserve_by(dss, size, align) }
    }

    fn reserve_readable(&self, size: usize) -> Option<NonNull<u8>> {
        if self.refuses(Refused::Reserve) { None } else { self.inner.reserve_readable(size) }
    }

    fn reserve_low(&self, size: usize, align: usize) -> Option<Reserved> {
        if self.refuses(Refused::Reserve) { None } else { self.inner.reserve_low(size, align) }
    }

    unsafe fn make_writable(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !self.refuses(Refused::MakeWritable) && unsafe { self.inner.make_writable(base, size) }
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !self.refuses(Refused::Release) && unsafe { self.inner.release(base, size) }
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        if self.refuses(Refused::Purge) {
            return Purged::Refused;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.purge(base, size) }
    }

    fn resident(&self, base: NonNull<u8>, size: usize) -> Option<Resident> {
        if self.refuses(Refused::Resident) { None } else { self.inner.resident(base, size) }
    }

    unsafe fn advise_huge(&self, base: NonNull<u8>, size: usize, huge: bool) -> bool {
        let kind = if huge { Refused::AdviseHuge } else { Refused::AdviseSmall };
        // SAFETY: the caller's promise, handed on.
        !self.refuses(kind) && unsafe { self.inner.advise_huge(base, size, huge) }
    }

    unsafe fn renew(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !self.refuses(Refused::Renew) && unsafe { self.inner.renew(base, size) }
    }

    unsafe fn move_pages(
        &self,
        from: NonNull<u8>,
        size: usize,
        to: NonNull<u8>,
        new_size: usize,
    ) -> Moved {
        if self.refuses(Refused::Move) {
            return Moved::Refused;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.move_pages(from, size, to, new_size) }
    }

    unsafe fn shift_pages(&self, from: NonNull<u8>, size: usize, to: NonNull<u8>) -> Moved {
        if self.refuses(Refused::Shift) {
            return Moved::Refused;
        }
        if self.loses.swap(false, Relaxed) {
            // SAFETY: the caller owns the new place, and is told that it is gone.
            unsafe { self.inner.release(to, size) };
            return Moved::Lost;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.inner.shift_pages(from, size, to) }
    }

    unsafe fn purge_lazily(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        !self.refuses(Refused::PurgeLazily) && unsafe { self.inner.purge_lazily(base, size) }
    }
}
