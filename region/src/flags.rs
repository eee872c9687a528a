//! The word with a region's method and flags.

use crate::entry::Entry;
use crate::mode;
use crate::seam::{AtomicU32, Ordering};

/// Method and flags of a region: see [`mode`].
#[cfg_attr(not(loom), repr(transparent))]
pub(crate) struct Flags(AtomicU32);

impl Flags {
    #[cfg(not(loom))]
    pub(crate) const fn new(mode: u32) -> Flags {
        Flags(AtomicU32::new(mode))
    }

    #[cfg(loom)]
    pub(crate) fn new(mode: u32) -> Flags {
        Flags(AtomicU32::new(mode))
    }

    /// Sets all flags, in a new region.
    pub(crate) fn begin(&self, mode: u32) {
        self.0.store(mode, Ordering::Relaxed);
    }

    /// Returns method and flags: see [`mode`].
    #[inline]
    pub(crate) fn mode(&self) -> u32 {
        self.0.load(Ordering::Relaxed) & !mode::HIDDEN
    }

    /// Returns whether one of these flags is set, and sees what a visitor wrote that is not there
    /// any more.
    #[inline]
    pub(crate) fn has(&self, flags: u32) -> bool {
        // Acquire: pairs with the Release in `change`.
        self.0.load(Ordering::Acquire) & flags != 0
    }

    /// Returns how threads enter the region, and sees what was written in it before it was shared.
    #[inline]
    pub(crate) fn entry(&self) -> Entry {
        // Acquire: pairs with the Release in `change`.
        let mode = self.0.load(Ordering::Acquire);
        match mode & (mode::SHARE | mode::PROCESSES) {
            0 => Entry::Alone,
            // Where malloc allocates, the memory is private.
            mode::SHARE if mode & (mode::COMMON | mode::MALLOC) != mode::COMMON => Entry::Shared,
            _ => Entry::Processes,
        }
    }

    /// Sets or clears flags. Returns method and flags as they were before.
    pub(crate) fn change(&self, flags: u32, on: bool) -> u32 {
        let before = if on {
            // Release: pairs with the Acquire in `has`.
            self.0.fetch_or(flags, Ordering::Release)
        } else {
            // Release: pairs with the same.
            self.0.fetch_and(!flags, Ordering::Release)
        };
        before & !mode::HIDDEN
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_lock_names_its_process_where_others_may_have_the_memory() {
        for (mode, entry) in [
            (0, Entry::Alone),
            (mode::COMMON, Entry::Alone),
            (mode::SHARE, Entry::Shared),
            (mode::SHARE | mode::COMMON, Entry::Processes),
            (mode::SHARE | mode::COMMON | mode::MALLOC, Entry::Shared),
            (mode::SHARE | mode::PROCESSES, Entry::Processes),
        ] {
            assert_eq!(Flags::new(mode).entry(), entry, "{mode:o}");
        }
        assert_eq!(Flags::new(mode::SHARE | mode::COMMON).mode(), mode::SHARE);
    }
}
