//! The published snapshot: all `stats.*` keys read from it until the next write to `epoch`.
//!
//! The snapshot is made in place, in static memory, and read under the lock by [`read`]. Only the
//! values asked for are copied. What the system is asked for, which takes milliseconds, is asked
//! without the lock ([`rss_of`], [`segments`]).
//!
//! If the process forks while another thread holds the lock, the child takes it over
//! ([`TakeoverMutex`]), and takes a new snapshot, because the old one may be half written.
use lumalloc::observe::{self, ArenaStats, Detail, MutexStats, TakeoverMutex, Totals};

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

    /// The moment and the totals, as a value.
    #[must_use]
    pub fn copied(&self) -> Snapshot {
        Snapshot { epoch: self.epoch, totals: *self.totals() }
    }

    fn refresh(&mut self, mutex: MutexStats) {
        self.detail.refresh();
        self.epoch += 1;
        self.mutex = mutex;
        (self.rss, self.segments) = (None, None);
    }
}

/// A place to publish snapshots, with its lock.
struct Publisher(TakeoverMutex<Published>);

/// The publisher that the namespace reads.
static PUBLISHER: Publisher = Publisher::new();

impl Publisher {
    const fn new() -> Self {
        Publisher(TakeoverMutex::new(Published {
            epoch: 0,
            detail: Detail::new(),
            mutex: MutexStats::EMPTY,
            rss: None,
            segments: None,
        }))
    }

    /// Calls `look` on the published snapshot under the lock. If the lock was left behind by
    /// another process, the snapshot does not count: its epoch is 0, as at first.
    fn with<R>(&self, look: impl FnOnce(&mut Published) -> R) -> R {
        self.0.with(|published, was_left_behind| {
            if was_left_behind {
                published.epoch = 0;
            }
            look(published)
        })
    }

    fn read<R>(&self, look: impl FnOnce(&Published) -> R) -> R {
        self.with(|published| {
            if published.epoch == 0 {
                published.refresh(self.0.stats());
            }
            look(published)
        })
    }

    fn renew<R>(&self, look: impl FnOnce(&Published) -> R) -> R {
        self.with(|published| {
            published.refresh(self.0.stats());
            look(published)
        })
    }

    /// Returns what `kept` has of a snapshot. If that is nothing, calls `ask` without the lock, and
    /// keeps the answer unless there is a newer snapshot by then. Threads that read at once may
    /// each ask, but all get the first answer.
    fn answer<T: Copy>(
        &self,
        of: &Snapshot,
        kept: fn(&mut Published) -> &mut Option<T>,
        ask: impl FnOnce(&Totals) -> T,
    ) -> T {
        let is_of = |published: &Published| published.epoch == of.epoch;
        let known = self.with(|now| if is_of(now) { *kept(now) } else { None });
        known.unwrap_or_else(|| {
            let asked = ask(&of.totals);
            self.with(|now| if is_of(now) { *kept(now).get_or_insert(asked) } else { asked })
        })
    }
}

/// Asks the system for the physical memory.
fn ask_rss(totals: &Totals) -> Rss {
    let ours = observe::heap_resident() + totals.metadata;
    let process = observe::process_resident().unwrap_or(ours).max(ours);
    let untouched = ours.wrapping_sub(totals.resident) as isize;
    Rss { process, ours, not_ours: process - ours, untouched }
}

/// Calls `look` on the published snapshot; the first call takes the first snapshot. `look` must not
/// use the namespace, nor allocate, because code that runs in an allocation may use the namespace.
pub fn read<R>(look: impl FnOnce(&Published) -> R) -> R {
    PUBLISHER.read(look)
}

/// Physical memory, as the system reports it. The system is asked once for each snapshot, at the
/// first call, while other threads read the snapshot.
#[must_use]
pub fn rss() -> Rss {
    rss_of(&current())
}

/// As [`rss`], for a snapshot that was taken before. If it is not the published one any more, the
/// system is asked.
#[must_use]
pub fn rss_of(snapshot: &Snapshot) -> Rss {
    PUBLISHER.answer(snapshot, |published| &mut published.rss, ask_rss)
}

/// How many ranges of addresses the allocator has, counted once for each snapshot, while other
/// threads read it.
#[must_use]
pub fn segments() -> usize {
    PUBLISHER.answer(&current(), |published| &mut published.segments, |_| observe::segments())
}

/// The totals of the published snapshot.
#[must_use]
pub fn current() -> Snapshot {
    read(Published::copied)
}

/// Takes a new snapshot and publishes it.
pub fn refresh() -> Snapshot {
    renew(Published::copied)
}

/// Takes a new snapshot, publishes it and calls `look` on it. As in [`read`], `look` must neither
/// use the namespace nor allocate.
pub fn renew<R>(look: impl FnOnce(&Published) -> R) -> R {
    PUBLISHER.renew(look)
}

/// Sets the statistics of all locks to zero, including the lock of the namespace. Source:
/// jemalloc(3), `stats.mutexes.reset`.
pub fn reset_mutexes() {
    observe::reset_mutexes();
    PUBLISHER.with(|_| PUBLISHER.0.reset_stats());
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::boxed::Box;
    use std::sync::mpsc;
    use std::thread;

    fn publisher() -> Box<Publisher> {
        Box::new(Publisher::new())
    }

    #[test]
    fn the_epoch_counts_refreshes() {
        let publisher = publisher();
        let epoch = || publisher.read(Published::epoch);
        assert_eq!((epoch(), epoch()), (1, 1));
        assert_eq!(publisher.renew(Published::epoch), 2);
        assert_eq!(epoch(), 2);
    }

    /// Calls `wanted` while another thread holds the lock.
    fn while_it_is_held(publisher: &Publisher, wanted: impl FnOnce()) {
        let (held, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let hold = |_: &Published| {
            held.store(true, Ordering::Relaxed);
            while !done.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| publisher.read(hold));
            while !held.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            wanted();
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_child_takes_over_a_lock_that_it_cannot_get_and_the_count_starts_anew() {
        let publisher = publisher();
        publisher.renew(|_| ());
        publisher.renew(|_| ());
        while_it_is_held(&publisher, || {
            // SAFETY: the child calls only this library and `_exit`.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                let epochs = [publisher.read(Published::epoch), publisher.read(Published::epoch)];
                // SAFETY: the call ends the process.
                unsafe { libc::_exit(if epochs == [1, 1] { 0 } else { 1 }) };
            }
            let mut status = -1;
            // SAFETY: the child is this thread's.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "an inherited snapshot may be half written");
        });
        assert_eq!(publisher.read(Published::epoch), 2);
    }

    /// Returns whether a thread of this process sleeps. Source: proc(5), `/proc/pid/stat`.
    fn sleeps(thread: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(std::format!("/proc/self/task/{thread}/stat"));
        stat.is_ok_and(|stat| stat.contains(") S "))
    }

    /// A real-time thread that yields instead keeps the holder from running.
    #[test]
    fn who_waits_for_the_snapshot_sleeps() {
        let publisher = publisher();
        let (thread_number, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let wait = || {
                // SAFETY: the call has no arguments.
                thread_number.send(unsafe { libc::gettid() }).unwrap();
                publisher.read(Published::epoch)
            };
            while_it_is_held(&publisher, || {
                scope.spawn(wait);
                let waiter = waiting.recv().unwrap();
                while publisher.0.stats().max_num_thds == 0 || !sleeps(waiter) {
                    thread::yield_now();
                }
            });
        });
        publisher.renew(|published| {
            let mutex = published.mutex();
            assert_eq!((mutex.num_ops, mutex.num_wait, mutex.max_num_thds), (3, 1, 1));
            assert!(mutex.total_wait_time > 0 && mutex.max_wait_time == mutex.total_wait_time);
        });
    }

    #[test]
    fn the_system_is_asked_without_the_lock_and_once_for_a_snapshot() {
        let publisher = publisher();
        let ask = |of: &Snapshot, answer: usize, meanwhile: &dyn Fn()| {
            fn kept(published: &mut Published) -> &mut Option<usize> {
                &mut published.segments
            }
            publisher.answer(of, kept, |_| {
                meanwhile();
                answer
            })
        };
        let not_asked = || -> () { panic!("the answer is kept") };
        let first = publisher.read(Published::copied);
        let another = || assert_eq!(ask(&first, 1, &|| ()), 1);
        assert_eq!(ask(&first, 2, &another), 1, "another thread asked, and was answered first");
        assert_eq!(ask(&first, 3, &not_asked), 1);
        let second = publisher.renew(Published::copied);
        let renew = || publisher.renew(|_| ());
        assert_eq!(ask(&second, 4, &renew), 4);
        let third = publisher.read(Published::copied);
        assert_eq!((second.epoch, third.epoch), (2, 3));
        assert_eq!(ask(&third, 5, &|| ()), 5, "what was asked for the second is not the third's");
        assert_eq!((ask(&second, 6, &|| ()), ask(&third, 7, &not_asked)), (6, 5));
    }

    #[test]
    fn the_namespace_s_own_lock_is_counted_up_to_the_snapshot() {
        let publisher = publisher();
        (0..5).for_each(|_| _ = publisher.read(Published::epoch));
        publisher.renew(|_| ());
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
