//! Visits: calls of a thread to which a region does not belong.
//!
//! A region of one thread is entered by a plain store, which a thread beside cannot forestall. So a
//! visitor makes itself known, lets membarrier(2) see to it that the owner knows, and waits until
//! the owner is not in the region:
//!
//! ```text
//!   owner                                visitor
//!     the lock's word: I am in             flags: there is a visitor
//!     fence of the compiler                membarrier: a fence in each thread
//!     flags: a visitor? leave, and wait    the lock's word: wait until nobody is in
//! ```
//!
//! One of the two sees the other one. The word is that of the one thread: an owner that is stopped
//! before the first line may come in and leave while the visitor is there, or long after the region
//! has become a shared one, and changes nothing for those who are in it.
//!
//! The owner pays nothing for it but to look at the flags, which calls of C do anyway. A shared
//! region is tried for a moment, because its visitor must not wait for long: all visits are made
//! under the lock of the list of regions.

use crate::data::Head;
use crate::entry::Entry;
use crate::mode::{MALLOC, PROCESSES, SHARE, VISITED};
use crate::seam::{
    Ordering, compiler_fence, fence_all_threads, now, pause, refused, regions, spin_loop,
};

/// Threads take turns in a region with one of these.
const SHARED: u32 = SHARE | PROCESSES;

/// How often a visitor looks whether it can come in before it lets other threads run.
const LOOKS: usize = if cfg!(loom) { 0 } else { 200 };

/// How many nanoseconds it tries to come in.
const PATIENCE: u64 = 10_000_000;

impl Head {
    /// Enters the region as [`Lock::enter`](crate::lock::Lock::enter), and waits until no visitor
    /// is there. Returns false also for calls from inside a visit.
    #[inline]
    pub fn enter(&self, entry: Entry) -> bool {
        match entry {
            Entry::Alone => self.enter_unless(SHARE) || self.enter_after_visit(),
            shared => self.lock().enter(shared),
        }
    }

    /// Enters a region unless threads take turns in it, a call is in it, it has one of these flags,
    /// or there is a visitor.
    #[inline]
    pub fn enter_unless(&self, flags: u32) -> bool {
        !self.has_flags(flags | SHARED) && !self.lock().is_held_alone() && self.come_in()
    }

    /// The end of [`Head::enter_unless`]. The region may have become a shared one since the flags
    /// were looked at.
    #[inline]
    fn come_in(&self) -> bool {
        self.lock().hold_alone();
        // SeqCst: pairs with the fences that membarrier(2) makes in every thread.
        compiler_fence(Ordering::SeqCst);
        let is_in = !self.has_flags(VISITED | SHARED);
        if !is_in {
            self.lock().leave(Entry::Alone);
        }
        is_in
    }

    #[cold]
    #[inline(never)]
    fn enter_after_visit(&self) -> bool {
        loop {
            // The visitor may have made it a region of several threads.
            if self.lock().is_held() || !self.wait_for_visitor() || self.has_flags(SHARE) {
                return false;
            }
            if self.enter_unless(SHARE) {
                return true;
            }
        }
    }

    /// Waits until the visitor is gone. Returns false if it is this thread.
    fn wait_for_visitor(&self) -> bool {
        while self.has_flags(VISITED) {
            if self.lock().is_of_this_thread() {
                return false;
            }
            // A visitor that is gone was one of the process before a fork.
            if !regions::unless_asked(|| self.see_off()) {
                pause();
            }
        }
        true
    }

    /// Begins a visit. Returns false if a call stays in the region, if this thread is in it, or if
    /// the system refuses membarrier(2) to a process of several threads: then `errno` is `ENOSYS`.
    ///
    /// The caller holds the lock of the list of regions. What the visitor does in the region fails
    /// if it calls the region again.
    pub fn visit(&self, entry: Entry) -> bool {
        match entry {
            Entry::Alone => self.visit_alone(refused),
            shared => soon(|| match self.lock().try_enter(shared) {
                Some(true) => Some(true),
                Some(false) => None,
                None => Some(false),
            }),
        }
    }

    /// Ends a visit.
    pub fn end_visit(&self, entry: Entry) {
        match entry {
            Entry::Alone => self.see_off(),
            shared => self.lock().leave(shared),
        }
    }

    /// Calls `refused` if the system refuses membarrier(2).
    fn visit_alone(&self, refused: impl FnOnce()) -> bool {
        if self.has_flags(VISITED) {
            return false;
        }
        self.lock().note_this_thread(true);
        self.change_mode(VISITED, true);
        let is_fenced = fence_all_threads();
        if !is_fenced {
            refused();
        }
        let is_in = is_fenced && self.is_left_soon();
        if !is_in {
            self.see_off();
        }
        is_in
    }

    fn is_left_soon(&self) -> bool {
        soon(|| self.lock().is_left().then_some(true))
    }

    fn see_off(&self) {
        self.lock().note_this_thread(false);
        self.change_mode(VISITED, false);
    }
}

impl Head {
    /// Makes the region one in which malloc allocates, and threads take turns. Returns false if a
    /// call stays in it, or if the system has no membarrier(2).
    pub fn share_with_malloc(&self) -> bool {
        regions::alone(|| self.share(SHARE | MALLOC))
    }

    /// Sets or clears flags, [`SHARE`] among them. Returns method and flags as they were before.
    ///
    /// `SHARE` stays as it is while a call is in the region, because that call leaves it as it was
    /// entered. Where malloc allocates it stays set.
    pub fn turn(&self, flags: u32, on: bool) -> u32 {
        regions::alone(|| {
            let before = self.mode();
            // Without membarrier(2) there is no visit: the program knows that nobody comes in.
            let may_turn = if on {
                self.share(SHARE) || !self.lock().is_held()
            } else {
                !self.is_of_malloc() && !self.lock().is_held()
            };
            self.change_mode(if may_turn { flags } else { flags & !SHARE }, on);
            before
        })
    }

    /// Sets flags by which threads take turns, or fails as [`Head::share_with_malloc`].
    fn share(&self, flags: u32) -> bool {
        let is_shared = self.entry() != Entry::Alone;
        let may_change = is_shared || self.visit_alone(|| {});
        if may_change {
            self.change_mode(flags, true);
        }
        if may_change && !is_shared {
            self.see_off();
        }
        may_change
    }
}

/// Asks until there is an answer, but not for long: then it is false.
fn soon(mut answer: impl FnMut() -> Option<bool>) -> bool {
    for _ in 0..LOOKS {
        if let Some(answer) = answer() {
            return answer;
        }
        spin_loop();
    }
    let end = now() + PATIENCE;
    loop {
        pause();
        let is_over = now() > end;
        if let Some(answer) = answer() {
            return answer;
        }
        if is_over {
            return false;
        }
    }
}

#[cfg(all(test, loom))]
#[path = "visit_loom.rs"]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mode;
    use core::cell::UnsafeCell;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread;

    #[test]
    fn a_visitor_waits_for_the_owner_and_keeps_it_out() {
        let head = Head::without_memory(mode::BEST);
        assert!(head.enter(Entry::Alone));
        assert!(!head.visit(Entry::Alone), "a call stays in the region");
        assert_eq!(head.mode(), mode::BEST);
        head.lock().leave(Entry::Alone);
        assert!(head.visit(Entry::Alone));
        assert!(!head.enter(Entry::Alone), "the visitor calls the region");
        assert!(!head.visit(Entry::Alone), "the visitor visits the region");
        assert!(!head.enter_unless(0));
        assert_eq!(head.mode(), mode::BEST, "visits are nobody's business");
        head.end_visit(Entry::Alone);
        assert!(head.enter(Entry::Alone));
    }

    #[test]
    fn a_shared_region_is_tried_for_a_moment() {
        let head = Head::without_memory(mode::BEST | mode::SHARE);
        let entry = head.entry();
        assert!(head.enter(entry) && !head.visit(entry));
        let visits = || thread::scope(|scope| scope.spawn(|| head.visit(entry)).join().unwrap());
        assert!(!visits());
        head.lock().leave(entry);
        assert!(visits());
    }

    #[test]
    fn the_lock_of_a_shared_region_is_not_taken_for_one_thread() {
        let head = Head::without_memory(mode::BEST | mode::SHARE);
        assert!(!head.enter_unless(0));
        assert!(head.enter(head.entry()));
        assert!(!head.enter_unless(0));
        assert!(head.lock().is_held());
    }

    #[test]
    fn an_owner_that_comes_too_late_leaves_the_lock_of_others_as_it_is() {
        let head = Head::without_memory(mode::BEST);
        let (shared, in_another) = (Entry::Shared, |f: &(dyn Fn() -> bool + Sync)| {
            thread::scope(|scope| scope.spawn(f).join().unwrap())
        });
        // The owner has seen the flags of a region of one thread, and stores next.
        assert!(!head.has_flags(SHARED | VISITED));
        assert!(in_another(&|| head.share_with_malloc()));
        assert!(in_another(&|| head.lock().enter(shared)));
        assert!(!head.come_in());
        assert!(head.lock().is_held());
        assert_eq!(head.lock().try_enter(shared), Some(false), "another thread is in");
    }

    #[test]
    fn a_call_in_the_region_and_malloc_keep_it_shared_or_not() {
        let head = Head::without_memory(mode::BEST);
        assert!(head.enter(Entry::Alone));
        assert_eq!(head.turn(SHARE | mode::TRACE, true), mode::BEST);
        assert_eq!(head.mode(), mode::BEST | mode::TRACE);
        head.lock().leave(Entry::Alone);
        head.turn(SHARE, true);
        assert!(head.enter(head.entry()));
        assert_eq!(head.turn(SHARE | mode::TRACE, false), mode::BEST | SHARE | mode::TRACE);
        assert_eq!(head.mode(), mode::BEST | SHARE);
        head.lock().leave(Entry::Shared);
        head.turn(SHARE, false);
        assert_eq!(head.mode(), mode::BEST);
        assert!(head.share_with_malloc());
        head.turn(SHARE, false);
        assert_eq!(head.mode(), mode::BEST | SHARE);
    }

    #[test]
    fn owner_and_threads_of_malloc_are_never_in_at_once() {
        struct Region(Head, UnsafeCell<usize>);
        // SAFETY: the number is changed by who is in the region.
        unsafe impl Sync for Region {}
        const CALLS: usize = 200;
        let add = |region: &Region, entry| {
            let is_in = region.0.enter(entry);
            if is_in {
                // SAFETY: this thread is in the region.
                unsafe { *region.1.get() += 1 };
                region.0.lock().leave(entry);
            }
            is_in
        };
        for _ in 0..200 {
            let region = Region(Head::without_memory(mode::BEST), UnsafeCell::new(0));
            let malloc = || {
                let region = &region;
                assert!(region.0.share_with_malloc());
                for _ in 0..CALLS {
                    assert!(add(region, Entry::Shared));
                }
            };
            thread::scope(|scope| {
                let malloc = scope.spawn(malloc);
                for _ in 0..CALLS {
                    // The region becomes a shared one between the two looks, but once only.
                    assert!(
                        add(&region, region.0.entry()) || add(&region, Entry::Shared),
                        "the owner is in no call"
                    );
                }
                // The thread sanitizer sees this join, and not the one at the end of the scope.
                assert!(malloc.join().is_ok());
            });
            assert_eq!(region.1.into_inner(), 2 * CALLS);
        }
    }

    #[test]
    fn a_visitor_that_did_not_come_along_through_a_fork_is_forgotten() {
        let head = Head::without_memory(mode::BEST);
        head.change_mode(VISITED, true);
        assert!(head.enter(Entry::Alone));
    }

    #[test]
    fn owner_and_visitor_are_never_in_at_once() {
        struct Region(Head, UnsafeCell<usize>);
        // SAFETY: the number is changed by who is in the region.
        unsafe impl Sync for Region {}
        let region = Region(Head::without_memory(mode::BEST), UnsafeCell::new(0));
        let (ends, visits) = (AtomicBool::new(false), AtomicUsize::new(0));
        let add = |region: &Region| {
            // SAFETY: this thread is in the region.
            unsafe { *region.1.get() += 1 };
        };
        let visitor = || {
            let region = &region;
            while !ends.load(Ordering::Relaxed) {
                regions::alone(|| {
                    if region.0.visit(Entry::Alone) {
                        add(region);
                        visits.fetch_add(1, Ordering::Relaxed);
                        region.0.end_visit(Entry::Alone);
                    }
                });
                thread::yield_now();
            }
        };
        let mut calls = 0;
        thread::scope(|scope| {
            let visitor = scope.spawn(visitor);
            while calls < 100_000 || visits.load(Ordering::Relaxed) < 20 {
                assert!(region.0.enter(Entry::Alone));
                add(&region);
                region.0.lock().leave(Entry::Alone);
                calls += 1;
            }
            ends.store(true, Ordering::Relaxed);
            // The thread sanitizer sees this join, and not the one at the end of the scope.
            assert!(visitor.join().is_ok());
        });
        assert_eq!(region.1.into_inner(), calls + visits.into_inner());
    }
}
