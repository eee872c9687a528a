//! Models of the lock: every interleaving of a few calls, by loom.
//!
//! The data of the models is a cell that loom watches. It reports accesses that are not ordered,
//! and threads of which all sleep.

use super::*;
use crate::owner::GONE;
use crate::seam::{model, take_number};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Region {
    lock: Lock,
    /// What calls change.
    calls: UnsafeCell<u32>,
}

// SAFETY: loom reports each access to the cell that is not ordered with the others.
unsafe impl Sync for Region {}

// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    fn new() -> Arc<Region> {
        Arc::new(Region { lock: Lock::new(), calls: UnsafeCell::new(0) })
    }

    /// Makes a process that is gone the one in the region, with the mark of a thread.
    fn leave_by_death(&self, mark: usize) {
        self.lock.word.store(GONE, Ordering::Relaxed);
        self.lock.thread.store(mark, Ordering::Relaxed);
    }

    /// What a call does in the region. Returns whether the region was damaged.
    fn use_it(&self, entry: Entry) -> bool {
        // SAFETY: this thread is in the region.
        self.calls.with_mut(|calls| unsafe { *calls += 1 });
        let is_damaged = self.lock.is_damaged();
        self.lock.mended();
        self.lock.leave(entry);
        is_damaged
    }

    fn call(&self, entry: Entry) -> bool {
        assert!(self.lock.enter(entry), "the thread is in no call");
        self.use_it(entry)
    }

    /// A call that calls the region again.
    fn call_twice(&self, entry: Entry) -> bool {
        assert!(self.lock.enter(entry), "the thread is in no call");
        assert!(!self.lock.enter(entry), "the thread is in a call");
        self.use_it(entry)
    }

    /// How many calls there were, in the end.
    fn calls(&self) -> u32 {
        assert!(!self.lock.is_held());
        // SAFETY: all threads have ended.
        self.calls.with(|calls| unsafe { *calls })
    }
}

/// Starts a thread with a number, of a process.
fn spawn(
    region: &Arc<Region>,
    (number, process): (usize, u64),
    f: impl FnOnce(&Region) -> bool + 'static,
) -> thread::JoinHandle<bool> {
    let region = Arc::clone(region);
    thread::spawn(move || {
        be(number, process);
        f(&region)
    })
}

fn be(number: usize, process: u64) {
    take_number(number);
    owner::take(process);
}

/// Two of the three may sleep at once, so each wake-up has to lead to the next one.
fn take_turns(entry: Entry, processes: [u64; 3]) {
    model(move || {
        let region = Region::new();
        let [first, second, third] = processes;
        let others = [(1, first), (2, second)]
            .map(|who| spawn(&region, who, move |region| region.call(entry)));
        be(3, third);
        assert!(!region.call(entry));
        others.into_iter().for_each(|other| assert!(!other.join().unwrap()));
        assert_eq!(region.calls(), 3);
    });
}

#[test]
fn loom_threads_take_turns() {
    take_turns(Entry::Shared, [2, 2, 2]);
}

#[test]
fn loom_processes_take_turns() {
    take_turns(Entry::Processes, [2, 3, 4]);
}

#[test]
fn loom_a_call_from_inside_a_call_is_refused_while_another_thread_comes_in() {
    for entry in [Entry::Shared, Entry::Processes] {
        model(move || {
            let region = Region::new();
            let other = spawn(&region, (1, 2), move |region| region.call_twice(entry));
            be(2, 2);
            region.call_twice(entry);
            other.join().unwrap();
            assert_eq!(region.calls(), 2);
        });
    }
}

#[test]
fn loom_a_visitor_that_tries_a_shared_region_is_in_alone_or_not_at_all() {
    for entry in [Entry::Shared, Entry::Processes] {
        model(move || {
            let region = Region::new();
            let other = spawn(&region, (1, 2), move |region| region.call(entry));
            be(2, 2);
            let is_in = region.lock.try_enter(entry).expect("the thread is in no call");
            if is_in {
                assert_eq!(region.lock.try_enter(entry), None);
                region.use_it(entry);
            }
            other.join().unwrap();
            assert_eq!(region.calls(), 1 + u32::from(is_in));
        });
    }
}

/// The mark of the process that is gone is by chance that of the second thread.
#[test]
fn loom_a_process_that_is_gone_is_followed_by_one_thread_which_learns_of_it() {
    model(|| {
        let region = Region::new();
        let entry = Entry::Processes;
        be(2, 2);
        region.leave_by_death(mark_of_entry(owner::own()));
        let other = spawn(&region, (1, 2), move |region| region.call_twice(entry));
        let was_damaged = region.call(entry);
        assert!(other.join().unwrap() != was_damaged, "one mends it");
        assert_eq!(region.calls(), 2);
    });
}

/// As above, but the lock is freed first.
#[test]
fn loom_the_mark_of_a_process_that_is_gone_is_nobody_s_after_its_lock_was_freed() {
    model(|| {
        let region = Region::new();
        let entry = Entry::Processes;
        be(2, 2);
        region.leave_by_death(mark_of_entry(owner::own()));
        let other = spawn(&region, (1, 2), move |region| {
            region.lock.free_unless_seen();
            region.call_twice(entry)
        });
        region.call(entry);
        other.join().unwrap();
        assert_eq!(region.calls(), 2);
    });
}

/// The mark of a new owner stays, while another thread clears that of the process that is gone.
#[test]
fn loom_a_lock_that_is_freed_while_it_is_taken_over_has_one_owner() {
    model(|| {
        let region = Region::new();
        let entry = Entry::Processes;
        region.leave_by_death(7);
        let other = spawn(&region, (1, 3), move |region| region.call_twice(entry));
        be(2, 2);
        region.lock.free_unless_seen();
        region.call_twice(entry);
        other.join().unwrap();
        assert_eq!(region.calls(), 2);
    });
}
