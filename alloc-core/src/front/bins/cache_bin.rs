//! A cache bin: one class of one thread, a bounded array of pointers used as a stack.
//!
//! ```text
//!   base            sp                limit
//!    ▼               ▼                  ▼
//!   NULL │ block │ block │  …  (room)   │
//!           oldest  newest
//! ```
//! The slot at the base holds NULL, so "empty" is found in the value popped. The countdown is the
//! only bookkeeping of the fast path: it gives the exact number of requests, and sends every n-th
//! one the slow way, where collection and ageing happen.

use crate::ground::size_class::BIN_BYTES;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU16, Ordering::Relaxed};

/// A slot of the array.
pub(crate) type Slot = *mut u8;

/// One bin. Only its thread pushes and pops; the array is changed, and looked at by others, under
/// the lock of the cache's owner. All orderings are relaxed: others read levels, never blocks.
#[repr(C)]
pub(crate) struct CacheBin {
    sp: AtomicPtr<Slot>,
    limit: AtomicPtr<Slot>,
    base: AtomicPtr<Slot>,
    /// Written by plain stores of its thread: an atomic load and store would cost two instructions
    /// more than `dec [mem]`. Others look at it through [`CacheBin::countdown_seen`] only.
    countdown: Cell<i32>,
    /// In a façade of the hardened tier the bytes of a block before its canary; elsewhere 0.
    room: AtomicU16,
    /// Blocks that the array has slots for: as many as the limit says, unless the bin is screened.
    capacity: AtomicU16,
}

// SAFETY: the pointers are atomic; `countdown` is touched by the bin's thread, and by others only
// by one machine load that the compiler knows nothing of, which may be a moment old but is never
// torn.
unsafe impl Sync for CacheBin {}

const _: () = assert!(size_of::<CacheBin>() == BIN_BYTES);

/// The array of a bin that has none: empty and full at once.
struct NoArray(Slot);

// SAFETY: a null pointer that nobody changes.
unsafe impl Sync for NoArray {}

static NO_ARRAY: NoArray = NoArray(core::ptr::null_mut());

impl CacheBin {
    /// A bin that always misses and never takes anything.
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

    /// How much room a block has before its canary: in façades of the hardened tier, else 0.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        usize::from(self.room.load(Relaxed))
    }

    /// Says how much.
    pub(crate) fn set_room(&self, room: u16) {
        self.room.store(room, Relaxed);
    }

    /// The newest block; null when there is none, or when the countdown has run out.
    #[inline(always)]
    pub(crate) fn pop(&self) -> *mut u8 {
        let sp = self.sp.load(Relaxed);
        // SAFETY: sp lies between base and limit, and all slots up to it are written.
        let block = unsafe { *sp };
        if block.is_null() {
            return block;
        }
        self.countdown.set(self.countdown.get().wrapping_sub(1));
        if self.countdown.get() < 0 {
            return core::ptr::null_mut();
        }
        // From the register: `add [mem]` would be an instruction less, and costs twice the time of
        // a pair, because the next load of the pointer waits for it.
        self.sp.store(sp.wrapping_sub(1), Relaxed);
        block
    }

    /// Puts a block on top. `false`: no room; nothing changed.
    #[inline(always)]
    pub(crate) fn push(&self, block: *mut u8) -> bool {
        let sp = self.sp.load(Relaxed);
        if sp >= self.limit.load(Relaxed) {
            return false;
        }
        // SAFETY: below the limit there is one more slot.
        let sp = unsafe { sp.add(1) };
        // SAFETY: up to the limit slots are ours to write.
        unsafe { *sp = block };
        self.sp.store(sp, Relaxed);
        true
    }

    /// As [`CacheBin::push`], in a screened bin too.
    pub(crate) fn put(&self, block: *mut u8) -> bool {
        if self.level() >= self.capacity() {
            return false;
        }
        let sp = self.sp.load(Relaxed).wrapping_add(1);
        // SAFETY: the array has one more slot.
        unsafe { *sp = block };
        self.sp.store(sp, Relaxed);
        true
    }

    /// From now on every [`CacheBin::push`] misses. Under the owner's lock, by any thread.
    pub(crate) fn screen(&self) {
        self.limit.store(self.base(), Relaxed);
    }

    /// The newest block, the countdown left alone; null when there is none.
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

    /// How many blocks it holds.
    pub(crate) fn level(&self) -> usize {
        let (sp, base) = (self.sp.load(Relaxed), self.base.load(Relaxed));
        (sp as usize).saturating_sub(base as usize) / size_of::<Slot>()
    }

    /// How many blocks it may hold.
    pub(crate) fn capacity(&self) -> usize {
        usize::from(self.capacity.load(Relaxed))
    }

    /// The slot that holds NULL.
    pub(crate) fn base(&self) -> *mut Slot {
        self.base.load(Relaxed)
    }

    /// Pops left until the countdown sends one the slow way; below zero it has. For its thread.
    pub(crate) fn countdown(&self) -> i32 {
        self.countdown.get()
    }

    /// Sets the countdown. For its thread.
    pub(crate) fn set_countdown(&self, left: i32) {
        self.countdown.set(left);
    }

    /// The countdown as any thread may look at it.
    pub(crate) fn countdown_seen(&self) -> i32 {
        let place = self.countdown.as_ptr();
        let seen: i32;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: one aligned load of a live field.
        unsafe {
            core::arch::asm!("mov {0:e}, dword ptr [{1}]", out(reg) seen, in(reg) place,
                options(readonly, nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: one aligned load of a live field.
        unsafe {
            core::arch::asm!("ldr {0:w}, [{1}]", out(reg) seen, in(reg) place,
                options(readonly, nostack, preserves_flags));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            // SAFETY: one aligned load of a live field.
            seen = unsafe { place.read_volatile() };
        }
        seen
    }

    /// The blocks, oldest first.
    ///
    /// # Safety
    /// The caller is the bin's thread, or has seen that this thread is no more.
    pub(crate) unsafe fn blocks(&self) -> &[Slot] {
        let oldest = self.base().wrapping_add(1);
        // SAFETY: `level` written slots follow the base.
        unsafe { core::slice::from_raw_parts(oldest, self.level()) }
    }

    /// Drops the `n` oldest blocks, which have gone home; the rest move down.
    ///
    /// # Safety
    /// The caller is the bin's thread, or has seen that this thread is no more; `n <= level()`.
    pub(crate) unsafe fn drop_oldest(&self, n: usize) {
        let level = self.level();
        let oldest = self.base().wrapping_add(1);
        // SAFETY: both ranges lie among the `level` written slots.
        unsafe { core::ptr::copy(oldest.wrapping_add(n), oldest, level - n) };
        self.sp.store(self.base().wrapping_add(level - n), Relaxed);
    }

    /// Fills an empty bin with `n` blocks or fewer, so that the first one given is popped first.
    ///
    /// `fill` is handed a [`Filler`] that takes one block at a time. Answers how many it gave.
    ///
    /// # Safety
    /// The caller is the bin's thread; the bin is empty; `n <= capacity()`; `fill` gives no more
    /// than `n`.
    #[inline]
    pub(crate) unsafe fn fill(&self, n: usize, fill: impl FnOnce(&mut Filler)) -> usize {
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

    /// Fills an empty bin with the blocks that `write` puts into its slots, the last one to be
    /// popped first. Answers how many it put there.
    ///
    /// # Safety
    /// The caller is the bin's thread; the bin is empty; `write` answers how many slots it
    /// wrote, from the one it is handed on, no more than `capacity()`.
    #[inline]
    pub(crate) unsafe fn fill_below(&self, write: impl FnOnce(*mut Slot) -> usize) -> usize {
        let given = write(self.base().wrapping_add(1));
        self.sp.store(self.base().wrapping_add(given), Relaxed);
        given
    }

    /// Moves to another array with room for `capacity` blocks, its NULL slot first; answers the old
    /// one's NULL slot. Under the owner's lock.
    ///
    /// # Safety
    /// The caller is the bin's thread; `array` has `capacity + 1` slots, fewer than 2^16, and is
    /// nobody else's.
    pub(crate) unsafe fn move_to(&self, array: *mut Slot, capacity: usize) -> *mut Slot {
        let (old, level) = (self.base(), self.level());
        // SAFETY: the NULL slot and `level` blocks fit both arrays.
        unsafe { core::ptr::copy_nonoverlapping(old, array, level + 1) };
        self.base.store(array, Relaxed);
        self.sp.store(array.wrapping_add(level), Relaxed);
        self.limit.store(array.wrapping_add(capacity), Relaxed);
        self.capacity.store(capacity as u16, Relaxed);
        old
    }

    /// Forgets the array, and with it what it holds.
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

    #[test]
    fn fixed_a_bin_without_an_array_misses_and_refuses() {
        let bin = CacheBin::none();
        assert!(bin.pop().is_null());
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
        assert_eq!(bin.pop(), block(8));
        assert_eq!(bin.pop(), block(16));
        assert!(bin.pop().is_null(), "the countdown has run out");
        assert_eq!(bin.countdown(), -1);
        assert_eq!(bin.pop_uncounted(), block(24));
        assert!(bin.pop_uncounted().is_null());
        (1..=7).for_each(|n| assert!(bin.push(block(n * 8))));
        assert!(!bin.push(block(64)));
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
        assert_eq!(bin.pop(), block(24));
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
        assert!(!bin.push(block(8)) && bin.pop().is_null());
    }
}
