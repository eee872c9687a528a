//! A cache bin: the blocks of one class in one thread's cache, in a bounded array of pointers used
//! as a stack.
//!
//! ```text
//!   base            sp                limit
//!    ▼               ▼                  ▼
//!   NULL │ block │ block │  …  (room)   │
//!           oldest  newest
//! ```
//! The slot at the base holds NULL, so that the popped value itself tells whether the bin is empty.
//! The countdown is the only bookkeeping of the fast path. It gives the exact number of requests,
//! and sends every n-th request to the slow path, where collection and ageing happen.

use crate::ground::heap_sort::heap_sort;
use crate::ground::seen::{address_seen, number_seen};
use crate::ground::size_class::BIN_BYTES;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU16, Ordering, Ordering::Relaxed};

/// A slot of the array.
pub(crate) type Slot = *mut u8;

/// One bin. Only its thread pushes and pops. The array is changed, and read by other threads, under
/// the lock of the cache's owner. All orderings are relaxed: other threads read levels, and blocks
/// only to tell which are free at the moment.
#[repr(C)]
pub(crate) struct CacheBin {
    sp: AtomicPtr<Slot>,
    limit: AtomicPtr<Slot>,
    base: AtomicPtr<Slot>,
    /// Written by plain stores of the bin's thread, because an atomic load and store would cost two
    /// instructions more than `dec [mem]`. Other threads read it through
    /// [`CacheBin::countdown_seen`] only.
    countdown: Cell<i32>,
    /// In a façade of the hardened tier, the bytes of a block before its canary. Elsewhere 0.
    room: AtomicU16,
    /// Blocks that the array has slots for. The limit says the same, unless the bin is screened.
    capacity: AtomicU16,
}

// SAFETY: the pointers are atomic. `countdown` and the slots of the array are touched by the bin's
// thread; other threads read them only by one machine load that the compiler does not know of,
// which may be a moment old but is never torn.
unsafe impl Sync for CacheBin {}

const _: () = assert!(size_of::<CacheBin>() == BIN_BYTES);
// What a pop and a push touch lies in the first half of a line, and a bin never crosses a line.
const _: () = {
    assert!(
        core::mem::offset_of!(CacheBin, sp) == 0 && core::mem::offset_of!(CacheBin, limit) == 8
    );
    assert!(core::mem::offset_of!(CacheBin, countdown) == 24 && 64 % BIN_BYTES == 0);
};

/// Stands for the array of a bin that has none: empty and full at once.
struct NoArray(Slot);

// SAFETY: a null pointer that never changes.
unsafe impl Sync for NoArray {}

static NO_ARRAY: NoArray = NoArray(core::ptr::null_mut());

impl CacheBin {
    /// Creates a bin that always misses and never takes a block.
    pub(crate) const fn none() -> CacheBin {
        let slot = (&raw const NO_ARRAY.0).cast_mut();
        CacheBin {
            sp: AtomicPtr::new(slot),
            limit: AtomicPtr::new(slot),
            base: AtomicPtr::new(slot),
            countdown: Cell::new(0),
            room: AtomicU16::new(0),
            capacity: AtomicU16::new(0),
        }
    }

    /// Returns how many bytes a block has before its canary in façades of the hardened tier, and
    /// else 0.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        usize::from(self.room.load(Relaxed))
    }

    /// Sets how many bytes a block has before its canary.
    pub(crate) fn set_room(&self, room: u16) {
        self.room.store(room, Relaxed);
    }

    /// Pops the newest block, and calls `hit` with it. Returns what `miss` returns if there is
    /// none, if it may be a sample, or if the countdown has run out. Samples lie below `low_end`:
    /// see [`crate::ground::low`].
    #[inline(always)]
    pub(crate) fn pop_or(
        &self,
        low_end: usize,
        hit: impl FnOnce(*mut u8),
        miss: impl FnOnce() -> *mut u8,
    ) -> *mut u8 {
        let sp = self.sp.load(Relaxed);
        // SAFETY: sp lies between base and limit, and all slots up to it are written.
        let block = unsafe { *sp };
        let is_due = || {
            self.countdown.set(self.countdown.get().wrapping_sub(1));
            self.countdown.get() < 0
        };
        // Null is low too, so this is the only test.
        if (block as usize) < low_end || is_due() {
            return miss();
        }
        // Stored from the register. `add [mem]` would be an instruction less, but costs twice the
        // time of a pair, because the next load of the pointer waits for it.
        self.sp.store(sp.wrapping_sub(1), Relaxed);
        hit(block);
        block
    }

    /// Pushes a block. Returns `false`, and changes nothing, if there is no room.
    #[inline(always)]
    pub(crate) fn push(&self, block: *mut u8) -> bool {
        let sp = self.sp.load(Relaxed);
        if sp >= self.limit.load(Relaxed) {
            return false;
        }
        // SAFETY: below the limit there is one more slot.
        let sp = unsafe { sp.add(1) };
        // SAFETY: slots up to the limit belong to the bin and may be written.
        unsafe { *sp = block };
        // Release: pairs with the Acquire in `level_seen`.
        self.sp.store(sp, Ordering::Release);
        true
    }

    /// As [`CacheBin::push`], but works in a screened bin too.
    pub(crate) fn put(&self, block: *mut u8) -> bool {
        if self.level() >= self.capacity() {
            return false;
        }
        let sp = self.sp.load(Relaxed).wrapping_add(1);
        // SAFETY: the array has one more slot.
        unsafe { *sp = block };
        // Release: pairs with the Acquire in `level_seen`.
        self.sp.store(sp, Ordering::Release);
        true
    }

    /// Makes every [`CacheBin::push`] miss from now on. Called under the owner's lock, by any
    /// thread.
    pub(crate) fn screen(&self) {
        self.limit.store(self.base(), Relaxed);
    }

    /// Pops the newest block without counting it. Returns null if there is none.
    pub(crate) fn pop_uncounted(&self) -> *mut u8 {
        let sp = self.sp.load(Relaxed);
        // SAFETY: sp lies between base and limit, and all slots up to it are written.
        let block = unsafe { *sp };
        if !block.is_null() {
            // SAFETY: a block that is not null lies above the base.
            self.sp.store(unsafe { sp.sub(1) }, Relaxed);
        }
        block
    }

    /// Returns how many blocks the bin holds.
    pub(crate) fn level(&self) -> usize {
        self.level_at(self.sp.load(Relaxed))
    }

    /// As [`CacheBin::level`], for another thread than the bin's, which reads the slots then. Where
    /// a block was pushed it sees that one, not the block that was there before.
    fn level_seen(&self) -> usize {
        // Acquire: pairs with the Release in `push` and `put`.
        self.level_at(self.sp.load(Ordering::Acquire))
    }

    fn level_at(&self, sp: *mut Slot) -> usize {
        (sp as usize).saturating_sub(self.base() as usize) / size_of::<Slot>()
    }

    /// Returns how many blocks the bin may hold.
    pub(crate) fn capacity(&self) -> usize {
        usize::from(self.capacity.load(Relaxed))
    }

    /// Returns the slot that holds NULL.
    pub(crate) fn base(&self) -> *mut Slot {
        self.base.load(Relaxed)
    }

    /// Returns how many pops are left until the countdown sends one to the slow path. Negative if
    /// it has done so. For the bin's thread only.
    pub(crate) fn countdown(&self) -> i32 {
        self.countdown.get()
    }

    /// Sets the countdown. For the bin's thread only.
    pub(crate) fn set_countdown(&self, left: i32) {
        self.countdown.set(left);
    }

    /// Returns the countdown. Any thread may call this.
    pub(crate) fn countdown_seen(&self) -> i32 {
        // SAFETY: an aligned live field.
        unsafe { number_seen(self.countdown.as_ptr()) }
    }

    /// Calls `see` with each block but the `gone` oldest ones, as far as another thread than the
    /// bin's can tell. A block that is pushed or popped meanwhile may be seen or not. Called under
    /// the owner's lock.
    pub(crate) fn for_each_seen(&self, gone: usize, mut see: impl FnMut(*mut u8)) {
        let base = self.base();
        // SAFETY: slots of the array, which stays while the lock is held.
        (gone + 1..=self.level_seen())
            .for_each(|n| see(unsafe { address_seen(base.wrapping_add(n)) }));
    }

    /// Writes blocks to `blocks`, as many as it is long, beginning with the oldest but `from`. Any
    /// thread may call this under the owner's lock, for blocks that the bin's thread leaves alone.
    pub(crate) fn see(&self, from: usize, blocks: &mut [Slot]) {
        let first = self.base().wrapping_add(from + 1);
        for (n, block) in blocks.iter_mut().enumerate() {
            // SAFETY: as above.
            *block = unsafe { address_seen(first.wrapping_add(n)) };
        }
    }

    /// Returns the blocks, oldest first.
    ///
    /// # Safety
    /// The caller must be the bin's thread, or have seen that this thread has ended.
    pub(crate) unsafe fn blocks(&self) -> &[Slot] {
        let oldest = self.base().wrapping_add(1);
        // SAFETY: `level` written slots follow the base.
        unsafe { core::slice::from_raw_parts(oldest, self.level()) }
    }

    /// Lets the newest block trade places with the one that has `below` blocks below it. Does
    /// nothing if there is no such block. For the bin's thread only.
    #[inline(always)]
    pub(crate) fn swap_newest(&self, below: usize) {
        let (sp, other) = (self.sp.load(Relaxed), self.base().wrapping_add(below + 1));
        if other < sp {
            // SAFETY: both are written slots above the base.
            unsafe { sp.swap(other) };
        }
    }

    /// Sorts the blocks by address, and returns them. Called under the owner's lock.
    ///
    /// # Safety
    /// The caller must be the bin's thread, and not hold another reference to the slots.
    pub(crate) unsafe fn sorted(&self) -> &[Slot] {
        let oldest = self.base().wrapping_add(1);
        // SAFETY: `level` written slots follow the base, and are the caller's.
        let blocks = unsafe { core::slice::from_raw_parts_mut(oldest, self.level()) };
        heap_sort(blocks);
        blocks
    }

    /// Drops the `n` oldest blocks, which were returned to their slabs. The other blocks move down.
    ///
    /// # Safety
    /// The caller must be the bin's thread, or have seen that this thread has ended. `n <=
    /// level()`.
    pub(crate) unsafe fn drop_oldest(&self, n: usize) {
        let level = self.level();
        debug_assert!(n <= level);
        let oldest = self.base().wrapping_add(1);
        // SAFETY: both ranges lie among the `level` written slots.
        unsafe { core::ptr::copy(oldest.wrapping_add(n), oldest, level - n) };
        self.sp.store(self.base().wrapping_add(level - n), Relaxed);
    }

    /// Fills an empty bin with at most `n` blocks, so that the first one given is popped first.
    ///
    /// `fill` gets a [`Filler`] that takes one block at a time. Returns how many blocks it gave.
    ///
    /// # Safety
    /// The caller must be the bin's thread, the bin must be empty, `n <= capacity()`, and `fill`
    /// must give at most `n` blocks.
    #[inline]
    pub(crate) unsafe fn fill(&self, n: usize, fill: impl FnOnce(&mut Filler)) -> usize {
        debug_assert!(self.level() == 0 && n <= self.capacity());
        let base = self.base();
        let mut filler = Filler { base, left: n };
        fill(&mut filler);
        let (given, left) = (n - filler.left, filler.left);
        if left > 0 {
            let oldest = base.wrapping_add(1);
            // SAFETY: the `given` slots written above move down within the array.
            unsafe { core::ptr::copy(oldest.wrapping_add(left), oldest, given) };
        }
        self.sp.store(base.wrapping_add(given), Relaxed);
        given
    }

    /// Fills an empty bin with the blocks that `write` puts into its slots. The last block is
    /// popped first. Returns the number of blocks.
    ///
    /// # Safety
    /// The caller must be the bin's thread, and the bin must be empty. `write` must return how many
    /// slots it wrote, beginning with the slot it gets, and at most `capacity()`.
    #[inline]
    pub(crate) unsafe fn fill_below(&self, write: impl FnOnce(*mut Slot) -> usize) -> usize {
        debug_assert!(self.level() == 0);
        let given = write(self.base().wrapping_add(1));
        debug_assert!(given <= self.capacity());
        self.sp.store(self.base().wrapping_add(given), Relaxed);
        given
    }

    /// Moves the blocks to another array with room for `capacity` blocks behind its NULL slot.
    /// Returns the NULL slot of the old array. Called under the owner's lock.
    ///
    /// # Safety
    /// The caller must be the bin's thread. `array` must have `capacity + 1` slots, fewer than
    /// 2^16, and belong to this bin alone.
    pub(crate) unsafe fn move_to(&self, array: *mut Slot, capacity: usize) -> *mut Slot {
        let (old, level) = (self.base(), self.level());
        debug_assert!(level <= capacity);
        // SAFETY: the NULL slot and `level` blocks fit both arrays.
        unsafe { core::ptr::copy_nonoverlapping(old, array, level + 1) };
        self.base.store(array, Relaxed);
        self.sp.store(array.wrapping_add(level), Relaxed);
        self.limit.store(array.wrapping_add(capacity), Relaxed);
        self.capacity.store(capacity as u16, Relaxed);
        old
    }

    /// Forgets the array and the blocks in it.
    pub(crate) fn forget(&self) {
        let none = CacheBin::none();
        self.base.store(none.base(), Relaxed);
        self.sp.store(none.base(), Relaxed);
        self.limit.store(none.base(), Relaxed);
        self.capacity.store(0, Relaxed);
    }
}

/// The empty slots of a bin that is being filled, the topmost first.
pub(crate) struct Filler {
    base: *mut Slot,
    left: usize,
}

impl Filler {
    /// Puts a block into the next slot.
    #[inline(always)]
    pub(crate) fn give(&mut self, block: *mut u8) {
        debug_assert!(self.left > 0);
        // SAFETY: slots 1..=n lie within the capacity, and no more are given (the promise of
        // `fill`).
        unsafe { *self.base.wrapping_add(self.left) = block };
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(n)
    }

    fn pop(bin: &CacheBin) -> *mut u8 {
        bin.pop_or(1, |_| (), core::ptr::null_mut)
    }

    #[test]
    fn fixed_a_bin_without_an_array_misses_and_refuses() {
        let bin = CacheBin::none();
        assert!(pop(&bin).is_null());
        assert!(!bin.push(block(8)));
        assert_eq!((bin.level(), bin.capacity(), bin.countdown()), (0, 0, 0));
    }

    #[test]
    fn fixed_a_stack_with_a_countdown() {
        let mut array = [core::ptr::null_mut(); 8];
        let bin = CacheBin::none();
        // SAFETY: this thread's bin; 7 + 1 slots.
        unsafe { bin.move_to(array.as_mut_ptr(), 7) };
        // SAFETY: this thread's bin, empty.
        let given =
            unsafe { bin.fill(5, |filler| (1..=3).for_each(|n| filler.give(block(n * 8)))) };
        assert_eq!((given, bin.level()), (3, 3));
        bin.set_countdown(2);
        assert_eq!(pop(&bin), block(8));
        assert_eq!(pop(&bin), block(16));
        assert!(pop(&bin).is_null(), "the countdown has run out");
        assert_eq!(bin.countdown(), -1);
        assert_eq!(bin.pop_uncounted(), block(24));
        assert!(bin.pop_uncounted().is_null());
        bin.for_each_seen(0, |_| panic!("it is empty"));
        (1..=7).for_each(|n| assert!(bin.push(block(n * 8))));
        assert!(!bin.push(block(64)));
        let mut seen = Vec::new();
        bin.for_each_seen(0, |block| seen.push(block.addr()));
        assert_eq!(seen, [8, 16, 24, 32, 40, 48, 56]);
        // SAFETY: this thread's bin.
        unsafe { bin.drop_oldest(3) };
        // SAFETY: this thread's bin.
        assert_eq!(unsafe { bin.blocks() }, [block(32), block(40), block(48), block(56)]);
    }

    #[test]
    fn fixed_a_screened_bin_takes_blocks_the_slow_way_only() {
        let mut array = [core::ptr::null_mut(); 4];
        let bin = CacheBin::none();
        bin.screen();
        assert!(!bin.put(block(8)), "it has no array");
        // SAFETY: this thread's bin; 3 + 1 slots.
        unsafe { bin.move_to(array.as_mut_ptr(), 3) };
        assert!(bin.push(block(8)));
        bin.screen();
        assert!(!bin.push(block(16)));
        assert!(bin.put(block(16)) && bin.put(block(24)) && !bin.put(block(32)));
        assert_eq!((bin.level(), bin.capacity()), (3, 3));
        bin.set_countdown(9);
        assert_eq!(pop(&bin), block(24));
    }

    #[test]
    fn fixed_a_bin_is_filled_from_its_base_on_and_forgets_its_array() {
        let mut array = [core::ptr::null_mut(); 4];
        let bin = CacheBin::none();
        // SAFETY: this thread's bin; 3 + 1 slots.
        assert_eq!(unsafe { bin.move_to(array.as_mut_ptr(), 3) }, CacheBin::none().base());
        let write = |first: *mut Slot| {
            for n in 0..2 {
                // SAFETY: the bin is empty, and two of its three slots are written.
                unsafe { *first.wrapping_add(n) = block(8 * (n + 1)) };
            }
            2
        };
        // SAFETY: this thread's bin, empty.
        assert_eq!(unsafe { bin.fill_below(write) }, 2);
        assert_eq!(
            (bin.level(), bin.pop_uncounted(), bin.pop_uncounted()),
            (2, block(16), block(8))
        );
        bin.set_countdown(-5);
        bin.set_room(100);
        assert_eq!((bin.countdown_seen(), bin.room()), (-5, 100));
        assert!(bin.push(block(8)));
        bin.forget();
        assert_eq!((bin.level(), bin.capacity(), bin.base()), (0, 0, CacheBin::none().base()));
        assert!(!bin.push(block(8)) && pop(&bin).is_null());
    }

    #[test]
    fn fixed_a_block_at_a_low_address_is_not_popped() {
        let mut array = [core::ptr::null_mut(); 3];
        let bin = CacheBin::none();
        // SAFETY: this thread's bin; 2 + 1 slots.
        unsafe { bin.move_to(array.as_mut_ptr(), 2) };
        bin.set_countdown(5);
        assert!(bin.push(block(4096)) && bin.push(block(8)));
        assert_eq!(bin.pop_or(9, |_| panic!("a hit"), || block(1)), block(1));
        assert_eq!((bin.level(), bin.countdown()), (2, 5), "nothing was counted");
        assert_eq!(bin.pop_uncounted(), block(8));
        assert_eq!(bin.pop_or(9, |_| (), || block(1)), block(4096));
    }
}
