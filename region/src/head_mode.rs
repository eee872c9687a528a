//! What of the core data tells who may come in: its lock, and its method and flags. Models have
//! core data of their own, with these two fields.

use crate::data::Head;
use crate::entry::Entry;
use crate::lock::Lock;
use crate::mode;

impl Head {
    /// Returns the lock of the region.
    #[inline]
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Returns method and flags: see [`mode`].
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.mode()
    }

    /// Returns whether one of these flags is set, and sees what a visitor wrote that is not there
    /// any more.
    #[inline]
    pub(crate) fn has_flags(&self, flags: u32) -> bool {
        self.mode.has(flags)
    }

    /// Returns how threads enter the region, and sees what was written in it before it was shared.
    #[inline]
    pub fn entry(&self) -> Entry {
        self.mode.entry()
    }

    /// Sets or clears flags. Returns method and flags as they were before.
    pub fn change_mode(&self, flags: u32, on: bool) -> u32 {
        self.mode.change(flags, on)
    }

    /// Returns whether malloc allocates in the region, or has done so.
    #[inline]
    pub fn is_of_malloc(&self) -> bool {
        self.has_flags(mode::MALLOC)
    }
}
