//! Disciplines for the tests of regions. Each test program uses a part of it.
#![allow(unsafe_code, dead_code)]

use lumalloc_region::{Discipline, Method, Misuse, Region, Resize, Resized, Retry, Warning};
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Frees a block, which the tests use no more, but to free it again.
#[track_caller]
pub(crate) fn free<M: Method, D: Discipline>(
    region: &Region<M, D>,
    block: NonNull<u8>,
) -> Result<usize, Misuse> {
    // SAFETY: the tests use no freed block.
    unsafe { region.free(block) }
}

/// Resizes a block, which the tests use at its new place only.
#[track_caller]
pub(crate) fn resize<M: Method, D: Discipline>(
    region: &Region<M, D>,
    block: NonNull<u8>,
    size: usize,
    how: Resize,
) -> Result<NonNull<u8>, Misuse> {
    // SAFETY: the tests use no freed block.
    unsafe { region.resize(block, size, how) }
}

/// What a discipline of the tests does when a segment shall grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    Refused,
    InPlace,
    Another,
}

/// Small segments, at addresses that need not be aligned. It notes which are in use, and ends the
/// test if a region returns what it did not get.
pub(crate) struct Tiny {
    round: usize,
    misaligned: usize,
    growth: Growth,
    /// The bytes that may still be handed out.
    pub(crate) left: usize,
    /// Start, size, and room of each segment in use, in the order in which they were obtained.
    pub(crate) segments: Vec<(usize, usize, usize)>,
    /// The starts of segments that were released, in order.
    pub(crate) released: Vec<usize>,
    /// Whether segments are taken back.
    pub(crate) takes_back: bool,
    /// What is returned when there is no memory, and how much more there is after.
    pub(crate) retry: (Retry, usize),
    /// How often there was no memory.
    pub(crate) refusals: usize,
    /// What the method `Debug` found, with the region's address as 0.
    pub(crate) warnings: Vec<String>,
}

const ROOM: usize = 64 << 10;

impl Tiny {
    pub(crate) fn new(round: usize, misaligned: usize, growth: Growth) -> Tiny {
        Tiny {
            round,
            misaligned,
            growth,
            left: usize::MAX,
            segments: Vec::new(),
            released: Vec::new(),
            takes_back: true,
            retry: (Retry::Fail, 0),
            refusals: 0,
            warnings: Vec::new(),
        }
    }

    fn layout(room: usize) -> Layout {
        Layout::from_size_align(room + 16, 16).unwrap()
    }

    fn find(&mut self, start: usize, size: usize) -> usize {
        let same = |segment: &(usize, usize, usize)| (segment.0, segment.1) == (start, size);
        self.segments.iter().position(same).expect("a segment of this discipline, with its size")
    }

    fn check(&self, size: usize) {
        assert!(self.round == 0 || size.is_multiple_of(self.round), "{size} bytes");
    }
}

// SAFETY: segments come from the allocator, and are noted until they are released.
unsafe impl Discipline for Tiny {
    fn round(&self) -> usize {
        self.round
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.check(size);
        let room = if self.growth == Growth::InPlace { size.max(ROOM) } else { size };
        Layout::from_size_align(room.checked_add(16)?, 16).ok()?;
        self.left = self.left.checked_sub(size)?;
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc(Tiny::layout(room)) })?;
        // SAFETY: there are 16 bytes more than the segment has.
        let start = unsafe { start.add(self.misaligned) };
        // SAFETY: so many bytes are the segment's.
        unsafe { start.write_bytes(0xee, room) };
        self.segments.push((start.as_ptr() as usize, size, room));
        Some(start)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        self.check(new_size);
        let index = self.find(segment.as_ptr() as usize, size);
        if new_size > size && self.growth == Growth::Another {
            return self.obtain(new_size - size).map_or(Resized::Refused, Resized::Another);
        }
        let is_shorter = new_size < size && self.takes_back;
        let has_room = self.growth == Growth::InPlace && new_size <= self.segments[index].2;
        let is_longer = new_size > size && has_room;
        if !is_shorter && !is_longer {
            return Resized::Refused;
        }
        if new_size > size {
            let Some(left) = self.left.checked_sub(new_size - size) else {
                return Resized::Refused;
            };
            self.left = left;
        }
        self.segments[index].1 = new_size;
        Resized::InPlace
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        let index = self.find(segment.as_ptr() as usize, size);
        if !self.takes_back {
            return false;
        }
        let (start, _, room) = self.segments.remove(index);
        self.released.push(start);
        // SAFETY: the block began so many bytes before.
        let block = unsafe { segment.sub(self.misaligned) };
        // SAFETY: the block came from the allocator with this layout.
        unsafe { dealloc(block.as_ptr(), Tiny::layout(room)) };
        true
    }

    fn no_memory(&mut self, _size: usize) -> Retry {
        self.refusals += 1;
        let (retry, more) = self.retry;
        self.left += more;
        retry
    }

    fn warn(&mut self, warning: &Warning, _region: usize) {
        self.warnings.push(String::from_utf8_lossy(warning.line(0).get()).into_owned());
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert!(!self.takes_back || self.segments.is_empty(), "a region kept segments");
        for (start, _, room) in self.segments.drain(..) {
            let block = (start - self.misaligned) as *mut u8;
            // SAFETY: the block came from the allocator with this layout, and its region is gone.
            unsafe { dealloc(block, Tiny::layout(room)) };
        }
    }
}
