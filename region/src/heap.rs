//! The discipline that takes segments from lumalloc's heap.

use crate::discipline::{Discipline, Resized};
use core::ptr::NonNull;
use lumalloc::control::diversion::past;
use lumalloc::raw::{self, Flags};

/// What a region asks for at least, and at most unless a block needs more.
const LEAST: usize = 4 << 10;
const MOST: usize = 16 << 20;

/// Memory from lumalloc's heap. Source: vmalloc(3), `Vmdcheap`.
///
/// The heap keeps what one region released for the next, so a region that is opened again and
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

// SAFETY: a block of the heap belongs to the region until it is freed.
unsafe impl Discipline for Heap {
    fn growth(&self, extent: usize) -> usize {
        (extent / 2).clamp(LEAST, MOST)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        NonNull::new(past(|| raw::malloc(size)))
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, _size: usize, new_size: usize) -> Resized {
        // SAFETY: the segment is a block of the heap.
        let resize = || unsafe { raw::resize_in_place(segment.as_ptr(), new_size, 0, Flags::NONE) };
        let usable = past(resize);
        if usable < new_size { Resized::Refused } else { Resized::InPlace }
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, _size: usize) -> bool {
        // SAFETY: the segment is a block of the heap, and not used any more.
        past(|| unsafe { raw::free(segment.as_ptr()) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        // SAFETY: the tests pass the present size of their own segment.
        unsafe { Heap.resize(segment, size, new_size) }
    }

    #[test]
    fn segments_come_and_go() {
        let segment = Heap.obtain(5000).unwrap();
        // SAFETY: the segment is the test's, with this size.
        unsafe { segment.write_bytes(1, 5000) };
        // SAFETY: the segment is not used after.
        assert!(unsafe { Heap.release(segment, 5000) });
        assert_eq!(Heap.obtain(usize::MAX), None);
    }

    #[test]
    fn a_segment_stays_at_its_place_or_as_it_is() {
        let segment = Heap.obtain(1 << 20).unwrap();
        assert_eq!(resize(segment, 1 << 20, 1 << 19), Resized::InPlace);
        assert_eq!(resize(segment, 1 << 19, 1 << 46), Resized::Refused);
        // SAFETY: the segment is not used after.
        assert!(unsafe { Heap.release(segment, 1 << 19) });
    }

    #[test]
    fn a_large_region_grows_by_larger_steps() {
        assert_eq!([0, 1 << 20, 1 << 40].map(|extent| Heap.growth(extent)), [LEAST, 1 << 19, MOST]);
    }
}
