//! Arenas by label: what each label counted stays counted when its arenas are destroyed or get
//! another name, and an arena that comes in the place of another is not taken for it.
//!
//! Shown for a label: what its arenas counted while they had it. What a destroyed arena counted
//! after the last look stands under [`DESTROYED`], so that the sum over labels is the sum over
//! all arenas that ever were, and no rate is counted twice.
use super::arenas::Arena;
use std::collections::HashMap;

/// The label of counts that were seen under no other.
pub(crate) const DESTROYED: &str = "destroyed";
/// The label of arenas for which there was no other.
pub(crate) const OVERFLOW: &str = "overflow";

/// What is known of an arena.
struct Known {
    /// When it was made, against arena 0, in nanoseconds: no other arena of the index is as old.
    born: i64,
    label: String,
    /// Counts when it got the label, and when it was last looked at.
    base: Vec<f64>,
    last: Vec<f64>,
}

/// What is known of a label.
#[derive(Default)]
struct Label {
    /// What arenas counted that have it no more.
    carry: Vec<f64>,
    arenas: usize,
    /// When it was last in use, in looks.
    used: u64,
    created: Option<f64>,
}

/// What is shown for a label.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) label: String,
    /// One number for each family; `None`: the label has no arena now.
    pub(crate) numbers: Vec<Option<f64>>,
    /// When it began, in seconds of the epoch.
    pub(crate) created: Option<f64>,
}

/// Follows arenas from look to look.
pub(crate) struct Tracker {
    most: usize,
    known: HashMap<usize, Known>,
    labels: HashMap<String, Label>,
    /// Of what destroyed arenas counted, what was seen under other labels.
    seen: Vec<f64>,
    looks: u64,
}

impl Tracker {
    /// At most so many labels, those that are always there among them.
    pub(crate) fn new(most: usize) -> Tracker {
        Tracker { most, known: HashMap::new(), labels: HashMap::new(), seen: Vec::new(), looks: 0 }
    }

    /// How many arenas are counted as [`OVERFLOW`].
    pub(crate) fn overflow(&self) -> usize {
        self.known.values().filter(|arena| arena.label == OVERFLOW).count()
    }

    /// Takes a look at all arenas there are, with their labels; `counts` says which numbers are
    /// counters, `destroyed` what arenas counted that are no more, `now` the time.
    pub(crate) fn look(
        &mut self,
        arenas: &[(String, &Arena)],
        counts: &[bool],
        destroyed: &[f64],
        now: f64,
    ) -> Vec<Shown> {
        self.looks += 1;
        self.seen.resize(counts.len(), 0.0);
        self.bury(arenas, counts.len());
        for (label, arena) in arenas {
            self.meet(label, arena, now);
        }
        self.show(arenas, counts, destroyed)
    }

    /// Takes leave of arenas that are no more.
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

    /// An arena has its label no more: what it counted with it stays there.
    fn leave(&mut self, known: &Known, numbers: usize) {
        let label = self.labels.entry(known.label.clone()).or_default();
        label.carry.resize(numbers, 0.0);
        for ((carry, last), base) in label.carry.iter_mut().zip(&known.last).zip(&known.base) {
            *carry += last - base;
        }
        label.arenas -= usize::from(label.arenas > 0);
    }

    /// Meets an arena: a new one, one with a new label, or an old friend.
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
            if let Some(label) = self.labels.get_mut(&known.label) {
                label.used = self.looks;
            }
        }
    }

    /// The label that an arena gets which wants this one.
    fn admit(&mut self, wanted: &str, created: f64) -> String {
        // Two places are for what is always there.
        let own = |name: &&String| *name != DESTROYED && *name != OVERFLOW;
        let taken = self.labels.keys().filter(own).count();
        if !self.labels.contains_key(wanted) && taken + 2 >= self.most {
            let unused = self.labels.iter().filter(|(name, label)| own(name) && label.arenas == 0);
            let oldest = unused.min_by_key(|(_, label)| label.used).map(|(name, _)| name.clone());
            match oldest {
                Some(oldest) => _ = self.labels.remove(&oldest),
                None => return OVERFLOW.into(),
            }
        }
        let label = self.labels.entry(wanted.into()).or_default();
        label.arenas += 1;
        label.created.get_or_insert(created);
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
            // Between the end of an arena and the next snapshot, it is seen nowhere.
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

/// Numbers in their order, before names.
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
