//! Locks of many things that are wanted one after the other, in any order.
//!
//! On a busy system a thread may be kept from running while it holds a lock, for as long as all
//! others take their turns. Who waits for one lock after the other waits for the sum of that. So a
//! thing whose lock is held is put aside, and tried again after the others.

use super::lock::{Guard, RankedMutex};
use super::wait;

/// Things that are put aside at most.
const MOST: usize = 256;

/// If no more than these were ever aside, each is waited for a little first. A thread that is
/// always at work has its lock at nearly each try. Beside few such threads one that waits runs as
/// soon as a lock is given up.
pub(crate) const FEW: usize = 2;

/// How long one is waited for [`How::Soon`], in milliseconds.
pub(crate) const SOON: u64 = 10;

/// Rounds over what is put aside, with a millisecond between two. What is left then is waited for.
const ROUNDS: usize = 1000;

/// Things whose locks were held.
pub(crate) struct Aside<T> {
    things: [Option<T>; MOST],
    count: usize,
    /// Whether more than a few locks were held.
    is_busy: bool,
}

/// How a lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// If it is free.
    AtOnce,
    /// It is waited for, for some milliseconds.
    Soon,
    /// It is waited for.
    Waiting,
}

/// Takes a lock, and returns `None` if it is held for longer than it is waited for.
pub(crate) fn lock_as<T>(lock: &RankedMutex<T>, how: How) -> Option<Guard<'_, T>> {
    match how {
        How::AtOnce => lock.try_lock_again(),
        How::Soon => lock.lock_within(SOON),
        How::Waiting => Some(lock.lock()),
    }
}

impl<T: Copy> Aside<T> {
    pub(crate) fn new() -> Aside<T> {
        Aside { things: [None; MOST], count: 0, is_busy: false }
    }

    /// Calls `take` with a thing, which returns `false` if its lock is held. Then the thing is put
    /// aside. If there is no room, those that are aside are [settled](Aside::settle) first.
    pub(crate) fn take(&mut self, thing: T, mut take: impl FnMut(T, How) -> bool) {
        if take(thing, How::AtOnce) {
            return;
        }
        if self.count == MOST {
            self.settle(take);
        }
        if let Some(place) = self.things.get_mut(self.count) {
            *place = Some(thing);
            self.count += 1;
        }
    }

    /// Calls `take` with each thing that is aside until it returns `true`. It is to wait for the
    /// locks that are found held for a second or more. Nothing is aside then.
    pub(crate) fn settle(&mut self, mut take: impl FnMut(T, How) -> bool) {
        let count = core::mem::take(&mut self.count);
        let left = self.things.get_mut(..count).unwrap_or_default();
        self.is_busy |= count > FEW;
        if !self.is_busy {
            left.iter_mut().for_each(|place| _ = place.take_if(|it| take(*it, How::Soon)));
        }
        let mut try_all = |left: &mut [Option<T>]| {
            left.iter_mut().for_each(|place| _ = place.take_if(|it| take(*it, How::AtOnce)));
            left.iter().flatten().count()
        };
        if wait::for_a_moment(|| (try_all(left) == 0).then_some(())).is_some() {
            return;
        }
        for _ in 0..ROUNDS {
            if try_all(left) == 0 {
                return;
            }
            wait::sleep(1);
        }
        left.iter_mut().filter_map(Option::take).for_each(|it| _ = take(it, How::Waiting));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_is_held_is_tried_after_the_others_and_waited_for_at_last() {
        let (mut got, mut tries) = (Vec::new(), 0);
        // Thing 1 is free at the third look at it, and thing 3 never is.
        let mut take = |thing: u32, how| {
            tries += u32::from(thing == 1);
            let is_free = how == How::Waiting || (thing != 3 && (thing != 1 || tries > 2));
            got.extend(is_free.then_some((thing, how == How::Waiting)));
            is_free
        };
        let mut aside = Aside::new();
        (0..5).for_each(|thing| aside.take(thing, &mut take));
        aside.settle(&mut take);
        aside.settle(&mut take);
        assert_eq!(got, [(0, false), (2, false), (4, false), (1, false), (3, true)]);
    }

    #[test]
    fn a_few_are_waited_for_a_little_and_many_are_not() {
        for (count, waited_for) in [(1, 1), (FEW, FEW), (FEW + 1, 0)] {
            let (mut soon, mut tries) = (0, 0);
            let mut take = |_: usize, how| {
                soon += usize::from(how == How::Soon);
                tries += 1;
                how == How::Soon || tries > 2 * count
            };
            let mut aside = Aside::new();
            (0..count).for_each(|thing| aside.take(thing, &mut take));
            aside.settle(&mut take);
            assert_eq!(soon, waited_for, "{count}");
        }
    }

    #[test]
    fn more_than_there_is_room_for_are_settled_meanwhile() {
        let (mut got, mut seen) = (0, 0);
        let mut aside = Aside::new();
        // All are held until one more comes than there is room for.
        let mut take = |thing: usize, _| {
            seen += 1;
            let is_free = seen > MOST + 1 && (thing < MOST || seen > 2 * MOST + 1);
            got += usize::from(is_free);
            is_free
        };
        (0..=MOST).for_each(|thing| aside.take(thing, &mut take));
        assert_eq!(aside.count, 1);
        aside.settle(&mut take);
        assert_eq!(got, MOST + 1);
    }
}
