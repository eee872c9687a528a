//! What the workloads run on: allocators of the whole program, and regions.

use lumalloc_region::{Discipline, Method, Region, Resize};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

/// A source of blocks, for one workload.
pub(crate) trait Heap {
    /// Whether the blocks are gone when the heap is dropped. Otherwise each is freed.
    const DROPS: bool;

    fn open() -> Self;
    fn alloc(&self, size: usize) -> NonNull<u8>;
    fn free(&self, block: NonNull<u8>, size: usize);
    fn resize(&self, block: NonNull<u8>, size: usize, new_size: usize) -> NonNull<u8>;
}

/// An allocator of the program.
#[derive(Default)]
pub(crate) struct Blocks<A>(A);

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a size that a machine has")
}

impl<A: GlobalAlloc + Default> Heap for Blocks<A> {
    const DROPS: bool = false;

    fn open() -> Self {
        Self::default()
    }

    #[inline]
    fn alloc(&self, size: usize) -> NonNull<u8> {
        // SAFETY: the workloads ask for no empty blocks.
        NonNull::new(unsafe { self.0.alloc(layout(size)) }).expect("out of memory")
    }

    #[inline]
    fn free(&self, block: NonNull<u8>, size: usize) {
        // SAFETY: the workloads free their own blocks, once.
        unsafe { self.0.dealloc(block.as_ptr(), layout(size)) }
    }

    fn resize(&self, block: NonNull<u8>, size: usize, new_size: usize) -> NonNull<u8> {
        // SAFETY: as for `free`, and the new size is not 0.
        let moved = unsafe { self.0.realloc(block.as_ptr(), layout(size), new_size) };
        NonNull::new(moved).expect("out of memory")
    }
}

/// A region.
pub(crate) struct Regional<M: Method, D: Discipline>(Region<M, D>);

impl<M: Method, D: Discipline + Default> Heap for Regional<M, D> {
    const DROPS: bool = true;

    fn open() -> Self {
        Self(Region::open(D::default()).expect("out of memory"))
    }

    #[inline]
    fn alloc(&self, size: usize) -> NonNull<u8> {
        self.0.alloc(size).expect("out of memory")
    }

    #[inline]
    fn free(&self, block: NonNull<u8>, _size: usize) {
        // SAFETY: the block is used no more.
        unsafe { self.0.free(block) }.expect("a block of the region");
    }

    fn resize(&self, block: NonNull<u8>, _size: usize, new_size: usize) -> NonNull<u8> {
        // SAFETY: the block is used at its new place only.
        unsafe { self.0.resize(block, new_size, Resize::MOVE) }.expect("out of memory")
    }
}

/// Writes to the start of a block: a link to another block, or nothing.
#[inline]
pub(crate) fn set_link(block: NonNull<u8>, to: Option<NonNull<u8>>) {
    // SAFETY: the blocks of lists have room for a link, and are aligned.
    unsafe { block.cast().write(to) }
}

/// Reads what [`set_link`] wrote.
#[inline]
pub(crate) fn link(block: NonNull<u8>) -> Option<NonNull<u8>> {
    // SAFETY: as for `set_link`, which wrote to the block.
    unsafe { block.cast().read() }
}

/// Writes one byte of a block.
#[inline]
pub(crate) fn touch(block: NonNull<u8>, at: usize) {
    // SAFETY: callers pass a place in their own block.
    let byte = unsafe { block.add(at) };
    // SAFETY: the byte is the workload's.
    unsafe { byte.write(1) }
}
