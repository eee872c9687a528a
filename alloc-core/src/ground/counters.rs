//! Counters: who writes, and in what unit.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count with one writer at a time (an owning thread, or the holder of a lock) and any readers.
///
/// A plain load and store: no locked instruction. Reads are never torn, and may be a moment old.
pub(crate) struct OwnedCount(AtomicU64);

/// A count with any number of writers.
pub(crate) struct SharedCount(AtomicU64);

impl OwnedCount {
    /// Zero.
    pub(crate) const fn new() -> OwnedCount {
        OwnedCount(AtomicU64::new(0))
    }

    /// Adds `n`. The caller is the one writer.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Begins at zero again. The caller is the one writer.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

impl SharedCount {
    /// Zero.
    pub(crate) const fn new() -> SharedCount {
        SharedCount(AtomicU64::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Takes `n` away.
    #[inline]
    pub(crate) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Relaxed);
    }

    /// Begins at zero again.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// The count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
