//! Places for connections. When all are taken, the connection that has waited longest for its
//! client makes room. Each connection has a moment first, so that a client that asks at once is
//! answered however many others come. The others wait in the system's queue.
use super::phase::Watch;
use crate::counts::Ended;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that every connection has to ask, and to take its answer.
const MOMENT: Duration = Duration::from_millis(10);

/// All places.
pub(super) struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    all: BTreeMap<u64, Arc<Watch>>,
}

/// A place. Dropping it gives the place back.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    pub(super) watch: Arc<Watch>,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Places> {
        Arc::new(Places { most: most.max(1), taken: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the next connection may be taken in, or `None` if it may be taken in now.
    pub(super) fn next(&self) -> Option<Instant> {
        let taken = self.lock();
        if taken.all.len() < self.most {
            return None;
        }
        let now = Instant::now();
        match taken.all.values().filter_map(|watch| watch.waits()).min() {
            Some(longest) => Some(longest + MOMENT).filter(|next| *next > now),
            None => Some(now + MOMENT),
        }
    }

    /// Returns a place, if necessary the place of the connection that has waited longest for its
    /// client. Returns `None` if all others are being answered.
    pub(super) fn enter(self: &Arc<Places>) -> Option<Place> {
        let mut taken = self.lock();
        if taken.all.len() >= self.most && !taken.shed(Ended::Displaced) {
            return None;
        }
        taken.next += 1;
        let (number, watch) = (taken.next, Arc::new(Watch::new()));
        taken.all.insert(number, Arc::clone(&watch));
        Some(Place { places: Arc::clone(self), number, watch })
    }

    /// Closes the connection that has waited longest for its client, for this reason. Does nothing
    /// if none waits.
    pub(super) fn shed(&self, reason: Ended) {
        self.lock().shed(reason);
    }
}

impl Taken {
    /// As [`Places::shed`]. Returns `false` if none waits.
    fn shed(&mut self, reason: Ended) -> bool {
        let waiting = self.all.iter().filter_map(|(at, watch)| Some((watch.waits()?, *at)));
        let Some((_, longest)) = waiting.min() else { return false };
        if let Some(watch) = self.all.remove(&longest) {
            watch.close(reason);
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_waits_longest_makes_room() {
        let places = Places::new(3);
        let mut all: Vec<Place> = (0..3).map(|_| places.enter().unwrap()).collect();
        all[0].watch.arrived();
        let next = places.enter().unwrap();
        let closed = |place: &Place| place.watch.why_closed();
        let displaced = Some(Ended::Displaced);
        assert_eq!([&all[0], &all[1], &all[2]].map(closed), [None, displaced, None]);
        // A connection whose answer is made waits for its client again, from then on.
        all[0].watch.answered();
        all.remove(1);
        let last = places.enter().unwrap();
        assert_eq!([&all[0], &all[1], &next].map(closed), [None, displaced, None]);
        places.shed(Ended::Memory);
        assert_eq!(closed(&next), Some(Ended::Memory), "it is counted once, for this reason");
        drop(last);
        assert_eq!(places.lock().all.len(), 1);
    }

    #[test]
    fn who_is_being_answered_stays() {
        let places = Places::new(2);
        assert_eq!(places.next(), None);
        let all: Vec<Place> = (0..2).map(|_| places.enter().unwrap()).collect();
        let first = all[0].watch.waits().unwrap();
        assert!(places.next().is_none_or(|next| next == first + MOMENT), "each has its moment");
        all.iter().for_each(|place| place.watch.arrived());
        assert!(places.enter().is_none());
        places.shed(Ended::Memory);
        assert!(all.iter().all(|place| place.watch.why_closed().is_none()));
        all[0].watch.answered();
        assert!(places.enter().is_some());
        assert_eq!(all[0].watch.why_closed(), Some(Ended::Displaced));
    }
}
