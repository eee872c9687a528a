//! The discipline of regions that processes share: their one segment grows within the window.

use super::{Mapping, memory};
use crate::discipline::{Discipline, Resized};
use core::ptr::NonNull;

/// What a region grows by at least.
const GROWTH: usize = 64 << 10;

// SAFETY: the one segment of the region lies behind the front, which nothing else uses, and grows
// within the window.
unsafe impl Discipline for Mapping {
    fn round(&self) -> usize {
        lumalloc::PAGE
    }

    fn growth(&self, extent: usize) -> usize {
        (extent / 8).max(GROWTH).min(self.front().limit().saturating_sub(extent))
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        let is_first = !self.front().is_ready();
        let is_obtained = is_first && size <= self.front().limit() && self.reserve(0, size);
        NonNull::new(core::ptr::with_exposed_provenance_mut(self.data())).filter(|_| is_obtained)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        let start = segment.as_ptr().expose_provenance();
        let is_done = if new_size > size {
            new_size <= self.front().limit() && self.reserve(size, new_size)
        } else {
            memory::discard(start + new_size, start + size)
        };
        if is_done { Resized::InPlace } else { Resized::Refused }
    }

    unsafe fn release(&mut self, _segment: NonNull<u8>, _size: usize) -> bool {
        false
    }
}
