//! The published snapshot: the totals that all `stats.*` keys answer from until the next write to
//! `epoch`.
//!
//! The lock names the *process* that holds it. A fork while another thread holds it leaves the
//! child with a lock whose holder does not exist there; the child sees that the number is not its
//! own, takes the lock over and takes a new snapshot, since the old one may be half written. So no
//! fork handler is needed, and none has to be registered (registering one allocates).
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, Ordering};
use lumalloc::observe::{self, Totals};

/// Totals of one moment.
#[derive(Clone, Copy)]
pub struct Snapshot {
    /// How many snapshots were taken, this one included.
    pub epoch: u64,
    /// What was counted.
    pub totals: Totals,
}

/// A place to publish snapshots, with its lock.
struct Publisher {
    /// Process number of the lock's holder; 0 when free.
    holder: AtomicI32,
    /// None until first used.
    published: UnsafeCell<Option<Snapshot>>,
}

// SAFETY: `published` is only touched by `with`, between taking and releasing `holder`.
unsafe impl Sync for Publisher {}

/// The one that the namespace reads.
static PUBLISHER: Publisher = Publisher::new();

/// Releases the lock when it goes out of scope.
struct Held<'a>(&'a AtomicI32);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder, in `replace_holder`.
        self.0.store(0, Ordering::Release);
    }
}

impl Publisher {
    const fn new() -> Self {
        Publisher { holder: AtomicI32::new(0), published: UnsafeCell::new(None) }
    }

    /// Takes the lock; the flag says that it was left by a process that is not this one.
    fn take_lock(&self) -> (Held<'_>, bool) {
        // SAFETY: getpid has no requirements and cannot fail.
        let this_process = unsafe { libc::getpid() };
        loop {
            let holder = match self.replace_holder(0, this_process) {
                Ok(_) => return (Held(&self.holder), false),
                Err(holder) => holder,
            };
            let orphaned = holder != 0 && holder != this_process;
            if orphaned && self.replace_holder(holder, this_process).is_ok() {
                return (Held(&self.holder), true);
            }
            // SAFETY: sched_yield has no requirements.
            unsafe { libc::sched_yield() };
        }
    }

    /// Puts `to` in the place of `from`; the error is who holds the lock.
    fn replace_holder(&self, from: i32, to: i32) -> Result<i32, i32> {
        // Acquire: pairs with the Release of the holder before, in `Held::drop`.
        self.holder.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Replaces the published snapshot by what `replace` makes of it; there is none at first, or
    /// after a fork in the middle of a refresh.
    fn with(&self, replace: impl FnOnce(Option<Snapshot>) -> Snapshot) -> Snapshot {
        let (_held, orphaned) = self.take_lock();
        // SAFETY: the lock is held, so this is the only reference; it ends before `_held` is
        // dropped.
        let published = unsafe { &mut *self.published.get() };
        let after = replace(published.filter(|_| !orphaned));
        *published = Some(after);
        after
    }

    fn current(&self) -> Snapshot {
        self.with(|published| published.unwrap_or_else(|| take(None)))
    }

    fn refresh(&self) -> Snapshot {
        self.with(take)
    }
}

/// Counts everything now.
fn take(before: Option<Snapshot>) -> Snapshot {
    let epoch = before.map_or(0, |snapshot| snapshot.epoch) + 1;
    Snapshot { epoch, totals: observe::totals() }
}

/// The published snapshot; the first call takes the first one.
pub fn current() -> Snapshot {
    PUBLISHER.current()
}

/// Takes a new snapshot and publishes it.
pub fn refresh() -> Snapshot {
    PUBLISHER.refresh()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_counts_refreshes() {
        let publisher = Publisher::new();
        assert_eq!(publisher.current().epoch, 1);
        assert_eq!(publisher.current().epoch, 1);
        assert_eq!(publisher.refresh().epoch, 2);
        assert_eq!(publisher.current().epoch, 2);
    }

    #[test]
    fn a_lock_that_another_process_left_is_taken_over_and_the_count_starts_anew() {
        let publisher = Publisher::new();
        publisher.refresh();
        publisher.refresh();
        publisher.holder.store(i32::MAX, Ordering::Relaxed);
        assert_eq!(publisher.current().epoch, 1, "an inherited snapshot may be half written");
        assert_eq!(publisher.holder.load(Ordering::Relaxed), 0);
    }
}
