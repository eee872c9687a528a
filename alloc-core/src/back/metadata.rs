//! Memory for the allocator's own records.
//!
//! Records are type-stable: once a piece of memory is an extent, a slab record, a cache or an
//! arena, it stays one, and it is never unmapped. Therefore lock-free code may look at a record
//! that has just been given up. Only plain arrays (the stacks of thread caches, the places of
//! tables) are recycled here, by size. In the hardened tier no thread may touch the first and the
//! last page of each chunk, so that a write that runs on from a block beside it faults.

use super::system::page_provider::PageProvider;
use super::system::provider::system::system;
use super::system::thp::{self, HUGE};
use crate::ground::counters::SharedCount;
use crate::ground::options;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::{PAGE, round_up};
use crate::ground::untouchable;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes asked of the system at a time. If it refuses, half of them are asked, and so on.
pub(crate) const CHUNK: usize = 2 << 20;
const CHUNK_MIN: usize = 64 << 10;

/// Arrays hold 2^n words, where n is below this.
const ARRAY_CLASSES: usize = 20;

/// The state and its lock, which fork takes too.
pub(crate) static METADATA: RankedMutex<State> = RankedMutex::new(LockRank::Metadata, State::new());

/// Bytes of metadata that were handed out.
pub(crate) static USED: SharedCount = SharedCount::new();
/// Huge pages that were asked for under metadata.
pub(crate) static HUGE_PAGES: SharedCount = SharedCount::new();
/// Bytes that were reserved for metadata.
pub(crate) static MAPPED: SharedCount = SharedCount::new();

/// How often the system refused a chunk of the least length.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// How often there was no memory for records.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// Chunks whose addresses are kept.
const NOTED: usize = 1024;

/// The base and the bytes of a chunk. The base is 0 until the chunk is noted.
struct NotedChunk {
    base: AtomicUsize,
    bytes: AtomicUsize,
}

/// The chunks, in the order in which they were reserved. Later ones are not noted.
static CHUNKS: [NotedChunk; NOTED] =
    [const { NotedChunk { base: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; NOTED];
/// How many chunks were to be noted.
static NOTES: AtomicUsize = AtomicUsize::new(0);

fn note_chunk(base: usize, bytes: usize) {
    if let Some(chunk) = CHUNKS.get(NOTES.fetch_add(1, Ordering::Relaxed)) {
        chunk.bytes.store(bytes, Ordering::Relaxed);
        // Release: pairs with the Acquire in `chunks`.
        chunk.base.store(base, Ordering::Release);
    }
}

/// The base and the bytes of each chunk, in the order in which they were reserved.
pub(crate) fn chunks() -> impl Iterator<Item = (usize, usize)> {
    let noted = CHUNKS.iter().take(NOTES.load(Ordering::Relaxed).min(NOTED));
    // Acquire: pairs with the Release in `note_chunk`.
    let read = |chunk: &NotedChunk| {
        (chunk.base.load(Ordering::Acquire), chunk.bytes.load(Ordering::Relaxed))
    };
    noted.map(read).filter(|chunk| chunk.0 != 0)
}

/// The rest of the current chunk, and the free arrays.
pub(crate) struct State {
    next: usize,
    end: usize,
    free_arrays: [Option<FreeArray>; ARRAY_CLASSES],
}

/// A free array. Its first word holds the next free array.
#[derive(Clone, Copy)]
struct FreeArray(NonNull<Option<FreeArray>>);

// SAFETY: the array is memory of the allocator, and is reached under the lock only.
unsafe impl Send for FreeArray {}

impl State {
    const fn new() -> State {
        State { next: 0, end: 0, free_arrays: [None; ARRAY_CLASSES] }
    }

    fn carve(
        &mut self,
        size: usize,
        align: usize,
        provider: &dyn PageProvider,
    ) -> Option<NonNull<u8>> {
        if !self.has_room(size, align) {
            self.refill(size, provider, thp::for_records(MAPPED.get()))?;
        }
        self.cut(size, align)
    }

    /// Whether the chunk has room for `size` bytes at a multiple of `align`.
    fn has_room(&self, size: usize, align: usize) -> bool {
        self.next != 0 && round_up(self.next, align) + size <= self.end
    }

    /// Takes `size` bytes, for which the chunk has room.
    fn cut(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let base = round_up(self.next, align);
        self.next = base + size;
        USED.add(size as u64);
        NonNull::new(core::ptr::with_exposed_provenance_mut(base))
    }

    /// Begins a chunk with room for `size` bytes at its beginning, which is that of a page. With
    /// `huge` it lies in huge pages, if the system has so many addresses. Returns `None` without
    /// memory.
    fn refill(&mut self, size: usize, provider: &dyn PageProvider, huge: bool) -> Option<()> {
        let is_fenced = options::current().hardened && untouchable::can_close_each_page();
        let fence = if is_fenced { PAGE } else { 0 };
        let least = (round_up(size, PAGE) + 2 * fence).max(CHUNK_MIN);
        let mut bytes = least.max(CHUNK);
        let is_huge = |bytes| huge && bytes >= HUGE;
        let got = loop {
            match provider.reserve(bytes, if is_huge(bytes) { HUGE } else { PAGE }) {
                Some(got) => break got,
                None if bytes / 2 >= least => bytes = round_up(bytes / 2, PAGE),
                None => {
                    REFUSED.fetch_add(1, Ordering::Relaxed);
                    return None;
                }
            }
        };
        MAPPED.add(bytes as u64);
        let begin = got.base.as_ptr().expose_provenance();
        note_chunk(begin, bytes);
        if is_huge(bytes) {
            // SAFETY: just reserved, and no other code knows it.
            unsafe { provider.advise_huge(got.base, bytes, true) };
            HUGE_PAGES.add((bytes / HUGE) as u64);
            // A closed page would break a huge page.
            (self.next, self.end) = (begin, begin + bytes);
            return Some(());
        }
        (self.next, self.end) = (begin + fence, begin + bytes - fence);
        if fence > 0 {
            // If the system refuses, the page stays as it is.
            for page in [begin, self.end] {
                untouchable::close(page, fence);
            }
        }
        Some(())
    }
}

/// Allocates `size` zeroed bytes at a multiple of `align`, a power of two up to a page, for ever.
pub(crate) fn allocate(size: usize, align: usize) -> Option<NonNull<u8>> {
    METADATA.lock().carve(size, align, system())
}

/// Allocates a record of a type for which all-zero bytes are a valid value, for ever.
///
/// # Safety
/// All-zero bytes are a valid `T`.
pub(crate) unsafe fn allocate_zeroed<T>() -> Option<&'static T> {
    let memory = allocate(size_of::<T>(), align_of::<T>())?;
    // SAFETY: fresh memory of the right size and alignment, zeroed, never given to another caller.
    Some(unsafe { memory.cast::<T>().as_ref() })
}

/// Allocates an array of `1 << lg` words with undefined contents.
pub(crate) fn allocate_array(lg: u32) -> Option<NonNull<*mut u8>> {
    let mut state = METADATA.lock();
    let class = state.free_arrays.get(lg as usize).copied()?;
    let Some(array) = class else {
        let bytes = size_of::<usize>() << lg;
        return Some(state.carve(bytes, bytes.min(64), system())?.cast());
    };
    // SAFETY: the first word of a free array is not in use, and holds the next free array.
    let next = unsafe { array.0.read() };
    if let Some(slot) = state.free_arrays.get_mut(lg as usize) {
        *slot = next;
    }
    Some(array.0.cast())
}

/// Frees an array.
///
/// # Safety
/// The array came from `allocate_array(lg)`, and it is not used any more.
pub(crate) unsafe fn free_array(array: NonNull<*mut u8>, lg: u32) {
    let mut state = METADATA.lock();
    let Some(slot) = state.free_arrays.get_mut(lg as usize) else { return };
    let free = FreeArray(array.cast());
    // SAFETY: the caller owns the array, which is at least a word long.
    unsafe { free.0.write(*slot) };
    *slot = Some(free);
}

/// A record that can wait on a list for its next use.
pub(crate) trait Recycled: Sized + 'static {
    /// The link to the next waiting record. It is unused while the record is in use.
    fn next_free(&self) -> &Cell<Option<&'static Self>>;
}

/// Records of one type that wait for their next use.
pub(crate) struct Pool<T: Recycled> {
    free: Option<&'static T>,
}

impl<T: Recycled> Pool<T> {
    /// An empty pool.
    pub(crate) const fn new() -> Pool<T> {
        Pool { free: None }
    }

    /// Takes a record from the pool.
    pub(crate) fn take(&mut self) -> Option<&'static T> {
        let record = self.free?;
        self.free = record.next_free().take();
        Some(record)
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.is_none()
    }

    /// Returns the record that is taken next.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<&'static T> {
        self.free
    }

    /// Gives a record back to the pool.
    pub(crate) fn put(&mut self, record: &'static T) {
        self.put_linked(record, record);
    }

    /// Gives records back to the pool that are linked already, from the first one to the last.
    pub(crate) fn put_linked(&mut self, first: &'static T, last: &'static T) {
        last.next_free().set(self.free);
        self.free = Some(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::page_provider::{Purged, Reserved};
    use crate::back::system::provider::fixed::Fixed;
    use crate::back::system::thp::tests::has_huge_pages;

    /// The address of a record from `state`, in small pages, whatever other tests have made
    /// meanwhile.
    fn carve(state: &mut State, size: usize, align: usize, provider: &Fixed) -> Option<usize> {
        if !state.has_room(size, align) {
            state.refill(size, provider, false)?;
        }
        state.cut(size, align).map(|record| record.addr().get())
    }

    #[test]
    fn records_fill_a_chunk_to_its_end_and_lie_over_no_other() {
        let (provider, mut state) = (Fixed::leak(3 * CHUNK + PAGE), State::new());
        let first = carve(&mut state, 24, 8, provider).unwrap();
        assert_eq!(state.end, first + CHUNK);
        assert!(chunks().any(|chunk| chunk == (first, CHUNK)));
        assert_eq!(carve(&mut state, 64, 64, provider), Some(first + 64));
        assert_eq!(carve(&mut state, CHUNK - 128, 1, provider), Some(first + 128));
        let second = carve(&mut state, 8, 8, provider).unwrap();
        assert_eq!(state.end, second + CHUNK);
        assert!(second >= first + CHUNK);
        // A record that does not fit by a byte is in the next chunk.
        let third = carve(&mut state, CHUNK - 7, 1, provider).unwrap();
        assert!(third >= second + CHUNK);
        while provider.reserve(PAGE, PAGE).is_some() {}
        assert_eq!(carve(&mut state, 8, 1, provider), None);
        assert_eq!(carve(&mut state, 7, 1, provider), Some(third + CHUNK - 7));
    }

    #[test]
    fn what_lies_in_huge_pages_is_counted() {
        if !has_huge_pages() {
            return;
        }
        let (provider, mut state) = (Fixed::leak(16 * HUGE), State::new());
        let before = HUGE_PAGES.get();
        while !thp::for_records(MAPPED.get()) && state.carve(CHUNK, 8, provider).is_some() {}
        state.carve(2 * HUGE, 8, provider).unwrap();
        assert!(HUGE_PAGES.get() >= before + 2);
        assert!(HUGE_PAGES.get() * HUGE as u64 <= MAPPED.get());
    }

    #[test]
    fn a_chunk_is_shorter_where_there_is_no_room_for_a_long_one() {
        // There is no room for half of a chunk.
        let (provider, mut state) = (Fixed::leak(CHUNK / 2 - 1), State::new());
        let first = carve(&mut state, 8, 8, provider).unwrap();
        assert_eq!(state.end, first + CHUNK / 4);
        // What is asked for is not halved below the length that the record needs.
        assert_eq!(carve(&mut state, CHUNK / 4 + 1, 8, provider), None);
        let mut lengths = Vec::new();
        while carve(&mut state, CHUNK_MIN, 8, provider).is_some() {
            lengths.push(state.end - state.next);
        }
        // The last chunk has the least length.
        assert_eq!(lengths.last(), Some(&0), "{lengths:?}");
        assert!(provider.reserve(CHUNK_MIN, PAGE).is_none());
    }

    /// A provider that has no multiple of a huge page.
    struct SmallPages(&'static Fixed);

    // SAFETY: as that of `Fixed`.
    unsafe impl PageProvider for SmallPages {
        fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
            if align < HUGE { self.0.reserve(size, align) } else { None }
        }

        unsafe fn release(&self, _base: NonNull<u8>, _size: usize) -> bool {
            false
        }

        unsafe fn purge(&self, _base: NonNull<u8>, _size: usize) -> Purged {
            Purged::Refused
        }
    }

    #[test]
    fn a_chunk_lies_in_small_pages_where_there_is_no_room_for_a_huge_one() {
        let (provider, mut state) = (SmallPages(Fixed::leak(CHUNK)), State::new());
        state.refill(8, &provider, true).expect("addresses for a shorter chunk");
        assert_eq!(state.end - state.next, CHUNK / 2);
    }

    #[test]
    fn arrays_are_recycled_by_size() {
        let first = allocate_array(3).unwrap();
        let other = allocate_array(5).unwrap();
        // SAFETY: just allocated with this size.
        unsafe { free_array(first, 3) };
        // SAFETY: just allocated with this size.
        unsafe { free_array(other, 5) };
        let again = allocate_array(5).unwrap();
        // Another test may have taken `other` in between, but no array comes back at another size.
        assert_ne!(again, first);
    }

    #[test]
    fn records_are_aligned_and_zeroed() {
        let bytes = allocate(100, 64).unwrap();
        assert!((bytes.as_ptr() as usize).is_multiple_of(64));
        // SAFETY: just allocated with this length.
        let bytes = unsafe { core::slice::from_raw_parts(bytes.as_ptr(), 100) };
        assert!(bytes.iter().all(|byte| *byte == 0));
    }
}
