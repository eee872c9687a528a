//! Counters that never go back, whatever happens in the allocator.
//!
//! Two things make a count lower than it was. After a reset (`stats.mutexes.reset`), the count
//! begins at 0. A walk over running threads does not read them at one instant. After a reset, the
//! shown count goes on from where it was. Otherwise it stays until the count reaches it again.
use std::collections::HashMap;

/// The state of a counter.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The sum of the counts before resets.
    before: f64,
    /// The highest count since the last reset.
    last: f64,
    /// The turn in which the counter was last read.
    turn: u64,
}

/// All counters, by family and labels.
#[derive(Default)]
pub(crate) struct Monotone {
    places: HashMap<(&'static str, String), Place>,
    turn: u64,
}

impl Monotone {
    /// Returns the count to show for one that was read. `resets`: its key begins at 0 after a
    /// reset.
    pub(crate) fn settle(
        &mut self,
        family: &'static str,
        labels: String,
        now: f64,
        resets: bool,
    ) -> f64 {
        let place = self.places.entry((family, labels)).or_default();
        place.turn = self.turn;
        if now >= place.last {
            place.last = now;
        } else if resets {
            place.before += place.last;
            place.last = now;
        }
        place.before + place.last
    }

    /// Ends a turn. Of the families that were `read` in it, counters without a count are forgotten.
    /// Their labels are gone for good, and labels that come and go would fill the memory.
    pub(crate) fn end_turn(&mut self, read: impl Fn(&str) -> bool) {
        let turn = self.turn;
        self.places.retain(|(family, _), place| place.turn == turn || !read(family));
        self.turn += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_on_after_a_reset_and_waits_after_a_dip() {
        let mut counts = Monotone::default();
        let mut reset = |now| counts.settle("a", String::new(), now, true);
        assert_eq!(
            [5.0, 9.0, 2.0, 4.0, 0.0, 1.0].map(&mut reset),
            [5.0, 9.0, 11.0, 13.0, 13.0, 14.0]
        );
        let mut dip = |now| counts.settle("b", String::new(), now, false);
        assert_eq!([5.0, 9.0, 8.0, 9.0, 10.0].map(&mut dip), [5.0, 9.0, 9.0, 9.0, 10.0]);
        assert_eq!(counts.settle("b", "other".into(), 3.0, false), 3.0);
    }

    #[test]
    fn labels_that_are_gone_are_forgotten() {
        let mut counts = Monotone::default();
        for turn in 0..1000 {
            counts.settle("a", format!("tenant {turn}"), 3.0, false);
            counts.end_turn(|family| family == "a");
        }
        counts.settle("b", "not read each time".into(), 3.0, false);
        counts.end_turn(|family| family == "b");
        counts.settle("a", "stays".into(), 5.0, false);
        counts.end_turn(|family| family == "a");
        assert_eq!(counts.places.len(), 2);
        assert_eq!(counts.settle("b", "not read each time".into(), 2.0, false), 3.0);
    }
}
