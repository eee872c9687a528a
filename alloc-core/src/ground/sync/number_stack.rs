//! A stack of numbered places that many threads push and pop without a lock.
//!
//! Each place has a link to the one below it. A thread may read the link of a place that another
//! one has just popped, so links are atomics that stay readable, and the top counts the pops: a
//! pop that was overtaken fails, also if the same place is on top again.

use super::seam::{AtomicU32, AtomicU64, Ordering};

/// The stack. The low half of the word is the number on top, or [`NONE`]; the high half counts
/// pops.
pub(crate) struct NumberStack(AtomicU64);

/// The number of no place.
const NONE: u32 = 0;
const POPS: u64 = 1 << 32;

impl NumberStack {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> NumberStack {
        NumberStack(AtomicU64::new(NONE as u64))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> NumberStack {
        NumberStack(AtomicU64::new(u64::from(NONE)))
    }

    /// Pushes a place that the caller owns. Its number is not 0, and this is its link.
    pub(crate) fn push(&self, number: u32, link: &AtomicU32) {
        let mut top = self.0.load(Ordering::Relaxed);
        loop {
            link.store(top as u32, Ordering::Relaxed);
            let new = (top & !u64::from(u32::MAX)) | u64::from(number);
            // Release: pairs with the Acquire of `pop`, which reads the link.
            match self.0.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Pops a place, which the caller owns from then on. `link` returns the link of a number.
    pub(crate) fn pop<'a>(&self, link: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        // Acquire: pairs with the Release of `push`.
        let mut top = self.0.load(Ordering::Acquire);
        loop {
            let number = top as u32;
            if number == NONE {
                return None;
            }
            let below = link(number).load(Ordering::Relaxed);
            let new = (top & !u64::from(u32::MAX)).wrapping_add(POPS) | u64::from(below);
            // Acquire: pairs with the Release of each `push` before, because all changes of the
            // word are of one release sequence.
            match self.0.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => top = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_popped_first() {
        let (stack, links) = (NumberStack::new(), [0; 4].map(AtomicU32::new));
        let link = |number: u32| &links[number as usize];
        assert_eq!(stack.pop(link), None);
        (1..4).for_each(|number| stack.push(number, link(number)));
        assert_eq!([(); 3].map(|()| stack.pop(link)), [Some(3), Some(2), Some(1)]);
        assert_eq!(stack.pop(link), None);
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
        stack: NumberStack,
        links: [AtomicU32; 3],
        /// What only the owner of a place uses.
        contents: [UnsafeCell<u32>; 3],
    }

    // SAFETY: loom reports each access to the cells that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        fn pop(&self) -> Option<u32> {
            let number = self.stack.pop(|number| &self.links[number as usize])?;
            // SAFETY: this thread owns the place.
            self.contents[number as usize].with_mut(|content| unsafe { *content += 1 });
            Some(number)
        }

        fn push(&self, number: u32) {
            // SAFETY: this thread owns the place.
            self.contents[number as usize].with_mut(|content| unsafe { *content += 1 });
            self.stack.push(number, &self.links[number as usize]);
        }
    }

    /// A thread pops both places and pushes the first one back, while another one pops: what that
    /// one has read of the first place's link may be old.
    #[test]
    fn loom_no_place_has_two_owners() {
        model(|| {
            let (links, contents) = ([0; 3].map(AtomicU32::new), [0; 3].map(UnsafeCell::new));
            let world = Arc::new(World { stack: NumberStack::new(), links, contents });
            (1..3).for_each(|number| world.push(number));
            let other = Arc::clone(&world);
            let other = thread::spawn(move || other.pop());
            let mine = [world.pop(), world.pop()];
            let kept = match mine {
                [Some(first), second] => {
                    world.push(first);
                    second
                }
                _ => None,
            };
            let theirs = other.join().unwrap();
            let rest: Vec<u32> = std::iter::from_fn(|| world.pop()).collect();
            let mut all: Vec<u32> = kept.into_iter().chain(theirs).chain(rest).collect();
            all.sort_unstable();
            assert_eq!(all, [1, 2]);
        });
    }
}
