//! Disciplines: where a region's segments come from.

use crate::warning::Warning;
use core::ptr::NonNull;

/// What a discipline did about a request to make a segment longer or shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resized {
    /// The segment has its new size, and lies where it lay.
    InPlace,
    /// The segment is as it was. Here is another one, as long as the difference of the sizes.
    Another(NonNull<u8>),
    /// The segment is as it was.
    Refused,
}

/// What a region does after its discipline had no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It starts the request over: blocks may have been freed.
    Repeat,
    /// It asks the discipline once more, and fails if there still is no memory.
    AskOnce,
    /// The request fails.
    Fail,
}

/// A source of segments of memory. Source: vmalloc(3), `Vmdisc_t`.
///
/// Sizes are in bytes. All sizes that a region asks for are multiples of [`Discipline::round`].
/// The functions may not use the region that calls them.
///
/// # Safety
/// A segment that the discipline returns can be read and written for its whole size until the
/// region releases it, and nothing else uses it.
///
/// ```
/// use core::ptr::NonNull;
/// use lumalloc_region::{Discipline, Last, Region};
/// use std::alloc::{Layout, alloc, dealloc};
///
/// /// Takes segments from the program's allocator, and counts them.
/// #[derive(Default)]
/// struct Counting(usize);
///
/// // SAFETY: the allocator's blocks are the region's until it releases them.
/// unsafe impl Discipline for Counting {
///     fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
///         self.0 += 1;
///         // SAFETY: a region never asks for 0 bytes.
///         NonNull::new(unsafe { alloc(Layout::from_size_align(size, 16).ok()?) })
///     }
///
///     unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
///         let Ok(layout) = Layout::from_size_align(size, 16) else { return false };
///         // SAFETY: the segment came from `obtain`, with this size.
///         unsafe { dealloc(segment.as_ptr(), layout) };
///         true
///     }
/// }
///
/// let mut region: Region<Last, Counting> = Region::open(Counting::default()).unwrap();
/// assert!(region.alloc(100).is_some());
/// assert_eq!(region.discipline().0, 1);
/// ```
pub unsafe trait Discipline {
    /// Returns the number of which all sizes of segments are multiples, or 0 if any size will do.
    fn round(&self) -> usize {
        0
    }

    /// Returns how many bytes a region of this extent had better ask for at once. It asks for more
    /// if it needs more.
    fn growth(&self, extent: usize) -> usize {
        let _ = extent;
        0
    }

    /// Returns a new segment of at least `size` bytes, or `None`. It may begin at any address.
    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>>;

    /// Changes the size of a segment from `size` to `new_size`, neither of which is 0.
    ///
    /// # Safety
    /// The segment came from this discipline, and has this size.
    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        let _ = (segment, size, new_size);
        Resized::Refused
    }

    /// Takes a segment back. Returns false if it does not, and the region keeps the segment.
    ///
    /// # Safety
    /// The segment came from this discipline, has this size, and is not used after.
    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool;

    /// Is called when the discipline had no segment for a request of `size` bytes.
    fn no_memory(&mut self, size: usize) -> Retry {
        let _ = size;
        Retry::Fail
    }

    /// Is told what the method [`Debug`](crate::Debug) found in the region whose core data lies at
    /// an address. By default the line is written to where lumalloc's messages go. The region is
    /// not to be used.
    fn warn(&mut self, warning: &Warning, region: usize) {
        lumalloc::message::write(warning.line(region).get());
    }
}

// SAFETY: the discipline behind the reference keeps the promises.
unsafe impl<D: Discipline> Discipline for &mut D {
    fn round(&self) -> usize {
        (**self).round()
    }

    fn growth(&self, extent: usize) -> usize {
        (**self).growth(extent)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        (**self).obtain(size)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        // SAFETY: the same promise.
        unsafe { (**self).resize(segment, size, new_size) }
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the same promise.
        unsafe { (**self).release(segment, size) }
    }

    fn no_memory(&mut self, size: usize) -> Retry {
        (**self).no_memory(size)
    }

    fn warn(&mut self, warning: &Warning, region: usize) {
        (**self).warn(warning, region);
    }
}
