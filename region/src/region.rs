//! Regions as values of Rust.

use crate::call::Call;
use crate::data::Data;
use crate::discipline::Discipline;
use crate::method::{Method, Resize, Stat};
use crate::misuse::Misuse;
use core::ptr::NonNull;

/// A heap of its own: blocks by the method `M`, in segments from the discipline `D`.
///
/// All blocks are gone when the region is dropped, at the cost of giving its segments back, however
/// many blocks there are. One thread uses a region at a time. Source: vmalloc(3), `vmopen`.
///
/// ```
/// use lumalloc_region::{Last, Region, System};
///
/// let mut region: Region<Last, System> = Region::open(System).unwrap();
/// for length in 1..1000 {
///     let block = region.alloc(length).unwrap();
///     // SAFETY: the block is this program's, and so long.
///     unsafe { block.write_bytes(7, length) };
/// }
/// assert_eq!(region.stat().busy, 999);
/// ```
pub struct Region<M: Method, D: Discipline> {
    data: NonNull<Data<M::State>>,
    discipline: D,
}

// SAFETY: the region's memory belongs to the value alone, and goes where it goes.
unsafe impl<M: Method, D: Discipline + Send> Send for Region<M, D> {}

impl<M: Method, D: Discipline> Region<M, D> {
    /// Opens a region. Returns `None` if the discipline has no memory for its core data.
    pub fn open(mut discipline: D) -> Option<Region<M, D>> {
        let data = Call::<M, D>::open(&mut discipline)?;
        Some(Region { data, discipline })
    }

    /// Returns a new block of at least `size` bytes, aligned to 16, or `None` if there is no
    /// memory. The contents are undefined.
    #[inline]
    pub fn alloc(&mut self, size: usize) -> Option<NonNull<u8>> {
        pointer(M::alloc(&mut self.call(), size)?)
    }

    /// As [`Region::alloc`], at an address that is a multiple of `align`, which need not be a power
    /// of two. Returns `None` if `align` is 0, and always with the method `Pool`.
    pub fn align(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        pointer(M::align(&mut self.call(), size, align)?)
    }

    /// Frees a block, and returns its size. An address that is no block of the region is an error,
    /// and changes nothing.
    #[inline]
    pub fn free(&mut self, block: NonNull<u8>) -> Result<usize, Misuse> {
        M::free(&mut self.call(), address(block))
    }

    /// Changes the size of a block. The block is unchanged after an error.
    pub fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        how: Resize,
    ) -> Result<NonNull<u8>, Misuse> {
        let at = M::resize(&mut self.call(), address(block), size, how)?;
        pointer(at).ok_or(Misuse::NoRoom)
    }

    /// Returns the size of a block: at least what was requested.
    pub fn size(&mut self, block: NonNull<u8>) -> Option<usize> {
        M::size(&self.call(), address(block))
    }

    /// Returns how far behind the start of its block an address lies, or `None` if it is in none.
    pub fn offset(&mut self, inside: NonNull<u8>) -> Option<usize> {
        M::offset(&self.call(), address(inside))
    }

    /// Returns the start of the segment in which an address lies, as the discipline gave it.
    pub fn segment(&mut self, inside: NonNull<u8>) -> Option<NonNull<u8>> {
        pointer(self.call().segment_of(address(inside))?.memory())
    }

    /// Frees all blocks, and keeps the segments.
    pub fn clear(&mut self) {
        self.call().clear();
    }

    /// Gives as much free memory as possible back to the discipline.
    pub fn compact(&mut self) {
        M::compact(&mut self.call());
    }

    /// Counts blocks and segments. This takes time in proportion to the number of blocks.
    pub fn stat(&mut self) -> Stat {
        self.call().stat()
    }

    /// Returns the discipline.
    pub fn discipline(&self) -> &D {
        &self.discipline
    }

    /// Iterates over the segments, the newest first: their starts and sizes.
    pub fn segments(&mut self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        let segments = self.call().segments();
        segments.filter_map(|segment| Some((pointer(segment.memory())?, segment.extent())))
    }

    #[inline]
    fn call(&mut self) -> Call<'_, M, D> {
        // SAFETY: the core data is this region's, and `&mut self` keeps others out.
        unsafe { Call::new(self.data, &mut self.discipline) }
    }
}

impl<M: Method, D: Discipline> Drop for Region<M, D> {
    fn drop(&mut self) {
        self.call().close();
    }
}

#[inline]
fn pointer(address: usize) -> Option<NonNull<u8>> {
    NonNull::new(core::ptr::with_exposed_provenance_mut(address))
}

#[inline]
fn address(pointer: NonNull<u8>) -> usize {
    pointer.as_ptr().expose_provenance()
}
