//! What a trace is replayed on: regions, and malloc.

use std::ptr::NonNull;

use lumalloc_region::{
    Best, Debug, Discipline, Heap, Last, Method, Pool, Profile, Region, Resize, System,
};

use super::arguments::{DisciplineArgument, MethodArgument};

/// A region, or malloc in its place.
pub(super) trait Target {
    fn alloc(&self, size: usize, align: usize) -> Option<NonNull<u8>>;
    /// Returns whether the block was freed.
    fn free(&self, block: NonNull<u8>) -> bool;
    fn resize(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>>;
    fn compact(&self) {}
    fn clear(&mut self) {}
    /// Frees a block of a region that is cleared or closed next.
    fn drop_block(&self, _block: NonNull<u8>) {}
    /// Returns the bytes of all segments, or 0 if they are not known.
    fn extent(&self) -> usize;
}

impl<M: Method, D: Discipline> Target for Region<M, D> {
    fn alloc(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if align == 0 { Region::alloc(self, size) } else { self.align(size, align) }
    }

    fn free(&self, block: NonNull<u8>) -> bool {
        // SAFETY: the plan uses no freed block.
        unsafe { Region::free(self, block) }.is_ok()
    }

    fn resize(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the plan uses the block at its new place only.
        unsafe { Region::resize(self, block, size, Resize::MOVE) }.ok()
    }

    fn compact(&self) {
        Region::compact(self);
    }

    fn clear(&mut self) {
        Region::clear(self);
    }

    fn extent(&self) -> usize {
        Region::extent(self)
    }
}

/// malloc of this process.
pub(super) struct Malloc;

impl Target for Malloc {
    fn alloc(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let block = if align <= 16 {
            // SAFETY: any size will do.
            unsafe { libc::malloc(size) }
        } else {
            // SAFETY: the alignment is a power of two.
            unsafe { libc::memalign(align.checked_next_power_of_two()?, size) }
        };
        NonNull::new(block.cast())
    }

    fn free(&self, block: NonNull<u8>) -> bool {
        // SAFETY: the plan frees each block once.
        unsafe { libc::free(block.as_ptr().cast()) };
        true
    }

    fn resize(&self, block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // Of 0 bytes realloc may free the block, and the plan would free it again.
        let size = size.max(1);
        // SAFETY: the block is in use, and not used at its old place after.
        NonNull::new(unsafe { libc::realloc(block.as_ptr().cast(), size) }.cast())
    }

    fn drop_block(&self, block: NonNull<u8>) {
        self.free(block);
    }

    fn extent(&self) -> usize {
        0
    }
}

/// Opens a target. Returns `None` if there is no memory.
pub(super) fn open(
    method: MethodArgument,
    discipline: DisciplineArgument,
) -> Option<Box<dyn Target>> {
    match discipline {
        DisciplineArgument::System => open_over(method, System),
        DisciplineArgument::Heap => open_over(method, Heap),
    }
}

fn open_over<D: Discipline + 'static>(
    method: MethodArgument,
    discipline: D,
) -> Option<Box<dyn Target>> {
    Some(match method {
        MethodArgument::Best => Box::new(Region::<Best, D>::open(discipline)?),
        MethodArgument::Last => Box::new(Region::<Last, D>::open(discipline)?),
        MethodArgument::Pool => Box::new(Region::<Pool, D>::open(discipline)?),
        MethodArgument::Debug => Box::new(Region::<Debug, D>::open(discipline)?),
        MethodArgument::Profile => Box::new(Region::<Profile, D>::open(discipline)?),
        MethodArgument::Malloc => Box::new(Malloc),
    })
}
