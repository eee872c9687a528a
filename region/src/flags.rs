//! The word with a region's method and flags, and what of the core data tells who may come in.

use crate::data::Head;
use crate::lock::{Entry, Lock};
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
}

impl Head {
    /// Returns the lock of the region.
    #[inline]
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Returns method and flags: see [`mode`].
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.0.load(Ordering::Relaxed) & !mode::HIDDEN
    }

    /// Returns whether one of these flags is set, and sees what a visitor wrote that is not there
    /// any more.
    #[inline]
    pub(crate) fn has_flags(&self, flags: u32) -> bool {
        // Acquire: pairs with the Release in `change_mode`.
        self.mode.0.load(Ordering::Acquire) & flags != 0
    }

    /// Returns how threads enter the region, and sees what was written in it before it was shared.
    #[inline]
    pub fn entry(&self) -> Entry {
        // Acquire: pairs with the Release in `change_mode`.
        match self.mode.0.load(Ordering::Acquire) & (mode::SHARE | mode::PROCESSES) {
            0 => Entry::Alone,
            mode::SHARE => Entry::Shared,
            _ => Entry::Processes,
        }
    }

    /// Sets or clears flags. Returns method and flags as they were before.
    pub fn change_mode(&self, flags: u32, on: bool) -> u32 {
        let before = if on {
            // Release: pairs with the Acquire in `has_flags`.
            self.mode.0.fetch_or(flags, Ordering::Release)
        } else {
            // Release: pairs with the same.
            self.mode.0.fetch_and(!flags, Ordering::Release)
        };
        before & !mode::HIDDEN
    }

    /// Returns whether malloc allocates in the region, or has done so.
    #[inline]
    pub fn is_of_malloc(&self) -> bool {
        self.has_flags(mode::MALLOC)
    }
}
