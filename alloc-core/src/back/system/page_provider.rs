//! The contract with the system: where pages come from and how they go back.
//!
//! Checks stand in front, in [`crate::back::page_allocator`]; implementations are bare. Adapters
//! compose:
//! `Failing<Mmap>` fails on demand, `Fixed` carves a buffer for tools that cannot see `mmap`.

use crate::ground::options::Dss;
use crate::ground::units::PAGE;
use core::ptr::NonNull;

/// Memory that a provider handed out.
#[derive(Clone, Copy)]
pub(crate) struct Reserved {
    /// Its first byte.
    pub(crate) base: NonNull<u8>,
    /// Whether every byte reads zero.
    pub(crate) zeroed: bool,
}

/// What became of pages that were to be purged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purged {
    /// They were given back, and read zero from now on.
    Zeroed,
    /// They were given back as far as the system's page allows; their contents are undefined.
    Undefined,
    /// The system refused. Nothing changed.
    Refused,
}

/// What became of pages that were to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// They are at the new place. The old addresses are still ours, and read zero.
    Here,
    /// They are at the new place. The old addresses are not ours any more.
    Away,
    /// Refused. Nothing changed.
    Refused,
    /// They are where they were, but the new place is not ours any more.
    Lost,
}

/// Which pages of a range have memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resident {
    /// How many.
    pub(crate) pages: usize,
    /// How many of them lie at the beginning, without one between that has none.
    pub(crate) leading: usize,
}

/// A source of pages.
///
/// All sizes are multiples of [`PAGE`] and not zero; every base is a multiple
/// of it. Calls come from any thread, several at once, never under a signal. None may allocate,
/// panic, or change `errno`. What a provider need not know how to do is refused by default.
///
/// # Safety
/// An implementation must answer memory that is readable, writable, aligned as asked, not
/// overlapping anything that is in use, and that stays mapped until it is released.
pub(crate) unsafe trait PageProvider: Sync {
    /// Reserves `size` bytes at a multiple of `align` (a power of two, at least a page).
    ///
    /// `None` when there is no room; nothing has changed then.
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved>;

    /// The same, with the data segment where `dss` says; for most there is none.
    fn reserve_by(&self, _dss: Dss, size: usize, align: usize) -> Option<Reserved> {
        self.reserve(size, align)
    }

    /// Reserves `size` bytes that read zero and need not be writable before
    /// [`PageProvider::make_writable`] is called for them. `None` when there is no room.
    fn reserve_readable(&self, size: usize) -> Option<NonNull<u8>> {
        self.reserve(size, PAGE).map(|got| got.base)
    }

    /// Makes pages writable. `false`: refused, nothing changed.
    ///
    /// # Safety
    /// The range lies within what [`PageProvider::reserve_readable`] returned.
    unsafe fn make_writable(&self, _base: NonNull<u8>, _size: usize) -> bool {
        true
    }

    /// Gives addresses back. `false`: they stay mapped and the caller keeps them.
    ///
    /// # Safety
    /// The range is what `reserve` answered, or a part of it, and nobody uses it any more.
    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool;

    /// Gives the memory under pages back now; the addresses stay.
    ///
    /// # Safety
    /// The range lies within one reservation and nobody uses its contents any more.
    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged;

    /// Which of the pages have memory now; a guess that may be old already. `None`: unknown.
    fn resident(&self, _base: NonNull<u8>, _size: usize) -> Option<Resident> {
        None
    }

    /// Asks the system to back a range with huge pages, or with small ones alone. `false`: refused.
    ///
    /// # Safety
    /// The range is reserved, and the caller's.
    unsafe fn advise_huge(&self, _base: NonNull<u8>, _size: usize, _huge: bool) -> bool {
        false
    }

    /// Makes pages new ones, in place: they read zero, and are an ordinary mapping. `false`:
    /// refused, nothing changed.
    ///
    /// # Safety
    /// The range is reserved and nobody uses its contents any more.
    unsafe fn renew(&self, _base: NonNull<u8>, _size: usize) -> bool {
        false
    }

    /// Moves the memory under the `size` bytes at `from` to `to`, where it becomes the beginning of
    /// one mapping of `new_size` bytes, at least `size`; what is behind it reads zero.
    ///
    /// # Safety
    /// Both ranges are reserved, do not overlap, and are the caller's alone; the contents of the
    /// new one are not needed.
    unsafe fn move_pages(
        &self,
        _from: NonNull<u8>,
        _size: usize,
        _to: NonNull<u8>,
        _new_size: usize,
    ) -> Moved {
        Moved::Refused
    }

    /// Moves the memory under the `size` bytes at `from` to `to`; the old addresses stay, and read
    /// zero until they are written. The answer is never [`Moved::Away`].
    ///
    /// # Safety
    /// Both ranges are reserved, do not overlap, and are the caller's alone; the contents of the
    /// new one are not needed.
    unsafe fn shift_pages(&self, _from: NonNull<u8>, _size: usize, _to: NonNull<u8>) -> Moved {
        Moved::Refused
    }

    /// Lets the system take the memory under pages when it likes; contents are undefined after.
    /// `false`: refused, nothing changed.
    ///
    /// # Safety
    /// The range lies within one reservation and nobody uses its contents any more.
    unsafe fn purge_lazily(&self, _base: NonNull<u8>, _size: usize) -> bool {
        false
    }
}
