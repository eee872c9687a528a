//! Counters with one writer, and counters with any number of writers.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count with one writer at a time (an owning thread, or the holder of a lock) and any readers.
///
/// An update is a plain load and store, without a locked instruction. Reads are never torn, but may
/// be a moment old.
pub(crate) struct OwnedCount(AtomicU64);

/// A count with any number of writers.
pub(crate) struct SharedCount(AtomicU64);

impl OwnedCount {
    /// A count of zero.
    pub(crate) const fn new() -> OwnedCount {
        OwnedCount(AtomicU64::new(0))
    }

    /// Adds `n`. The caller is the only writer.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Returns the count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the count to zero. The caller is the only writer.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

impl SharedCount {
    /// A count of zero.
    pub(crate) const fn new() -> SharedCount {
        SharedCount(AtomicU64::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Subtracts `n`.
    #[inline]
    pub(crate) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Relaxed);
    }

    /// Sets the count to zero.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns the count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
