//! Counters that never go back, whatever happens in the allocator.
//!
//! Two things make a count lower than it was: a reset (`stats.mutexes.reset`), after which it
//! begins at zero; and a walk over running threads, which is not one instant. After a reset the
//! count goes on from where it was; else it waits until it is reached again.
use std::collections::HashMap;

/// Where a counter stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// What was counted before resets.
    before: f64,
    /// What was read last.
    last: f64,
    /// When it was read last, in turns.
    turn: u64,
}

/// All counters, by family and labels.
#[derive(Default)]
pub(crate) struct Monotone {
    places: HashMap<(&'static str, String), Place>,
    turn: u64,
}

impl Monotone {
    /// The count to show for one that was read. `resets`: its key begins at zero after a reset.
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

    /// Ends a turn: of the families that were `read` in it, what had no count is forgotten. (Its
    /// label is gone for good; labels that come and go would fill the memory.)
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
