//! Which blocks of a cache's bins another thread has taken out.
//!
//! ```text
//!   base                       sp
//!    ▼                          ▼
//!   NULL │ gone │ gone │ gone │ block │ (room)
//! ```
//! The other thread changes neither the bin nor its array, because the bin's thread may be in the
//! middle of one operation, which takes the newest block or adds one above it. So the newest block
//! stays, and the number of those below that are gone is noted here. The bin's thread makes the
//! bin whole before its next operation: see [`emptying`](super::emptying). Where nothing is gone,
//! the mark leads the thread to a slow path for another reason: see [`rousing`](super::rousing).

use crate::front::bins::cache_bin::CacheBin;
use crate::ground::size_class::{CLASSES, SizeClass};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// How long a cache's thread has done nothing, as far as was seen. Times are in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Rest {
    /// A number that changes when the thread does something.
    print: u64,
    /// When the number was first seen.
    pub(crate) since: u64,
    /// When the cache was looked at last.
    pub(crate) looked: u64,
}

/// What another thread has taken out of the bins of one cache.
pub(crate) struct Emptied {
    /// Whether another thread has taken blocks, is about to, or rouses the thread.
    is_set: AtomicBool,
    /// How many of the oldest blocks of each bin are gone. Written under the owner's lock.
    gone: [AtomicU16; CLASSES],
    /// Under the registry's lock.
    rest: Cell<Rest>,
}

impl Rest {
    /// Returns what is known after a look at `now`.
    pub(crate) fn seen(self, print: u64, now: u64) -> Rest {
        let since = if print == self.print { self.since } else { now };
        Rest { print, since, looked: now }
    }
}

impl Emptied {
    /// Creates the note that nothing was taken.
    pub(super) const fn nothing() -> Emptied {
        Emptied {
            is_set: AtomicBool::new(false),
            gone: [const { AtomicU16::new(0) }; CLASSES],
            rest: Cell::new(Rest { print: 0, since: 0, looked: 0 }),
        }
    }

    /// Returns whether another thread has taken blocks, is about to, or rouses the thread.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Acquire: pairs with the store in `set` and the membarrier after it. What the thread does
        // with its bins stays behind this load.
        self.is_set.load(Ordering::Acquire)
    }

    /// Sets whether another thread is about to take blocks, or rouses the thread.
    pub(super) fn set(&self, is_set: bool) {
        // SeqCst: before the membarrier that follows, which pairs with `is_set`. As a Release it
        // pairs with the swap in `settle`.
        self.is_set.store(is_set, Ordering::SeqCst);
    }

    /// Returns how long the thread has done nothing. Called under the registry's lock.
    pub(crate) fn rest(&self) -> Rest {
        self.rest.get()
    }

    /// Notes how long the thread has done nothing. Called under the registry's lock.
    pub(crate) fn set_rest(&self, rest: Rest) {
        self.rest.set(rest);
    }

    /// Returns how many of the oldest blocks of a class are gone.
    #[inline]
    pub(crate) fn gone(&self, class: SizeClass) -> usize {
        self.gone.get(class.index()).map_or(0, |gone| usize::from(gone.load(Ordering::Relaxed)))
    }

    /// Notes how many of the oldest blocks of a class are gone. Called under the owner's lock.
    pub(super) fn set_gone(&self, class: SizeClass, count: usize) {
        if let Some(gone) = self.gone.get(class.index()) {
            gone.store(count as u16, Ordering::Relaxed);
        }
    }

    /// Drops the blocks that are gone from their bins. Called by the bins' thread under the owner's
    /// lock.
    #[cold]
    #[inline(never)]
    pub(super) fn settle<'a>(&self, bin: impl Fn(SizeClass) -> &'a CacheBin) {
        for class in SizeClass::all() {
            let (bin, gone) = (bin(class), self.gone(class));
            // SAFETY: the caller is the bin's thread, and the oldest blocks are gone.
            unsafe { bin.drop_oldest(gone.min(bin.level())) };
            self.set_gone(class, 0);
        }
        // AcqRel: pairs with the store in `set`. The thread sees what another one did before it
        // set the mark, or leaves a mark that is set later.
        self.is_set.swap(false, Ordering::AcqRel);
    }

    /// Returns whether blocks are gone. Called under the registry's lock.
    pub(crate) fn has_gone(&self) -> bool {
        SizeClass::all().any(|class| self.gone(class) > 0)
    }

    /// Forgets what was taken, where the cache's thread does not exist any more.
    pub(crate) fn forget(&self) {
        SizeClass::all().for_each(|class| self.set_gone(class, 0));
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::front::life::give_back;
    use crate::front::supply::refill;

    /// The bins of a cache with some free blocks, as another thread and then their own see them.
    #[test]
    fn what_is_gone_is_counted_once_and_dropped_by_the_bin_s_thread() {
        let (cache, class) = (new_cache(), SizeClass::of(64));
        let blocks: Vec<_> = (0..20).map(|_| refill::request(cache, class)).collect();
        for block in blocks {
            if !cache.bin(class).put(block) {
                refill::overflow(cache, class, block);
            }
        }
        let level = cache.bin(class).level();
        assert!(level > 3, "{level}");
        let newest = cache.bin(class).base().wrapping_add(level);
        // SAFETY: the slot of the newest block.
        let newest = unsafe { *newest };

        cache.emptied.set(true);
        cache.emptied.set_gone(class, level - 1);
        assert_eq!((cache.bin(class).level(), cache.in_bin(class)), (level, 1));
        let mut seen = Vec::new();
        cache.bin(class).for_each_seen(cache.emptied.gone(class), |block| seen.push(block));
        assert_eq!(seen, [newest]);
        cache.ready();
        assert_eq!((cache.bin(class).level(), cache.in_bin(class)), (1, 1));
        assert!(!cache.emptied.is_set() && cache.emptied.gone(class) == 0);
        assert_eq!(cache.bin(class).pop_uncounted(), newest);
        give_back::empty(cache);
        end(cache);
    }

    #[test]
    fn a_thread_rests_as_long_as_its_number_stays() {
        let rest = Emptied::nothing().rest().seen(7, 100).seen(7, 150);
        assert_eq!((rest.since, rest.looked), (100, 150));
        let rest = rest.seen(8, 170);
        assert_eq!((rest.since, rest.looked), (170, 170));
    }
}
