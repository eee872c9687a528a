//! A thread's façade: a front of bins that always miss, before its real cache.
//!
//! When a mode must see every operation of a thread, the thread's word points to a façade instead
//! of its real cache. The fast paths miss, and the slow path takes the block from the real bin
//! behind (`front/miss/watched.rs`). A façade is made on demand for each real cache, and recycled
//! with it. It stores what the modes want, so that operations take no locks and read no options.
//!
//! ```text
//!   TLS word ──▶ Facade { front: bins that miss } ──▶ RealCache { front: bins with blocks }
//! ```

use crate::back::metadata;
use crate::front::bins::cache_bin::CacheBin;
use crate::front::bins::thread_cache::{Cells, Kind, ThreadCache};
use crate::front::modes::block_size::usable;
use crate::front::modes::hardened::quarantine::{LONGEST, Quarantine, Waited};
use crate::front::modes::hardened::random::Random;
use crate::front::modes::hardened::{canary, order, slack, wipe};
use crate::front::modes::watch;
use crate::ground::fill_mode;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::middle::blocks::give_back::give_back;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::profile::sampler;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A façade with a real cache behind it.
#[repr(C)]
pub(crate) struct Facade {
    /// The first field, so that the TLS word points to it.
    front: ThreadCache,
    /// The front of the real cache that serves the thread.
    behind: &'static ThreadCache,
    hardened: bool,
    /// The last bin whose blocks are wiped by masked stores, as [`wipe::masked_units`] returns it.
    masked: usize,
    /// A copy of the secret of the canaries.
    secret: u64,
    /// What the slack of blocks is filled with.
    filling: u64,
    random: Random,
    quarantine: Quarantine,
    /// Whether the hardened tier or the counting, although it is the only mode, takes the way of
    /// all modes, because another thread has taken blocks out of the real cache, or is about to.
    is_resting: AtomicBool,
}

const _: () = assert!(core::mem::offset_of!(Facade, front) == 0);

// SAFETY: only the real cache's thread touches the cells, or another under its owner's lock once
// that thread has ended. The rest is atomic or never changes.
unsafe impl Sync for Facade {}

impl Facade {
    /// Makes a façade for a real cache's front. Returns `None` if there is no memory.
    pub(super) fn make(behind: &'static ThreadCache) -> Option<&'static Facade> {
        let memory = metadata::allocate(size_of::<Facade>(), 64)?.cast::<Facade>();
        let options = options::current();
        let facade = Facade {
            front: ThreadCache::mode(),
            behind,
            secret: canary::secret(),
            filling: slack::filling(canary::secret()),
            hardened: options.hardened,
            masked: if options.hardened { wipe::masked_units() } else { 0 },
            random: Random::new(),
            quarantine: Quarantine::new(),
            is_resting: AtomicBool::new(false),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(facade) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }

    /// Returns the façade whose front `cache` is, if it is a façade with a real cache.
    #[inline(always)]
    pub(crate) fn of(cache: &'static ThreadCache) -> Option<&'static Facade> {
        if cache.kind() != Kind::Mode {
            return None;
        }
        // SAFETY: of kind Mode.
        Some(unsafe { Facade::of_mode(cache) })
    }

    /// As [`Facade::of`], without a check of the kind.
    ///
    /// # Safety
    /// `cache` must be of kind [`Kind::Mode`].
    #[inline(always)]
    pub(crate) unsafe fn of_mode(cache: &'static ThreadCache) -> &'static Facade {
        // SAFETY: a front of kind Mode is the first field of a façade, which lives for ever.
        unsafe { &*core::ptr::from_ref(cache).cast::<Facade>() }
    }

    /// Returns the part that the TLS word points to.
    #[inline]
    pub(crate) fn front(&self) -> &ThreadCache {
        &self.front
    }

    /// Returns the front of the real cache.
    #[inline(always)]
    pub(crate) fn behind(&self) -> &'static ThreadCache {
        self.behind
    }

    /// Returns whether blocks have canaries.
    #[inline(always)]
    pub(crate) fn is_hardened(&self) -> bool {
        self.hardened
    }

    /// Lets the hardened tier, or the counting, go straight to the real bin if it is the only mode
    /// and no other thread has taken blocks out of the cache. `cells` are those of a thread that
    /// wants each operation seen. `emptied` says whether blocks were taken, or are about to be.
    pub(super) fn tune(&self, cells: Option<&'static Cells>, emptied: bool) {
        let others = fill_mode::is_any() || watch::is_observed() || sampler::sees_all();
        let is_hardened_only = self.hardened && cells.is_none() && !others;
        let cells = cells.filter(|_| !self.hardened && !others);
        // Relaxed: its partner is `is_resting`. A thread that misses the change takes the way of
        // all modes once more.
        self.is_resting.store((is_hardened_only || cells.is_some()) && emptied, Relaxed);
        self.front.set_rooms((is_hardened_only && !emptied).then_some(canary::BYTES));
        self.front.set_cells(cells.filter(|_| !emptied));
    }

    /// Returns whether the façade has to be tuned again once the cache is whole.
    #[inline]
    pub(super) fn is_resting(&self) -> bool {
        self.is_resting.load(Relaxed)
    }

    /// Returns whether a free of a block of a class leaves all blocks of its bin but the newest
    /// where they are. Longer ones trade places ([`Facade::bury`]).
    pub(super) fn keeps_order(&self, class: SizeClass) -> bool {
        !self.hardened || class.size() <= LONGEST
    }

    /// Returns the word with which the slack of blocks is filled.
    #[inline(always)]
    pub(crate) fn filling(&self) -> u64 {
        self.filling
    }

    /// Returns the value of the last word of `block` while it is in use and has no slack.
    #[inline(always)]
    pub(crate) fn seal_of(&self, block: *mut u8) -> u64 {
        canary::seal_by(self.secret, block as usize)
    }

    /// Puts a freed block into quarantine. Returns another one that has waited, if there is one.
    #[inline(always)]
    pub(crate) fn exchange(&self, units: usize, block: *mut u8) -> Waited {
        self.quarantine.exchange(units, block, &self.random)
    }

    /// Lets the block that was just pushed to a bin of the real cache trade places with a random
    /// one below. Called by its thread.
    #[inline(always)]
    pub(crate) fn bury(&self, bin: &CacheBin) {
        let level = bin.level();
        if level > 1 {
            bin.swap_newest(self.random.below(level - 1));
        }
    }

    /// Wipes a block and writes its last word.
    ///
    /// # Safety
    /// As [`wipe::wipe`].
    #[inline(always)]
    pub(crate) unsafe fn wipe(&self, block: *mut u8, units: usize, room: usize, last: u64) {
        // SAFETY: the caller's promise; `masked` is what the processor has.
        unsafe { wipe::wipe(block, units, room, last, self.masked) };
    }

    /// Returns the least number of blocks that a refill asks for.
    pub(crate) fn least(&self) -> usize {
        if self.hardened { order::FEWEST } else { 1 }
    }

    /// Completes a refill of a bin of the real cache, as the mode wants. Called by its thread.
    pub(crate) fn refilled(&self, class: SizeClass) {
        if self.hardened {
            // SAFETY: a refill is made by the bin's thread.
            unsafe { order::shuffle(self.behind.bin(class.bin()), &self.random) };
        }
    }

    /// Returns how many blocks of a class wait in quarantine.
    pub(crate) fn waiting(&self, class: SizeClass) -> usize {
        self.quarantine.level(class)
    }

    /// Returns the usable bytes of all blocks in quarantine.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.quarantine.waiting().map(|class| usable(class) as u64).sum()
    }

    /// Calls `see` with each block in quarantine, as far as another thread can tell.
    pub(crate) fn for_each_waiting(&self, see: impl FnMut(*mut u8)) {
        self.quarantine.for_each(see);
    }

    /// Gives the blocks in quarantine back to their slabs. Called under the real cache's owner's
    /// lock, by its thread or after it.
    pub(crate) fn flush(&self, owner: &'static Owner, state: &mut OwnerState) {
        self.quarantine.release(|class, block| give_back(owner, state, class, &[block]));
    }

    /// Drops the blocks in quarantine and returns how many there were. The thread is gone after a
    /// fork, perhaps in the middle of a change.
    pub(crate) fn forget(&self) -> usize {
        let mut lost = 0;
        self.quarantine.release(|_, _| lost += 1);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use core::sync::atomic::AtomicU64;

    #[test]
    fn a_facade_counts_only_as_long_as_nothing_else_is_wanted_of_it() {
        static CELLS: Cells = [const { AtomicU64::new(0) }; 2];
        let cache = new_cache();
        assert!(cache.prepare_facade());
        let facade = cache.facade().unwrap();
        let is_open = || facade.front().cells().is_some();
        assert!(!is_open() && !facade.is_resting());
        facade.tune(Some(&CELLS), false);
        assert!(is_open() && !facade.is_resting());
        facade.tune(Some(&CELLS), true);
        assert!(!is_open() && facade.is_resting(), "another thread takes blocks");
        facade.tune(None, false);
        assert!(!is_open() && !facade.is_resting(), "no thread reads the cells");
        facade.tune(Some(&CELLS), false);
        end(cache);
        assert!(!is_open(), "the next thread has other cells");
    }
}
