//! The core data of a region: what stays of it when its handle is gone.
//!
//! It lies at the start of the region's first segment, and holds nothing that depends on its
//! address.

use crate::segments::{Number, Segment, Segments};
use crate::words::Words;
use core::sync::atomic::{AtomicU64, Ordering};

/// What every region has, whatever its method.
#[repr(C)]
pub(crate) struct Head {
    key: AtomicU64,
    /// What sizes of segments are multiples of.
    pub(crate) unit: Number,
    /// The header of the first segment. A link of 0 leads nowhere, so it does not lie at the start.
    pub(crate) first: Segment,
    pub(crate) segments: Segments,
    /// Blocks that the program has, and their bytes, for a method that counts them.
    busy: Number,
    busy_bytes: Number,
}

impl Head {
    /// Returns how many blocks the program has, and their bytes, if the method counts them.
    pub(crate) fn busy(&self) -> (usize, usize) {
        (self.busy.get(), self.busy_bytes.get())
    }

    /// Access to the region's words.
    #[inline]
    pub(crate) fn words(&self) -> Words {
        // SAFETY: a `Head` lies in a region's first segment, and whoever has a reference to it is
        // in the region, or is the only one to know it.
        unsafe { Words::new(self.address(), self.key.load(Ordering::Relaxed)) }
    }

    #[inline]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }

    /// Makes the head of a new region.
    pub(crate) fn begin(&self, unit: usize) {
        self.key.store(random(self.address()), Ordering::Relaxed);
        self.unit.set(unit);
        self.segments.begin(self.words());
        self.busy.set(0);
        self.busy_bytes.set(0);
    }

    /// Forgets all blocks: takes another key, so that no word sealed before counts any
    /// more, and seals the segments anew.
    pub(crate) fn forget_blocks(&self) {
        let old = self.words();
        self.key.store(random(self.address()), Ordering::Relaxed);
        self.segments.reseal(old, self.words());
        self.busy.set(0);
        self.busy_bytes.set(0);
    }

    /// Notes a new block of so many bytes.
    #[inline]
    pub(crate) fn count_new(&self, bytes: usize) {
        self.busy.add(1);
        self.busy_bytes.add(bytes);
    }

    /// Notes that a block has `bytes` instead of `before`.
    pub(crate) fn count_resized(&self, before: usize, bytes: usize) {
        self.busy_bytes.add(bytes.wrapping_sub(before));
    }

    /// Notes that a block of so many bytes is gone.
    #[inline]
    pub(crate) fn count_gone(&self, bytes: usize) {
        self.busy.subtract(1);
        self.busy_bytes.subtract(bytes);
    }
}

/// The core data of a region whose method keeps an `S`.
#[repr(C)]
pub struct Data<S> {
    pub(crate) head: Head,
    pub(crate) state: S,
}

/// A number that programs do not know in advance. Without random numbers of the system, the address
/// is all there is.
fn random(address: usize) -> u64 {
    let mut number = address as u64;
    let into = (&raw mut number).cast();
    // SAFETY: the call writes at most 8 bytes to the number.
    unsafe { libc::getrandom(into, size_of::<u64>(), libc::GRND_NONBLOCK) };
    number
}
