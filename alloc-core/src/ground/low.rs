//! The low addresses, where sampled blocks lie and others do not.
//!
//! A program may free a block by its size alone, which puts the block into the bin of that size
//! without a look at its address. If the block is a sample, the bin's next pop must notice. A pop
//! compares the block with null anyway. Null is a low address too, so one comparison with the end
//! of the low addresses finds both. Without samples that end is 1, and null alone is low.
//!
//! Other code may map memory at low addresses, and so may `opt.dss`. A low address is therefore
//! only a sign that the page map must be asked.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Where samples may lie, the best first. The second is for systems whose addresses have 39 bits,
/// and for programs that have other things in the first, such as the address sanitizer. Below it
/// are programs that are not position-independent, and their data segments.
pub(crate) const ZONES: [Range<usize>; 2] = [1 << 39..1 << 40, 0x1000_0000..0x7fff_0000];

static END: AtomicUsize = AtomicUsize::new(1);

/// Sets the end of the low addresses. Called at start, before the first block.
pub(crate) fn set_end(end: usize) {
    END.store(end, Relaxed);
}

/// Returns the end of the low addresses. 1: there are no samples. Caches have a copy of it.
pub(crate) fn end() -> usize {
    END.load(Relaxed)
}

/// Returns whether an address is null or low.
pub(crate) fn is_low_or_null(block: *const u8) -> bool {
    (block as usize) < end()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes the first zone the low addresses of this process, and returns it.
    pub(crate) fn open() -> Range<usize> {
        let [zone, _] = ZONES;
        set_end(zone.end);
        zone
    }

    #[test]
    fn null_is_low_and_what_lies_behind_the_zones_is_not() {
        open();
        assert!(is_low_or_null(core::ptr::null()));
        assert!(ZONES.iter().all(|zone| zone.start < zone.end && zone.end <= end()));
        let is_low = |address| is_low_or_null(core::ptr::without_provenance(address));
        assert!(is_low(end() - 1) && !is_low(end()) && !is_low(usize::MAX));
    }
}
