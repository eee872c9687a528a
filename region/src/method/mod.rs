//! The methods: how blocks are cut from segments, and what can be freed.

pub(crate) mod call;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod stepping;
pub(crate) mod best;
mod carving;
pub(crate) mod last;
pub(crate) mod pool;
pub(crate) mod debug;
pub(crate) mod profile;

use crate::data::Data;
use crate::discipline::Discipline;
use crate::misuse::Misuse;
use crate::segments::Segment;
use call::Call;

/// What a resize may do. Source: vmalloc(3), `vmresize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resize {
    /// The block may move, and its contents come along (`VM_RSCOPY`).
    pub copy: bool,
    /// The block may move, and its contents are lost if it does (`VM_RSMOVE`).
    pub move_: bool,
    /// New space is cleared (`VM_RSZERO`).
    pub zero: bool,
}

impl Resize {
    /// The block moves if need be, with its contents.
    pub const MOVE: Resize = Resize { copy: true, move_: true, zero: false };
    /// The block stays where it is, or the call fails.
    pub const STAY: Resize = Resize { copy: false, move_: false, zero: false };

    pub(crate) fn may_move(self) -> bool {
        self.copy || self.move_
    }
}

/// Counts of a region. Source: vmalloc(3), `Vmstat_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Blocks that the program has.
    pub busy: usize,
    /// Their bytes, without the region's own words between them.
    pub busy_bytes: usize,
    /// The bytes of the largest one.
    pub busy_largest: usize,
    /// Free blocks.
    pub free: usize,
    /// Their bytes.
    pub free_bytes: usize,
    /// The bytes of the largest one.
    pub free_largest: usize,
    /// Segments.
    pub segments: usize,
    /// The sum of their sizes.
    pub extent: usize,
}

impl Stat {
    pub(crate) fn add_busy(&mut self, bytes: usize) {
        self.busy += 1;
        self.busy_bytes += bytes;
        self.busy_largest = self.busy_largest.max(bytes);
    }

    pub(crate) fn add_free(&mut self, bytes: usize) {
        self.free += 1;
        self.free_bytes += bytes;
        self.free_largest = self.free_largest.max(bytes);
    }
}

/// A way to cut blocks from segments. Source: vmalloc(3), `Vmethod_t`.
///
/// The trait is sealed: the methods are [`Best`](crate::Best), [`Last`](crate::Last),
/// [`Pool`](crate::Pool), [`Debug`](crate::Debug) and [`Profile`](crate::Profile).
pub trait Method: sealed::Sealed + Sized {
    /// What the method keeps in the core data. All fields are atomic integers.
    type State;

    /// The bit of the method: see [`mode`](crate::mode).
    #[doc(hidden)]
    const MODE: u32;

    /// Whether the method has quick ways for C.
    #[doc(hidden)]
    const IS_QUICK: bool = false;

    /// Returns the address of a new block, if there is one at once, without the discipline.
    #[doc(hidden)]
    #[inline]
    fn quick_alloc(data: &Data<Self::State>, size: usize) -> Option<usize> {
        let _ = (data, size);
        None
    }

    /// Frees a block, if it is one for certain, without a search.
    #[doc(hidden)]
    #[inline]
    fn quick_free(data: &Data<Self::State>, block: usize) -> Option<()> {
        let _ = (data, block);
        None
    }

    /// Makes the state of a region without blocks and segments.
    #[doc(hidden)]
    fn begin<D: Discipline>(call: &Call<'_, Self, D>);

    /// Takes in a segment without blocks.
    #[doc(hidden)]
    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment);

    /// Takes in what was added to the end of a segment.
    #[doc(hidden)]
    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, old_end: usize);

    /// Starts over with all segments empty.
    #[doc(hidden)]
    fn cleared<D: Discipline>(call: &Call<'_, Self, D>) {
        Self::begin(call);
        for segment in call.segments() {
            Self::added(call, segment);
        }
    }

    /// Returns the address of a new block of `size` bytes.
    #[doc(hidden)]
    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize>;

    /// Returns the address of a new block, a multiple of `align` and of 16.
    #[doc(hidden)]
    fn align<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        size: usize,
        align: usize,
    ) -> Option<usize>;

    /// Frees a block, and returns its size.
    #[doc(hidden)]
    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, block: usize) -> Result<usize, Misuse>;

    /// Changes the size of a block to `size`, which is not 0, and returns its address.
    #[doc(hidden)]
    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        block: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse>;

    /// Returns the size of a block.
    #[doc(hidden)]
    fn size<D: Discipline>(call: &Call<'_, Self, D>, block: usize) -> Option<usize>;

    /// Returns how far behind the start of a block an address in it lies.
    #[doc(hidden)]
    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize>;

    /// Gives free memory back to the discipline.
    #[doc(hidden)]
    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>);

    /// Whether the method can make the state anew after a process ended in the region.
    #[doc(hidden)]
    const RECOVERS: bool = false;

    /// Makes the state anew after a process ended in the region, from what can be read in its
    /// segments. Their table is whole.
    #[doc(hidden)]
    fn recover<D: Discipline>(call: &mut Call<'_, Self, D>) {
        let _ = call;
    }

    /// Calls `see` with address and size of each block that the program has, if the method knows
    /// them. Returns whether it does.
    #[doc(hidden)]
    fn blocks<D: Discipline>(call: &Call<'_, Self, D>, see: &mut dyn FnMut(usize, usize)) -> bool {
        let _ = (call, see);
        false
    }

    /// Checks all blocks. Returns how many are found to be overwritten, or `None` if the method
    /// cannot tell.
    #[doc(hidden)]
    fn check<D: Discipline>(call: &mut Call<'_, Self, D>) -> Option<usize> {
        let _ = call;
        None
    }

    /// Is called before all blocks are forgotten: the region is cleared, or `closes`.
    #[doc(hidden)]
    fn forgets<D: Discipline>(call: &mut Call<'_, Self, D>, closes: bool) {
        let _ = (call, closes);
    }

    /// Counts blocks.
    #[doc(hidden)]
    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat);
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Copies the start of an old block to a new one, at another address, and clears what is behind.
pub(crate) fn carry_over(old: usize, old_size: usize, new: usize, new_size: usize, how: Resize) {
    // One byte may be that of a block for which 0 bytes were requested, and is cleared then.
    let is_kept = how.copy || old_size > 1;
    let common = if is_kept { old_size.min(new_size) } else { 0 };
    if how.copy {
        let from = core::ptr::with_exposed_provenance::<u8>(old);
        let to = core::ptr::with_exposed_provenance_mut::<u8>(new);
        // SAFETY: both are blocks of the region, which overlap only if a block slides in its own
        // space, and so many bytes long.
        unsafe { core::ptr::copy(from, to, common) };
    }
    if how.zero && new_size > old_size {
        clear(new + common, new_size - common);
    }
}

/// Clears the one byte of a block for which 0 bytes were requested: it is new to the program when
/// the block grows.
pub(crate) fn clear_unasked(at: usize, requested: usize) {
    if requested == 0 {
        clear(at, 1);
    }
}

/// Fills a part of a block with zeros.
pub(crate) fn clear(start: usize, size: usize) {
    let start = core::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: callers pass a part of a block.
    unsafe { start.write_bytes(0, size) };
}
