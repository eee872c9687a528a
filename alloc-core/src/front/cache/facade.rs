//! A thread's façade: bins that always miss, in front of its real cache.
//!
//! A thread whose every operation must be seen has its word on one of these instead of on its real
//! cache; the fast paths miss, and the slow way takes the block from the real bin behind
//! (`front/miss/watched.rs`). One is made on demand for each real cache, and recycled with it.
//! Nothing is locked, and nothing is asked twice: what the modes want is noted in the façade.
//!
//! ```text
//!   TLS word ──▶ Facade { front: bins that miss } ──▶ RealCache { front: bins with blocks }
//! ```

use crate::back::metadata;
use crate::front::bins::thread_cache::{Kind, ThreadCache};
use crate::front::modes::block_size::usable;
use crate::front::modes::hardened::quarantine::{Quarantine, Waited};
use crate::front::modes::hardened::random::Random;
use crate::front::modes::hardened::{canary, order, wipe};
use crate::ground::fill_mode;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::middle::blocks::give_back::give_back;
use crate::middle::owners::owner::{Owner, OwnerState};

/// A façade with a real cache behind it.
#[repr(C)]
pub(crate) struct Facade {
    /// First, so that the TLS word names it.
    front: ThreadCache,
    /// The front of the real cache that serves the thread.
    behind: &'static ThreadCache,
    hardened: bool,
    /// The last bin whose blocks masked stores wipe, as [`wipe::masked_units`] says.
    masked: usize,
    /// A copy of the canaries'.
    secret: u64,
    random: Random,
    quarantine: Quarantine,
}

// SAFETY: the cells are touched by the thread of the real cache only, or under its owner's lock
// once that thread is gone; the rest is atomic or never changes.
unsafe impl Sync for Facade {}

impl Facade {
    /// A façade before the front of a real cache. `None`: no memory.
    pub(super) fn make(behind: &'static ThreadCache) -> Option<&'static Facade> {
        let memory = metadata::allocate(size_of::<Facade>(), 64)?.cast::<Facade>();
        let options = options::current();
        let facade = Facade {
            front: ThreadCache::mode(),
            behind,
            secret: canary::secret(),
            hardened: options.hardened,
            masked: if options.hardened { wipe::masked_units() } else { 0 },
            random: Random::new(),
            quarantine: Quarantine::new(),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(facade) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }

    /// The façade that a thread's cache is the front of. `None`: it is no façade, or one without a
    /// real cache.
    #[inline(always)]
    pub(crate) fn of(cache: &'static ThreadCache) -> Option<&'static Facade> {
        if cache.kind() != Kind::Mode {
            return None;
        }
        // SAFETY: of kind Mode.
        Some(unsafe { Facade::of_mode(cache) })
    }

    /// As [`Facade::of`], without a look at the kind.
    ///
    /// # Safety
    /// The cache is of kind Mode.
    #[inline(always)]
    pub(crate) unsafe fn of_mode(cache: &'static ThreadCache) -> &'static Facade {
        // SAFETY: a front of kind Mode is the first field of a façade, which lives for ever.
        unsafe { &*core::ptr::from_ref(cache).cast::<Facade>() }
    }

    /// What the TLS word names.
    #[inline]
    pub(crate) fn front(&self) -> &ThreadCache {
        &self.front
    }

    /// The front of the real cache.
    #[inline(always)]
    pub(crate) fn behind(&self) -> &'static ThreadCache {
        self.behind
    }

    /// Whether blocks have canaries.
    #[inline(always)]
    pub(crate) fn is_hardened(&self) -> bool {
        self.hardened
    }

    /// Has the hardened tier go straight to the real bin where it is the only mode; `watched` says
    /// whether the thread wants to see each operation itself.
    pub(super) fn tune(&self, watched: bool) {
        let is_only = self.hardened && !watched && !fill_mode::is_any();
        self.front.set_rooms(is_only.then_some(canary::BYTES));
    }

    /// What the last word of a block in use says.
    #[inline(always)]
    pub(crate) fn seal_of(&self, block: *mut u8) -> u64 {
        canary::seal_by(self.secret, block as usize)
    }

    /// Has a freed block wait in quarantine. Returns another one that has waited, if one has.
    #[inline(always)]
    pub(crate) fn exchange(&self, units: usize, block: *mut u8) -> Waited {
        self.quarantine.exchange(units, block, &self.random)
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

    /// The least number of blocks that a refill asks for.
    pub(crate) fn least(&self) -> usize {
        if self.hardened { order::FEWEST } else { 1 }
    }

    /// What is to be done after a refill of a bin of the real cache. By its thread.
    pub(crate) fn refilled(&self, class: SizeClass) {
        if self.hardened {
            // SAFETY: a refill is made by the bin's thread.
            unsafe { order::shuffle(self.behind.bin(class.bin()), &self.random) };
        }
    }

    /// Blocks of a class that are free, and lie in no bin.
    pub(crate) fn waiting(&self, class: SizeClass) -> usize {
        self.quarantine.level(class)
    }

    /// Usable bytes of all such blocks.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.quarantine.waiting().map(|class| usable(class) as u64).sum()
    }

    /// Sends home what waits in quarantine. Under the lock of the real cache's owner, by the thread
    /// or after it.
    pub(crate) fn flush(&self, owner: &'static Owner, state: &mut OwnerState) {
        self.quarantine.release(|class, block| give_back(owner, state, class, &[block]));
    }

    /// Forgets what waits: the thread is gone, perhaps in the middle of a change. Answers how many.
    pub(crate) fn forget(&self) -> usize {
        let mut lost = 0;
        self.quarantine.release(|_, _| lost += 1);
        lost
    }
}
