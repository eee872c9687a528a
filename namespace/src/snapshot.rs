//! The published snapshot: all `stats.*` keys read from it until the next write to `epoch`.
//!
//! The snapshot is made in place, in static memory, and read under the lock by [`read`]. Only the
//! values asked for are copied.
//!
//! The lock names the *generation of forks* that holds it. If the process forks while another
//! thread holds the lock, the holder does not exist in the child. The child sees that the number is
//! not its own, takes the lock over and takes a new snapshot, because the old one may be half
//! written.
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use lumalloc::observe::{self, ArenaStats, Detail, MutexStats, Totals};

/// The index that stands for all arenas. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
pub const ALL: usize = lumalloc::control::ARENAS_ALL as usize;
/// The index that stands for the destroyed arenas. Source: jemalloc(3), `MALLCTL_ARENAS_DESTROYED`.
pub const DESTROYED: usize = ALL + 1;

/// The totals of one moment.
#[derive(Clone, Copy)]
pub struct Snapshot {
    /// How many snapshots were taken, this one included.
    pub epoch: u64,
    /// The sums over all arenas and caches.
    pub totals: Totals,
}

/// All statistics of one moment.
pub struct Published {
    epoch: u64,
    detail: Detail,
    /// The lock of the namespace, as of the snapshot.
    mutex: MutexStats,
    now: MutexStats,
    last_holder: usize,
    /// Filled when it is first read.
    rss: Option<Rss>,
    /// Ranges of addresses; counted when they are first read.
    segments: Option<usize>,
}

/// Physical memory in bytes, as the system reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rss {
    /// Of the whole process.
    pub process: usize,
    /// For this allocator, including its records.
    pub ours: usize,
    /// For the rest of the process.
    pub not_ours: usize,
    /// `ours` minus the bytes that the allocator counts as resident: negative or 0, as a rule.
    pub untouched: isize,
}

impl Published {
    /// How many snapshots were taken, this one included.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The sums over all arenas.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        self.detail.totals()
    }

    /// The statistics of every arena.
    #[must_use]
    pub fn detail(&self) -> &Detail {
        &self.detail
    }

    /// The statistics of the lock of the namespace.
    #[must_use]
    pub fn mutex(&self) -> &MutexStats {
        &self.mutex
    }

    /// The statistics that an index in a name stands for: of one arena, [`ALL`] or [`DESTROYED`].
    /// `None` if there was no such arena at the snapshot.
    #[must_use]
    pub fn arena(&self, index: usize) -> Option<&ArenaStats> {
        match index {
            ALL => self.detail.merged(),
            DESTROYED => self.detail.destroyed(),
            _ => self.detail.arena(index),
        }
    }

    fn refresh(&mut self) {
        self.detail.refresh();
        self.epoch += 1;
        self.mutex = self.now;
        (self.rss, self.segments) = (None, None);
    }

    /// Physical memory, as the system reports it. The system is asked now unless it was before.
    pub fn rss(&mut self) -> Rss {
        let totals = *self.totals();
        *self.rss.get_or_insert_with(|| {
            let ours = observe::heap_resident() + totals.metadata;
            let process = observe::process_resident().unwrap_or(ours).max(ours);
            let untouched = ours.wrapping_sub(totals.resident) as isize;
            Rss { process, ours, not_ours: process - ours, untouched }
        })
    }

    /// How many ranges of addresses the allocator has. They are counted now unless they were
    /// before.
    pub fn segments(&mut self) -> usize {
        *self.segments.get_or_insert_with(observe::segments)
    }

    fn note_holder(&mut self, tries: u64) {
        self.now.num_ops += 1;
        self.now.num_spin_acq += u64::from(tries > 0);
        let me = observe::thread_number();
        if self.last_holder != me {
            self.last_holder = me;
            self.now.num_owner_switch += 1;
        }
    }
}

/// A place to publish snapshots, with its lock.
struct Publisher {
    /// The generation of the lock's holder plus 1; 0 when the lock is free.
    holder: AtomicU64,
    published: UnsafeCell<Published>,
}

// SAFETY: `published` is only touched by `with`, between taking and releasing `holder`.
unsafe impl Sync for Publisher {}

/// The publisher that the namespace reads.
static PUBLISHER: Publisher = Publisher::new();

/// Releases the lock when it goes out of scope.
struct Held<'a>(&'a AtomicU64);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder, in `replace_holder`.
        self.0.store(0, Ordering::Release);
    }
}

impl Publisher {
    const fn new() -> Self {
        let published = Published {
            epoch: 0,
            detail: Detail::new(),
            mutex: MutexStats::EMPTY,
            now: MutexStats::EMPTY,
            last_holder: 0,
            rss: None,
            segments: None,
        };
        Publisher { holder: AtomicU64::new(0), published: UnsafeCell::new(published) }
    }

    /// Takes the lock. Returns the number of failed tries, and whether the lock was left behind by
    /// another process, the parent of a fork.
    fn take_lock(&self) -> (Held<'_>, u64, bool) {
        let this_process = observe::fork_generation() + 1;
        let mut tries = 0;
        loop {
            let holder = match self.replace_holder(0, this_process) {
                Ok(_) => return (Held(&self.holder), tries, false),
                Err(holder) => holder,
            };
            let orphaned = holder != 0 && holder != this_process;
            if orphaned && self.replace_holder(holder, this_process).is_ok() {
                return (Held(&self.holder), tries, true);
            }
            tries += 1;
            // SAFETY: sched_yield has no requirements.
            unsafe { libc::sched_yield() };
        }
    }

    /// Replaces the holder `from` by `to`. The error is the present holder.
    fn replace_holder(&self, from: u64, to: u64) -> Result<u64, u64> {
        // Acquire: pairs with the Release of the previous holder, in `Held::drop`.
        self.holder.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Calls `look` on the published snapshot under the lock. If the lock was left behind by
    /// another process, the snapshot does not count: its epoch is 0, as at first.
    fn with<R>(&self, look: impl FnOnce(&mut Published) -> R) -> R {
        let (_held, tries, orphaned) = self.take_lock();
        // SAFETY: the lock is held, so this is the only reference; it ends before `_held` is
        // dropped.
        let published = unsafe { &mut *self.published.get() };
        published.note_holder(tries);
        if orphaned {
            published.epoch = 0;
        }
        look(published)
    }

    fn with_one<R>(&self, look: impl FnOnce(&mut Published) -> R) -> R {
        self.with(|published| {
            if published.epoch == 0 {
                published.refresh();
            }
            look(published)
        })
    }

    fn read<R>(&self, look: impl FnOnce(&Published) -> R) -> R {
        self.with_one(|published| look(published))
    }

    fn refresh(&self) -> Snapshot {
        self.with(|published| {
            published.refresh();
            copied(published)
        })
    }
}

fn copied(published: &Published) -> Snapshot {
    Snapshot { epoch: published.epoch, totals: *published.totals() }
}

/// Calls `look` on the published snapshot; the first call takes the first snapshot. `look` must not
/// use the namespace, nor allocate, because code that runs in an allocation may use the namespace.
pub fn read<R>(look: impl FnOnce(&Published) -> R) -> R {
    PUBLISHER.read(look)
}

/// Physical memory, as the system reports it. The system is asked once for each snapshot, at the
/// first call.
#[must_use]
pub fn rss() -> Rss {
    PUBLISHER.with_one(Published::rss)
}

/// How many ranges of addresses the allocator has, counted once for each snapshot.
#[must_use]
pub fn segments() -> usize {
    PUBLISHER.with_one(Published::segments)
}

/// The totals of the published snapshot.
#[must_use]
pub fn current() -> Snapshot {
    read(copied)
}

/// Takes a new snapshot and publishes it.
pub fn refresh() -> Snapshot {
    PUBLISHER.refresh()
}

/// Takes a new snapshot, publishes it and calls `look` on it. As in [`read`], `look` must neither
/// use the namespace nor allocate.
pub fn renew<R>(look: impl FnOnce(&mut Published) -> R) -> R {
    PUBLISHER.with(|published| {
        published.refresh();
        look(published)
    })
}

/// Sets the statistics of all locks to zero, including the lock of the namespace. Source:
/// jemalloc(3), `stats.mutexes.reset`.
pub fn reset_mutexes() {
    observe::reset_mutexes();
    PUBLISHER.with(|published| published.now = MutexStats::EMPTY);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    fn publisher() -> Box<Publisher> {
        Box::new(Publisher::new())
    }

    #[test]
    fn the_epoch_counts_refreshes() {
        let publisher = publisher();
        let epoch = || publisher.read(Published::epoch);
        assert_eq!((epoch(), epoch()), (1, 1));
        assert_eq!(publisher.refresh().epoch, 2);
        assert_eq!(epoch(), 2);
    }

    #[test]
    fn a_lock_that_another_process_left_is_taken_over_and_the_count_starts_anew() {
        let publisher = publisher();
        publisher.refresh();
        publisher.refresh();
        publisher.holder.store(u64::MAX, Ordering::Relaxed);
        let epoch = publisher.read(Published::epoch);
        assert_eq!(epoch, 1, "an inherited snapshot may be half written");
        assert_eq!(publisher.holder.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_namespace_s_own_lock_is_counted_up_to_the_snapshot() {
        let publisher = publisher();
        (0..5).for_each(|_| _ = publisher.read(Published::epoch));
        publisher.refresh();
        publisher.read(|published| {
            assert_eq!(published.mutex().num_ops, 6);
            assert_eq!(published.mutex().num_owner_switch, 1);
        });
    }

    #[test]
    fn arenas_by_index() {
        let publisher = publisher();
        publisher.read(|published| {
            let pages = |index| published.arena(index).map(|arena| arena.space.pactive);
            assert_eq!(pages(ALL), Some(published.totals().active / lumalloc::PAGE));
            assert!(pages(0).is_some() && pages(4094).is_none() && pages(4098).is_none());
        });
    }
}
