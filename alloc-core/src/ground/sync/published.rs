//! A pointer that one thread sets once, to what it has made, for all threads.

use super::seam::{AtomicPtr, Ordering};
use core::ptr;

/// Null, and later what was published. Zeros are a valid one.
#[cfg_attr(not(loom), repr(transparent))]
pub(crate) struct Published<T>(AtomicPtr<T>);

impl<T> Published<T> {
    /// Nothing is published yet.
    #[cfg(not(loom))]
    pub(crate) const fn nothing() -> Published<T> {
        Published(AtomicPtr::new(ptr::null_mut()))
    }

    #[cfg(loom)]
    pub(crate) fn nothing() -> Published<T> {
        Published(AtomicPtr::new(ptr::null_mut()))
    }

    /// What was published, or null. What its maker wrote before is seen.
    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        // Acquire: pairs with the Release in `publish`.
        self.0.load(Ordering::Acquire)
    }

    /// Publishes what was made. Returns `false` if another thread was first.
    pub(crate) fn publish(&self, made: *mut T) -> bool {
        // Release: pairs with the Acquire in `get`.
        self.0.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Two parts that two threads make, of which one is to be published.
    struct World {
        place: Published<UnsafeCell<u32>>,
        made: [UnsafeCell<u32>; 2],
    }

    // SAFETY: loom reports each access to the cells that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        /// Uses the part that is published, or makes it. Returns what the part says.
        fn use_it(&self, index: usize) -> u32 {
            let mut part = self.place.get();
            if part.is_null() {
                let own = &self.made[index];
                // SAFETY: nobody else knows the part.
                own.with_mut(|own| unsafe { *own = 7 });
                if !self.place.publish(core::ptr::from_ref(own).cast_mut()) {
                    // It is made use of elsewhere.
                    // SAFETY: nobody else knows the part.
                    own.with_mut(|own| unsafe { *own = 0 });
                }
                part = self.place.get();
            }
            // SAFETY: a cell of the world.
            let part = unsafe { &*part };
            // SAFETY: it is not written any more.
            part.with(|part| unsafe { *part })
        }
    }

    #[test]
    fn loom_what_is_published_once_is_seen_whole() {
        model(|| {
            let place = Published::nothing();
            let world = Arc::new(World { place, made: [0, 0].map(UnsafeCell::new) });
            let others = [0, 1].map(|index| {
                let world = Arc::clone(&world);
                thread::spawn(move || assert_eq!(world.use_it(index), 7))
            });
            let seen = world.place.get();
            if !seen.is_null() {
                // SAFETY: a cell of the world.
                let part = unsafe { &*seen };
                // SAFETY: it is not written any more.
                assert_eq!(part.with(|part| unsafe { *part }), 7);
            }
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!(seen.is_null() || seen == world.place.get(), "it is published once");
        });
    }
}
