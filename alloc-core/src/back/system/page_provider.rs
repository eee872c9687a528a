//! The contract with the system: where pages come from and how they are given back.
//!
//! Checks are made before, in [`crate::back::page_allocator`], and not in implementations. Adapters
//! compose: `Failing<Mmap>` fails on demand, and `Fixed` carves a buffer for tools that cannot see
//! `mmap`.

use crate::ground::options::Dss;
use crate::ground::units::PAGE;
use core::ptr::NonNull;

/// Memory that a provider handed out.
#[derive(Clone, Copy)]
pub(crate) struct Reserved {
    /// The first byte.
    pub(crate) base: NonNull<u8>,
    /// Whether every byte reads zero.
    pub(crate) zeroed: bool,
}

/// The result of purging pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purged {
    /// The pages were given back, and read zero from now on.
    Zeroed,
    /// The pages were given back as far as the system's page allows. Their contents are undefined.
    Undefined,
    /// The system refused. Nothing changed.
    Refused,
}

/// The result of moving pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// The pages are at the new place. The old addresses are still the allocator's, and read zero.
    Here,
    /// The pages are at the new place. The old addresses are not the allocator's any more.
    Away,
    /// The system refused. Nothing changed.
    Refused,
    /// The pages are where they were, but the new place may not be the allocator's any more.
    Lost,
}

/// The pages of a range that have memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resident {
    /// How many pages have memory.
    pub(crate) pages: usize,
    /// How many pages have memory at the beginning, before the first one that has none.
    pub(crate) leading: usize,
}

/// A source of pages.
///
/// All sizes are multiples of [`PAGE`] and not zero, and every base is a multiple of it. Calls come
/// from any thread, several at once, never under a signal. No method may allocate, panic, or change
/// `errno`. Methods that a provider need not have refuse by default.
///
/// # Safety
/// An implementation must return memory that is readable, writable, aligned as asked, not
/// overlapping anything that is in use, and that stays mapped until it is released.
pub(crate) unsafe trait PageProvider: Sync {
    /// Reserves `size` bytes at a multiple of `align` (a power of two, at least a page).
    ///
    /// Returns `None`, and changes nothing, if there is no room.
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved>;

    /// As [`PageProvider::reserve`], but by the data segment if `dss` says so. Most ignore `dss`.
    fn reserve_by(&self, _dss: Dss, size: usize, align: usize) -> Option<Reserved> {
        self.reserve(size, align)
    }

    /// Reserves `size` bytes that read zero and need not be writable before
    /// [`PageProvider::make_writable`] is called for them. Returns `None` if there is no room.
    fn reserve_readable(&self, size: usize) -> Option<NonNull<u8>> {
        self.reserve(size, PAGE).map(|got| got.base)
    }

    /// As [`PageProvider::reserve`], but at low addresses: see [`crate::ground::low`].
    fn reserve_low(&self, _size: usize, _align: usize) -> Option<Reserved> {
        None
    }

    /// Makes pages writable. Returns `false`, and changes nothing, if that is refused.
    ///
    /// # Safety
    /// The range lies within what [`PageProvider::reserve_readable`] returned.
    unsafe fn make_writable(&self, _base: NonNull<u8>, _size: usize) -> bool {
        true
    }

    /// Gives addresses back. Returns `false` if they stay mapped and the caller keeps them.
    ///
    /// # Safety
    /// The range is what `reserve` returned, or a part of it, and it is not used any more.
    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool;

    /// Gives the memory under pages back now. The addresses stay.
    ///
    /// # Safety
    /// The range lies within one reservation, and its contents are not used any more.
    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged;

    /// The pages of a range that have memory, or `None` if unknown. The result may be old already.
    fn resident(&self, _base: NonNull<u8>, _size: usize) -> Option<Resident> {
        None
    }

    /// Asks for huge pages under a range, or for small ones alone. Returns `false` if refused.
    ///
    /// # Safety
    /// The range is reserved, and belongs to the caller.
    unsafe fn advise_huge(&self, _base: NonNull<u8>, _size: usize, _huge: bool) -> bool {
        false
    }

    /// Makes pages new ones, in place, which read zero and are an ordinary mapping. Returns
    /// `false`, and changes nothing, if that is refused.
    ///
    /// # Safety
    /// The range is reserved, and its contents are not used any more.
    unsafe fn renew(&self, _base: NonNull<u8>, _size: usize) -> bool {
        false
    }

    /// Moves the memory under the `size` bytes at `from` to `to`, where it becomes the beginning of
    /// one mapping of `new_size` bytes, at least `size`. The bytes behind it read zero.
    ///
    /// # Safety
    /// Both ranges are reserved, do not overlap, and belong to the caller alone. The contents of
    /// the new one are not needed.
    unsafe fn move_pages(
        &self,
        _from: NonNull<u8>,
        _size: usize,
        _to: NonNull<u8>,
        _new_size: usize,
    ) -> Moved {
        Moved::Refused
    }

    /// Moves the memory under the `size` bytes at `from` to `to`. The old addresses stay, and read
    /// zero until they are written. Never returns [`Moved::Away`].
    ///
    /// # Safety
    /// Both ranges are reserved, do not overlap, and belong to the caller alone. The contents of
    /// the new one are not needed.
    unsafe fn shift_pages(&self, _from: NonNull<u8>, _size: usize, _to: NonNull<u8>) -> Moved {
        Moved::Refused
    }

    /// Lets the system take the memory under pages at any time. Their contents are undefined then.
    /// Returns `false`, and changes nothing, if that is refused.
    ///
    /// # Safety
    /// The range lies within one reservation, and its contents are not used any more.
    unsafe fn purge_lazily(&self, _base: NonNull<u8>, _size: usize) -> bool {
        false
    }
}
