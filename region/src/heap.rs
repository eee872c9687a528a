//! The discipline that takes segments from the program's allocator.

use crate::discipline::Discipline;
use crate::words::GRANULE;
use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

/// What a region asks for at least, and at most unless a block needs more.
const LEAST: usize = 4 << 10;
const MOST: usize = 16 << 20;

/// Memory from the program's global allocator. Source: vmalloc(3), `Vmdcheap`.
///
/// The allocator keeps what one region released for the next, so a region that is opened again and
/// again touches no new pages. With the method [`Last`](crate::Last) it is good for structures that
/// are built and dropped.
///
/// ```
/// use lumalloc_region::{Heap, Last, Region};
/// for _ in 0..10 {
///     let region: Region<Last, Heap> = Region::open(Heap).unwrap();
///     assert!((0..1000).all(|size| region.alloc(size).is_some()));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

// SAFETY: a block of the allocator belongs to the region until it is freed.
unsafe impl Discipline for Heap {
    fn growth(&self, extent: usize) -> usize {
        (extent / 2).clamp(LEAST, MOST)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        let layout = layout(size).filter(|_| size != 0)?;
        // SAFETY: the layout has a size.
        NonNull::new(unsafe { alloc(layout) })
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        let Some(layout) = layout(size) else { return false };
        // SAFETY: `obtain` got the segment with this layout, because segments of this discipline
        // keep their size.
        unsafe { dealloc(segment.as_ptr(), layout) };
        true
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, GRANULE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_come_and_go() {
        let segment = Heap.obtain(5000).unwrap();
        // SAFETY: the segment is the test's, with this size.
        unsafe { segment.write_bytes(1, 5000) };
        // SAFETY: the segment is not used after.
        assert!(unsafe { Heap.release(segment, 5000) });
        assert_eq!(Heap.obtain(usize::MAX), None);
        assert_eq!(Heap.obtain(0), None);
    }

    #[test]
    fn a_large_region_grows_by_larger_steps() {
        assert_eq!([0, 1 << 20, 1 << 40].map(|extent| Heap.growth(extent)), [LEAST, 1 << 19, MOST]);
    }
}
