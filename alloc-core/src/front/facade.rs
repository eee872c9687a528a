//! A thread's façade: bins that always miss, in front of its real cache.
//!
//! A thread whose every operation must be seen has its word on one of these instead of on its real
//! cache; the fast paths miss and come here, and take the block from the real bin behind. One is
//! made on demand for each real cache, and recycled with it. Nothing is locked, and nothing is
//! asked twice: what the modes want is noted in the façade.
//!
//! ```text
//!   TLS word ──▶ Facade { front: bins that miss } ──▶ RealCache { front: bins with blocks }
//! ```

use super::hardened::canary;
use super::hardened::order;
use super::hardened::quarantine::Quarantine;
use super::hardened::random::Random;
use super::hardened::wipe;
use super::modes::{self, Given};
use super::registry::RealCache;
use super::slow;
use super::thread_cache::ThreadCache;
use crate::back::metadata;
use crate::back::page_map;
use crate::ground::fill_mode;
use crate::ground::options;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass};
use crate::middle::give_back::give_back;
use crate::middle::owner::OwnerState;
use crate::middle::slab::Slab;
use core::sync::atomic::Ordering;

/// A façade with a real cache behind it.
#[repr(C)]
pub(crate) struct Facade {
    /// First, so that the TLS word names it.
    front: ThreadCache,
    /// What serves the thread.
    pub(crate) real: &'static RealCache,
    hardened: bool,
    /// The last bin whose blocks masked stores wipe, as [`wipe::masked_units`] says.
    pub(crate) masked: usize,
    /// A copy of the canaries'.
    pub(crate) secret: u64,
    pub(crate) random: Random,
    pub(crate) quarantine: Quarantine,
}

// SAFETY: the cells are touched by the thread of the real cache only, or under its owner's lock
// once that thread is gone; the rest is atomic or never changes.
unsafe impl Sync for Facade {}

/// Sees to it that a cache has a façade, that knows what is asked of it now. Under the registry's
/// lock. `false`: no memory.
pub(crate) fn prepare(cache: &'static RealCache) -> bool {
    let facade = cache.facade().or_else(|| make(cache));
    facade.map(Facade::tune).is_some()
}

fn make(real: &'static RealCache) -> Option<&'static Facade> {
    let memory = metadata::allocate(size_of::<Facade>(), 64)?.cast::<Facade>();
    let options = options::current();
    let facade = Facade {
        front: ThreadCache::mode(),
        real,
        secret: canary::secret(),
        hardened: options.hardened,
        masked: if options.hardened { wipe::masked_units() } else { 0 },
        random: Random::new(),
        quarantine: Quarantine::new(),
    };
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(facade) };
    // Release: pairs with the Acquire in `RealCache::facade`.
    real.facade.store(memory.as_ptr(), Ordering::Release);
    real.facade()
}

impl Facade {
    /// What the TLS word names.
    #[inline]
    pub(crate) fn front(&self) -> &ThreadCache {
        &self.front
    }

    /// Has the hardened tier go straight to the real bin where it is the only mode.
    fn tune(&self) {
        let others = fill_mode::is_any() || self.real.is_watched();
        self.front.set_rooms(self.hardened && !others);
    }

    /// A block for a request that rounds to at most [`MAX_CACHED`], made ready. Null: the real bin
    /// misses too, or there is no room for a canary.
    #[inline(always)]
    pub(crate) fn pop(&self, size: usize, align: usize) -> *mut u8 {
        // Small, as the callers know: no sum wraps.
        debug_assert!(size <= MAX_CACHED);
        let least = size.max(1) + if self.hardened { canary::BYTES } else { 0 };
        let room = least.wrapping_add(align - 1) & align.wrapping_neg();
        if room > MAX_CACHED {
            return core::ptr::null_mut();
        }
        let class = SizeClass::of(room);
        let block = self.real.front.bin(class.bin()).pop();
        if block.is_null() {
            return block;
        }
        if self.real.is_watched() {
            self.count_popped(class);
        }
        // SAFETY: a free block of the class, just popped.
        unsafe { modes::handed_out(block, class) };
        block
    }

    /// Takes a small block back. `false`: it is none, and nothing was done.
    ///
    /// # Safety
    /// As [`missed::free`](super::missed::free).
    #[inline(always)]
    pub(crate) unsafe fn push(&self, block: *mut u8, given: Option<Given>) -> bool {
        let entry = page_map::lookup(block.expose_provenance());
        let Some(slab) = Slab::of(entry) else { return false };
        let mut bin = entry.bin_offset() / BIN_BYTES;
        let mut block = block;
        if self.real.is_watched() {
            self.count_pushed(slab.class());
        }
        if self.hardened {
            if let Some(given) = given
                && modes::bin_of(given) * BIN_BYTES != entry.bin_offset()
            {
                modes::wrong_size(entry, block as usize, given);
            }
            // SAFETY: the address lies in the slab.
            let class = unsafe { canary::unseal(slab, bin, block) };
            // SAFETY: a block of the slab's, which the caller gave up.
            unsafe { self.wipe(block, class) };
            if class.size() <= canary::ZEROED {
                let units = entry.bin_offset() / OFFSET_UNIT;
                let waited = self.quarantine.exchange(units, block, &self.random);
                (bin, block) = (waited.units * OFFSET_UNIT / BIN_BYTES, waited.block);
                if bin == 0 {
                    return true;
                }
            }
        } else {
            // SAFETY: a block of the slab's, which the caller gave up, or no block.
            unsafe { modes::taken_back(slab, block) };
        }
        if !self.real.front.bin(bin).push(block) {
            slow::push_missed(block);
        }
        true
    }

    #[inline(never)]
    fn count_popped(&self, class: SizeClass) {
        self.real.thread().into_iter().for_each(|thread| thread.got_cached(modes::usable(class)));
    }

    #[inline(never)]
    fn count_pushed(&self, class: SizeClass) {
        let Some(thread) = self.real.thread().filter(|_| self.real.holds(class)) else { return };
        thread.freed_cached(modes::usable(class));
    }

    #[inline(always)]
    unsafe fn wipe(&self, block: *mut u8, class: SizeClass) {
        if fill_mode::is_any() {
            // SAFETY: the caller's promise.
            unsafe { modes::wipe_filled(block, class) };
        } else if class.size() <= canary::ZEROED {
            // SAFETY: the caller's promise.
            unsafe { block.write_bytes(0, class.size() - canary::BYTES) };
        }
    }

    /// The least number of blocks that a refill asks for.
    pub(crate) fn least(&self) -> usize {
        if self.hardened { order::FEWEST } else { 1 }
    }

    /// What is to be done after a refill of a bin of the real cache. By its thread.
    pub(crate) fn refilled(&self, class: SizeClass) {
        if self.hardened {
            // SAFETY: a refill is made by the bin's thread.
            unsafe { order::shuffle(self.real.bin(class), &self.random) };
        }
    }

    /// Blocks of a class that are free, and lie in no bin.
    pub(crate) fn waiting(&self, class: SizeClass) -> usize {
        self.quarantine.level(class)
    }

    /// Usable bytes of all such blocks.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.quarantine.waiting().map(|class| modes::usable(class) as u64).sum()
    }

    /// Sends home what waits in quarantine. Under the owner's lock, by the thread or after it.
    pub(crate) fn flush(&self, state: &mut OwnerState) {
        self.quarantine.release(|class, block| {
            give_back(&self.real.owner, state, class, &[block]);
        });
    }

    /// Forgets what waits: the thread is gone, perhaps in the middle of a change. Answers how many.
    pub(crate) fn forget(&self) -> usize {
        let mut lost = 0;
        self.quarantine.release(|_, _| lost += 1);
        lost
    }
}
