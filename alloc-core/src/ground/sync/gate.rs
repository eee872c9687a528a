//! A gate: any number of threads is inside, until one thread closes it and waits for them to leave.

use super::futex::Futex;
use super::seam::{Ordering, fence};

const CLOSED: u32 = 1 << 31;

/// The number of threads inside, and whether the gate is closed.
pub(crate) struct Gate(Futex);

/// The calling thread is inside. It leaves when this is dropped.
#[must_use]
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// An open gate with no thread inside.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Gate {
        Gate(Futex::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Gate {
        Gate(Futex::new(0))
    }

    /// Goes in. `None`: the gate is closed.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        // Acquire: pairs with the Release in `open`.
        let before = self.0.fetch_add(1, Ordering::Acquire);
        let inside = Inside(self);
        (before & CLOSED == 0).then_some(inside)
    }

    /// Closes the gate, and waits until no thread is inside. One thread at a time.
    pub(crate) fn close(&self) {
        let mut now = self.0.fetch_or(CLOSED, Ordering::Relaxed) | CLOSED;
        while now != CLOSED {
            self.0.sleep(now, None);
            now = self.0.load(Ordering::Relaxed);
        }
        // Acquire: pairs with the Release in `drop`, so what the threads inside did is seen.
        fence(Ordering::Acquire);
    }

    /// Opens the gate again.
    pub(crate) fn open(&self) {
        // Release: pairs with the Acquire in `enter`.
        self.0.fetch_and(!CLOSED, Ordering::Release);
    }

    /// Opens the gate in a forked child, where no other thread is left.
    pub(crate) fn open_in_child(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let Inside(gate) = self;
        // Release: pairs with the Acquire in `close`.
        if gate.0.fetch_sub(1, Ordering::Release) > CLOSED {
            gate.0.wake_one();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn sanit_closing_waits_for_those_inside_and_keeps_others_out() {
        static CLOSED_NOW: AtomicBool = AtomicBool::new(false);
        static TESTED: Gate = Gate::new();
        let gate = &TESTED;
        let (first, second) = (gate.enter().unwrap(), gate.enter().unwrap());
        let closer = std::thread::spawn(move || {
            gate.close();
            CLOSED_NOW.store(true, Ordering::Relaxed);
        });
        // Closed from the first moment for other threads, but not done.
        while gate.enter().is_some() {
            std::thread::yield_now();
        }
        drop(first);
        assert!(!CLOSED_NOW.load(Ordering::Relaxed), "one is still inside");
        drop(second);
        closer.join().unwrap();
        assert!(gate.enter().is_none());
        gate.open();
        assert!(gate.enter().is_some());
        assert_eq!(gate.0.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct World {
        gate: Gate,
        /// What each thread inside changes, and the closing thread reads.
        pages: [UnsafeCell<u32>; 2],
    }

    // SAFETY: loom reports each access to the cells that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    #[test]
    fn loom_no_thread_is_inside_a_closed_gate() {
        model(|| {
            let world = Arc::new(World { gate: Gate::new(), pages: [0, 0].map(UnsafeCell::new) });
            let purgers = [0, 1].map(|index| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let Some(_inside) = world.gate.enter() else { return false };
                    // SAFETY: a cell of this thread, as long as it is inside.
                    world.pages[index].with_mut(|page| unsafe { *page += 1 });
                    true
                })
            });
            world.gate.close();
            // SAFETY: no thread is inside, and none comes in.
            let seen = world.pages.each_ref().map(|page| page.with(|page| unsafe { *page }));
            // SAFETY: as above.
            world.pages.iter().for_each(|page| page.with_mut(|page| unsafe { *page += 10 }));
            world.gate.open();
            let went_in = purgers.map(|purger| purger.join().unwrap());
            // SAFETY: the threads have ended.
            let left = world.pages.each_ref().map(|page| page.with(|page| unsafe { *page }));
            for index in [0, 1] {
                assert_eq!(left[index], 10 + u32::from(went_in[index]));
                assert!(seen[index] <= u32::from(went_in[index]));
            }
            assert!(world.gate.enter().is_some());
        });
    }
}
