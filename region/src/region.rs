//! Regions as values of Rust.

use crate::data::{Data, Head};
use crate::discipline::Discipline;
use crate::entry::Entry;
use crate::method::call::{Call, Form};
use crate::method::{Method, Resize, Stat};
use crate::misuse::Misuse;
use crate::mode;
use crate::position::Origin;
use crate::words::GRANULE;
use allocator_api2::alloc::{AllocError, Allocator, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::Location;
use core::ptr::NonNull;

/// A heap of its own: blocks by the method `M`, in segments from the discipline `D`.
///
/// All blocks are gone when the region is dropped, at the cost of giving its segments back, however
/// many blocks there are. One thread uses a region at a time, and its discipline may not use it: a
/// call from there fails. A reference to a region is an allocator for the collections of
/// `allocator_api2` and of other crates. Source: vmalloc(3), `vmopen`.
///
/// ```
/// use lumalloc_region::{Last, Region, System};
///
/// let region: Region<Last, System> = Region::open(System).unwrap();
/// for length in 1..1000 {
///     let block = region.alloc(length).unwrap();
///     // SAFETY: the block is this program's, and so long.
///     unsafe { block.write_bytes(7, length) };
/// }
/// assert_eq!(region.stat().busy, 999);
/// ```
///
/// ```
/// use allocator_api2::alloc::{Allocator, Layout};
/// use lumalloc_region::{Best, Region, System};
///
/// let region: Region<Best, System> = Region::open(System).unwrap();
/// let block = (&region).allocate(Layout::new::<[u64; 100]>()).unwrap();
/// assert_eq!((block.len(), region.stat().busy), (800, 1));
/// ```
pub struct Region<M: Method, D: Discipline> {
    data: NonNull<Data<M::State>>,
    discipline: UnsafeCell<D>,
}

// SAFETY: the region's memory belongs to the value alone, and goes where it goes.
unsafe impl<M: Method, D: Discipline + Send> Send for Region<M, D> {}

impl<M: Method, D: Discipline> Region<M, D> {
    /// Opens a region. Returns `None` if the discipline has no memory for its core data.
    pub fn open(mut discipline: D) -> Option<Region<M, D>> {
        let data = Call::<M, D>::open(&mut discipline, Form::default())?;
        Some(Region { data, discipline: UnsafeCell::new(discipline) })
    }

    /// Returns a new block of at least `size` bytes, aligned to 16, or `None` if there is no
    /// memory. The contents are undefined.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, size: usize) -> Option<NonNull<u8>> {
        let caller = Location::caller();
        pointer(self.enter_at(caller, |call| M::alloc(call, size))??)
    }

    /// As [`Region::alloc`], at an address that is a multiple of `align`, which need not be a power
    /// of two. Returns `None` if `align` is 0, and always with the method `Pool`.
    #[track_caller]
    pub fn align(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let caller = Location::caller();
        pointer(self.enter_at(caller, |call| M::align(call, size, align))??)
    }

    /// Frees a block, and returns its size. An address that is no block of the region is an error,
    /// and changes nothing.
    ///
    /// # Safety
    /// The block is not used after. That of a collection is in use until the collection frees it.
    ///
    /// ```compile_fail,E0133
    /// use lumalloc_region::{Heap, Last, Region};
    /// let region: Region<Last, Heap> = Region::open(Heap).unwrap();
    /// region.free(region.alloc(10).unwrap());
    /// ```
    #[inline]
    #[track_caller]
    pub unsafe fn free(&self, block: NonNull<u8>) -> Result<usize, Misuse> {
        let caller = Location::caller();
        self.enter_at(caller, |call| M::free(call, address(block))).ok_or(Misuse::Entered)?
    }

    /// Changes the size of a block. The block is unchanged after an error.
    ///
    /// # Safety
    /// What the block has no more is not used after: all of it, if it lies elsewhere now.
    #[track_caller]
    pub unsafe fn resize(
        &self,
        block: NonNull<u8>,
        size: usize,
        how: Resize,
    ) -> Result<NonNull<u8>, Misuse> {
        let caller = Location::caller();
        let resized = self.enter_at(caller, |call| M::resize(call, address(block), size, how));
        pointer(resized.ok_or(Misuse::Entered)??).ok_or(Misuse::NoRoom)
    }

    /// Returns the size of a block: at least what was requested.
    pub fn size(&self, block: NonNull<u8>) -> Option<usize> {
        self.enter(|call| M::size(call, address(block)))?
    }

    /// Returns how far behind the start of its block an address lies, or `None` if it is in none.
    pub fn offset(&self, inside: NonNull<u8>) -> Option<usize> {
        self.enter(|call| M::offset(call, address(inside)))?
    }

    /// Returns the start of the segment in which an address lies, as the discipline gave it.
    pub fn segment(&self, inside: NonNull<u8>) -> Option<NonNull<u8>> {
        let segment = |call: &mut Call<'_, M, D>| Some(call.segment_around(address(inside))?.0);
        pointer(self.enter(segment)??)
    }

    /// Frees all blocks, and keeps the segments.
    pub fn clear(&mut self) {
        self.call().clear();
    }

    /// Gives as much free memory as possible back to the discipline.
    pub fn compact(&self) {
        self.enter(|call| M::compact(call));
    }

    /// Checks the region. Returns how many blocks are found to be overwritten, or `None` if the
    /// method cannot tell, or the discipline asks. The method [`Debug`](crate::Debug) warns of each
    /// block once.
    #[track_caller]
    pub fn check(&self) -> Option<usize> {
        self.enter_at(Location::caller(), |call| M::check(call))?
    }

    /// Makes the method [`Debug`](crate::Debug) check all blocks at each call from now on, or not
    /// any more.
    pub fn check_each_call(&self, on: bool) {
        self.enter(|call| call.head().change_mode(mode::DBCHECK, on));
    }

    /// Makes the method [`Debug`](crate::Debug) report each block that is in use when the region is
    /// dropped, or not.
    pub fn report_leaks(&self, on: bool) {
        self.enter(|call| call.head().change_mode(mode::LEAKS, on));
    }

    /// Calls `see` with each block in use and its size. Returns false if the method does not know
    /// them ([`Last`](crate::Last), [`Pool`](crate::Pool)), or the discipline asks. `see` may not
    /// use the region: calls of it fail.
    ///
    /// ```
    /// use lumalloc_region::{Best, Heap, Region};
    /// let region: Region<Best, Heap> = Region::open(Heap).unwrap();
    /// let block = region.alloc(100).unwrap();
    /// let mut seen = Vec::new();
    /// assert!(region.for_each_block(|block, size| seen.push((block, size))));
    /// assert_eq!(seen, [(block, 104)]);
    /// ```
    pub fn for_each_block(&self, mut see: impl FnMut(NonNull<u8>, usize)) -> bool {
        let mut show = |at, size| {
            if let Some(block) = pointer(at) {
                see(block, size);
            }
        };
        self.enter(|call| M::blocks(call, &mut show)).unwrap_or(false)
    }

    /// Counts blocks and segments. This takes time in proportion to the number of blocks. All
    /// counts are 0 if the discipline asks.
    pub fn stat(&self) -> Stat {
        self.enter(|call| call.stat()).unwrap_or_default()
    }

    /// Returns the sum of the segments' sizes.
    pub fn extent(&self) -> usize {
        self.enter(|call| call.head().extent()).unwrap_or(0)
    }

    /// Returns the discipline.
    pub fn discipline(&mut self) -> &D {
        self.discipline.get_mut()
    }

    /// Returns the discipline, for a change of its settings.
    ///
    /// # Safety
    /// The discipline stays one from which all segments of the region came: no other takes its
    /// place.
    pub unsafe fn discipline_mut(&mut self) -> &mut D {
        self.discipline.get_mut()
    }

    /// Iterates over the segments, the newest first: their starts and sizes.
    pub fn segments(&mut self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        let segments = self.call().each_segment();
        segments.filter_map(|(start, size)| Some((pointer(start)?, size)))
    }

    #[inline]
    fn call(&mut self) -> Call<'_, M, D> {
        // SAFETY: the core data is this region's, and `&mut self` keeps others out.
        unsafe { Call::new(self.data, self.discipline.get_mut()) }
    }

    /// As [`Region::enter`], for a call from a place in the program.
    #[inline]
    fn enter_at<T>(
        &self,
        caller: &'static Location<'static>,
        f: impl FnOnce(&mut Call<'_, M, D>) -> T,
    ) -> Option<T> {
        self.enter(|call| {
            call.at(Origin::Rust(caller));
            f(call)
        })
    }

    /// Runs `f` in the region. Returns `None` if a call is in it: the discipline called back.
    #[inline]
    fn enter<T>(&self, f: impl FnOnce(&mut Call<'_, M, D>) -> T) -> Option<T> {
        if !self.head().enter(Entry::Alone) {
            return None;
        }
        let leave = Leave(self.head());
        // SAFETY: no other call is in the region.
        let result = unsafe { self.run(f) };
        drop(leave);
        Some(result)
    }

    /// Runs `f` in the region, which is published, in whatever thread. Returns `None` if a call
    /// stays in it. The list of regions is held.
    pub(crate) fn visit<T>(&self, f: impl FnOnce(&mut Call<'_, M, D>) -> T) -> Option<T> {
        if !self.head().visit(Entry::Alone) {
            return None;
        }
        let leave = EndVisit(self.head());
        // SAFETY: no other call is in the region.
        let result = unsafe { self.run(f) };
        drop(leave);
        Some(result)
    }

    /// # Safety
    /// No other call is in the region.
    #[inline]
    unsafe fn run<T>(&self, f: impl FnOnce(&mut Call<'_, M, D>) -> T) -> T {
        // SAFETY: the caller's promise.
        let discipline = unsafe { &mut *self.discipline.get() };
        // SAFETY: the core data is this region's, and no other call is in it.
        let mut call = unsafe { Call::new(self.data, discipline) };
        f(&mut call)
    }

    /// Returns what every region has.
    #[inline]
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: the core data is this region's, and has atomic fields only.
        unsafe { &(*self.data.as_ptr()).head }
    }
}

/// Notes that a call left the region, also if a discipline panicked.
struct Leave<'a>(&'a Head);

impl Drop for Leave<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.lock().leave(Entry::Alone);
    }
}

/// Notes that a visitor left the region.
struct EndVisit<'a>(&'a Head);

impl Drop for EndVisit<'_> {
    fn drop(&mut self) {
        self.0.end_visit(Entry::Alone);
    }
}

// SAFETY: a block stays where it is until it is freed or resized, or its region is dropped or
// cleared, which a reference to the region prevents. Copies of the reference are the same region.
unsafe impl<M: Method, D: Discipline> Allocator for &Region<M, D> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = match layout.size() {
            0 => pointer(layout.align()),
            size if layout.align() <= GRANULE => self.alloc(size),
            size => self.align(size, layout.align()),
        };
        Ok(NonNull::slice_from_raw_parts(block.ok_or(AllocError)?, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // The method `Last` keeps a block that is not the last one.
            // SAFETY: the caller's promise.
            let _ = unsafe { self.free(block) };
        }
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the same promise.
        unsafe { self.change(block, old, new) }
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the same promise.
        unsafe { self.change(block, old, new) }
    }
}

impl<M: Method, D: Discipline> Region<M, D> {
    /// Changes the size of a block of a collection, and its alignment.
    ///
    /// # Safety
    /// The block has the layout `old`.
    unsafe fn change(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let is_plain = old.size() != 0 && new.size() != 0 && new.align() <= GRANULE;
        if is_plain {
            // SAFETY: the caller's promise.
            let resized = unsafe { self.resize(block, new.size(), Resize::MOVE) };
            if let Ok(block) = resized {
                return Ok(NonNull::slice_from_raw_parts(block, new.size()));
            }
        }
        let moved = self.allocate(new)?;
        let common = old.size().min(new.size());
        // SAFETY: both blocks have so many bytes, and are two.
        unsafe { block.copy_to_nonoverlapping(moved.cast(), common) };
        // SAFETY: the block has this layout (the caller's promise), and its contents are copied.
        unsafe { self.deallocate(block, old) };
        Ok(moved)
    }
}

impl<M: Method, D: Discipline> fmt::Debug for Region<M, D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = mode::method_name(M::MODE);
        formatter.debug_struct("Region").field("method", &method).finish_non_exhaustive()
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
