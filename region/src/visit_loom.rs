//! Models of visits: every interleaving of a few calls, by loom.

use super::*;
use crate::mode;
use crate::seam::{model, take_number};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Region {
    head: Head,
    /// What calls and visits change.
    uses: UnsafeCell<u32>,
}

// SAFETY: loom reports each access to the cell that is not ordered with the others.
unsafe impl Sync for Region {}

// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    fn use_it(&self) {
        // SAFETY: this thread is in the region.
        self.uses.with_mut(|uses| unsafe { *uses += 1 });
    }

    /// A call, if the thread comes in.
    fn call(&self, entry: Entry) -> bool {
        let is_in = self.head.enter(entry);
        if is_in {
            self.use_it();
            self.head.lock().leave(entry);
        }
        is_in
    }

    fn visit(&self, entry: Entry) {
        regions::alone(|| {
            assert!(self.head.visit(entry), "no call stays");
            self.use_it();
            self.head.end_visit(entry);
        });
    }

    /// How often it was used, in the end.
    fn uses(&self) -> u32 {
        assert!(!self.head.lock().is_held() && !self.head.has_flags(VISITED));
        // SAFETY: all threads have ended.
        self.uses.with(|uses| unsafe { *uses })
    }
}

/// A region of one thread, and a thread with the number 1. The caller has the number 2.
fn used_by(f: fn(&Region)) -> (Arc<Region>, thread::JoinHandle<()>) {
    let head = Head::without_memory(mode::BEST);
    let region = Arc::new(Region { head, uses: UnsafeCell::new(0) });
    let user = Arc::clone(&region);
    let user = thread::spawn(move || {
        take_number(1);
        f(&user);
    });
    take_number(2);
    (region, user)
}

#[test]
fn loom_owner_and_visitor_are_never_in_at_once() {
    model(|| {
        let (region, owner) = used_by(|region| {
            assert!(region.call(Entry::Alone));
            assert!(region.call(Entry::Alone));
        });
        region.visit(Entry::Alone);
        owner.join().unwrap();
        assert_eq!(region.uses(), 3);
    });
}

#[test]
fn loom_an_owner_that_waited_for_a_visitor_waits_for_the_next_one() {
    model(|| {
        let (region, owner) = used_by(|region| assert!(region.call(Entry::Alone)));
        region.visit(Entry::Alone);
        region.visit(Entry::Alone);
        owner.join().unwrap();
        assert_eq!(region.uses(), 3);
    });
}

#[test]
fn loom_who_finds_a_shared_region_sees_what_its_owner_did() {
    model(|| {
        let (region, other) = used_by(|region| {
            if region.head.entry() == Entry::Shared {
                assert!(region.call(Entry::Shared));
            }
        });
        assert!(region.call(Entry::Alone));
        assert!(region.head.share_with_malloc());
        other.join().unwrap();
        assert!([1, 2].contains(&region.uses()));
    });
}

#[test]
fn loom_a_region_becomes_a_shared_one_while_its_owner_calls_it() {
    model(|| {
        let (region, owner) = used_by(|region| {
            let entry = region.head.entry();
            // It becomes a shared one between the two looks, but once only.
            assert!(region.call(entry) || region.call(Entry::Shared));
        });
        assert!(region.head.share_with_malloc());
        assert!(region.call(Entry::Shared));
        owner.join().unwrap();
        assert_eq!((region.uses(), region.head.entry()), (2, Entry::Shared));
    });
}
