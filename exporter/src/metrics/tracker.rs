//! Arenas by label. The counts of a label stay when its arenas are destroyed or renamed, and an
//! arena that replaces another one is not taken for it.
//!
//! The count of a label is what its arenas counted while they had it. What a destroyed arena
//! counted after the last look is shown under [`DESTROYED`]. Therefore the sum over labels is the
//! sum over all arenas that ever existed, and no rate is counted twice. For the same reason a label
//! is never given up for another one: its counts would vanish from the sum, or be counted twice.
use super::arenas::{Arena, OVERFLOW};
use std::collections::HashMap;

/// The label of counts that were seen under no other label.
pub(crate) const DESTROYED: &str = "destroyed";
/// The state of an arena.
struct Known {
    /// When the arena was made, relative to arena 0, in nanoseconds. It is unique for the index.
    born: i64,
    label: String,
    /// The counts when the arena got the label. `last` are those of the last look.
    base: Vec<f64>,
    last: Vec<f64>,
}

/// The state of a label.
#[derive(Default)]
struct Label {
    /// What arenas counted that no longer have the label.
    carry: Vec<f64>,
    created: Option<f64>,
}

/// The numbers that are shown for a label.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) label: String,
    /// One number for each family. A gauge is `None` if the label has no arena now.
    pub(crate) numbers: Vec<Option<f64>>,
    /// When the counts began, in seconds since 1970.
    pub(crate) created: Option<f64>,
}

/// Follows arenas from look to look.
pub(crate) struct Tracker {
    most: usize,
    known: HashMap<usize, Known>,
    labels: HashMap<String, Label>,
    /// The part of the counts of destroyed arenas that was seen under other labels.
    seen: Vec<f64>,
}

impl Tracker {
    /// Makes a tracker with at most so many labels, including [`DESTROYED`] and [`OVERFLOW`].
    pub(crate) fn new(most: usize) -> Tracker {
        Tracker { most, known: HashMap::new(), labels: HashMap::new(), seen: Vec::new() }
    }

    /// Returns how many arenas are counted as [`OVERFLOW`].
    pub(crate) fn overflow(&self) -> usize {
        self.known.values().filter(|arena| arena.label == OVERFLOW).count()
    }

    /// Looks at all arenas, with their labels. `counts` says which numbers are counters,
    /// `destroyed` is what destroyed arenas counted, and `now` is the time.
    pub(crate) fn look(
        &mut self,
        arenas: &[(String, &Arena)],
        counts: &[bool],
        destroyed: &[f64],
        now: f64,
    ) -> Vec<Shown> {
        self.seen.resize(counts.len(), 0.0);
        self.bury(arenas, counts.len());
        for (label, arena) in arenas {
            self.meet(label, arena, now);
        }
        self.show(arenas, counts, destroyed)
    }

    /// Removes arenas that were destroyed, and keeps their counts.
    fn bury(&mut self, arenas: &[(String, &Arena)], numbers: usize) {
        let lives: HashMap<usize, i64> =
            arenas.iter().map(|(_, arena)| (arena.index, arena.born)).collect();
        let gone = |(index, known): &(&usize, &Known)| lives.get(index) != Some(&known.born);
        let gone: Vec<usize> = self.known.iter().filter(gone).map(|(index, _)| *index).collect();
        for index in gone {
            let Some(known) = self.known.remove(&index) else { continue };
            add(&mut self.seen, &known.last);
            self.leave(&known, numbers);
        }
    }

    /// Takes its label from an arena. What the arena counted under the label stays there.
    fn leave(&mut self, known: &Known, numbers: usize) {
        let label = self.labels.entry(known.label.clone()).or_default();
        label.carry.resize(numbers, 0.0);
        for ((carry, last), base) in label.carry.iter_mut().zip(&known.last).zip(&known.base) {
            *carry += last - base;
        }
    }

    /// Notes the numbers of an arena, which is new, has a new label, or is known.
    fn meet(&mut self, wanted: &str, arena: &Arena, now: f64) {
        let before = self.known.get(&arena.index);
        let stays = before.is_some_and(|known| known.label == wanted || known.label == OVERFLOW);
        if !stays {
            let base = match self.known.remove(&arena.index) {
                Some(known) => {
                    self.leave(&known, arena.numbers.len());
                    known.last
                }
                None => vec![0.0; arena.numbers.len()],
            };
            let created =
                if base.iter().all(|count| *count == 0.0) { now - arena.age } else { now };
            let label = self.admit(wanted, created);
            let last = base.clone();
            self.known.insert(arena.index, Known { born: arena.born, label, base, last });
        }
        if let Some(known) = self.known.get_mut(&arena.index) {
            known.last.clone_from(&arena.numbers);
        }
    }

    /// Returns the label of an arena that wants this one, or [`OVERFLOW`] if there are too many.
    fn admit(&mut self, wanted: &str, created: f64) -> String {
        // Two labels are kept for `DESTROYED` and `OVERFLOW`.
        let own = |name: &&String| *name != DESTROYED && *name != OVERFLOW;
        let taken = self.labels.keys().filter(own).count();
        if !self.labels.contains_key(wanted) && taken + 2 >= self.most {
            return OVERFLOW.into();
        }
        self.labels.entry(wanted.into()).or_default().created.get_or_insert(created);
        wanted.into()
    }

    fn show(&self, arenas: &[(String, &Arena)], counts: &[bool], destroyed: &[f64]) -> Vec<Shown> {
        let mut sums: HashMap<&str, (Vec<f64>, bool)> = HashMap::new();
        let zeros = || vec![0.0; counts.len()];
        for (name, label) in &self.labels {
            let carry = label.carry.iter().copied().chain(std::iter::repeat(0.0));
            let carry =
                carry.zip(counts).map(|(carry, is_count)| if *is_count { carry } else { 0.0 });
            sums.insert(name, (carry.collect(), false));
        }
        for (_, arena) in arenas {
            let Some(known) = self.known.get(&arena.index) else { continue };
            let (sum, lives) = sums.entry(&known.label).or_insert_with(|| (zeros(), false));
            *lives = true;
            let numbers = arena.numbers.iter().zip(&known.base).zip(counts);
            for (sum, ((number, base), is_count)) in sum.iter_mut().zip(numbers) {
                *sum += if *is_count { number - base } else { *number };
            }
        }
        let (unseen, _) = sums.entry(DESTROYED).or_insert_with(|| (zeros(), false));
        for ((unseen, all), seen) in unseen.iter_mut().zip(destroyed).zip(&self.seen) {
            // After an arena is destroyed, its counts are nowhere until the next snapshot.
            *unseen += (all - seen).max(0.0);
        }
        let mut shown: Vec<Shown> = sums
            .into_iter()
            .map(|(label, (sum, lives))| Shown {
                label: label.into(),
                numbers: sum
                    .into_iter()
                    .zip(counts)
                    .map(|(number, is_count)| (lives || *is_count).then_some(number))
                    .collect(),
                created: self.labels.get(label).and_then(|label| label.created),
            })
            .collect();
        shown.sort_by(|a, b| natural(&a.label).cmp(&natural(&b.label)));
        shown
    }
}

/// Returns a key that sorts numbers in their order, before names.
fn natural(label: &str) -> (usize, &str) {
    (label.parse().unwrap_or(usize::MAX), label)
}

fn add(to: &mut [f64], from: &[f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

#[cfg(test)]
#[path = "tracker_test.rs"]
mod tests;
