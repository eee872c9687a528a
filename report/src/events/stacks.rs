//! The stacks of a recording, which events name by numbers.

use std::collections::{BTreeSet, HashMap};

use super::mappings::{Changes, Mappings};

/// How many steps the look for stacks of other mappings takes, so that a damaged file takes no time
/// without bound.
const MOST_STEPS: usize = 1 << 24;
/// How many frames the stacks have that are added by it: so many, and four for each frame of the
/// file.
const FEW_FRAMES: usize = 1 << 16;

/// A stack and what was mapped when it was written.
#[derive(Clone, Copy)]
struct Range {
    from: usize,
    length: usize,
    seen: u32,
}

/// All stacks. The first one, of index 0, is empty.
pub(crate) struct Stacks {
    /// Whether stacks of the recording are missing. The empty one stands for them then.
    pub(super) are_incomplete: bool,
    by_number: HashMap<u64, u32>,
    /// Of stacks whose addresses got other mappings later: numbers of parts with mappings, and the
    /// index from then on.
    later: HashMap<u32, Vec<(u32, u32)>>,
    ranges: Vec<Range>,
    addresses: Vec<u64>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let ranges = vec![Range { from: 0, length: 0, seen: 0 }];
        let (by_number, later, addresses) = (HashMap::new(), HashMap::new(), Vec::new());
        Stacks { are_incomplete: false, by_number, later, ranges, addresses }
    }
}

impl Stacks {
    /// Adds a stack of return addresses, innermost first. `seen` is the number of parts with
    /// mappings before it.
    pub(super) fn add(&mut self, number: u64, addresses: &[u64], seen: u32) {
        let range = Range { from: self.addresses.len(), length: addresses.len(), seen };
        self.addresses.extend_from_slice(addresses);
        self.by_number.insert(number, self.ranges.len() as u32);
        self.ranges.push(range);
    }

    /// Adds stacks again whose addresses got other mappings after they were written: once for
    /// whatever was mapped there. Few recordings have such ones.
    pub(super) fn add_later(&mut self, mappings: &Mappings) {
        if !mappings.overlap() {
            return;
        }
        let mut addresses = self.addresses.clone();
        addresses.sort_unstable();
        addresses.dedup();
        let changes = mappings.changes(&addresses);
        if changes.is_empty() {
            return;
        }
        let (mut steps, mut frames) = (MOST_STEPS, FEW_FRAMES + 4 * self.addresses.len());
        for stack in 0..self.ranges.len() {
            let range = self.ranges[stack];
            let addresses = &self.addresses[range.from..range.from + range.length];
            let changes = addresses.iter().filter_map(|address| changes.get(address)).collect();
            self.add_changed(stack as u32, range, changes, [&mut steps, &mut frames]);
        }
    }

    /// Adds one stack again, of whose addresses these are the changes.
    fn add_changed(
        &mut self,
        stack: u32,
        range: Range,
        changes: Vec<&Changes>,
        [steps, frames]: [&mut usize; 2],
    ) {
        let count: usize = changes.iter().map(|changes| changes.len()).sum();
        let Some(left) = steps.checked_sub(count) else { return };
        *steps = left;
        let parts = changes.iter().flat_map(|changes| changes.iter()).map(|(part, _)| *part);
        let parts: BTreeSet<u32> = parts.filter(|part| *part > range.seen).collect();
        let Some(left) = left.checked_sub(parts.len() * changes.len()) else { return };
        *steps = left;
        let mapped = |part| -> Vec<u32> { changes.iter().map(|it| mapped(it, part)).collect() };
        let mut known = HashMap::from([(mapped(range.seen), stack)]);
        let mut later = Vec::new();
        for part in parts {
            let next = self.ranges.len() as u32;
            let index = *known.entry(mapped(part)).or_insert(next);
            if index == next {
                let Some(left) = frames.checked_sub(range.length) else { break };
                *frames = left;
                self.ranges.push(Range { seen: part, ..range });
            }
            later.push((part, index));
        }
        if !later.is_empty() {
            self.later.insert(stack, later);
        }
    }

    /// The index of the stack with a number, for events after so many parts with mappings. The
    /// number 0 stands for the empty stack if the file has no other one.
    pub(super) fn index(&self, number: u64, seen: u32) -> Option<u32> {
        let is_empty = number == 0 || self.are_incomplete;
        let first = self.by_number.get(&number).copied().or(is_empty.then_some(0))?;
        let Some(later) = self.later.get(&first) else { return Some(first) };
        let behind = later.partition_point(|(from, _)| *from <= seen);
        Some(behind.checked_sub(1).map_or(first, |at| later[at].1))
    }

    /// The addresses of each stack, in the order of the indices, with the number of parts with
    /// mappings before it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u64], u32)> {
        self.ranges
            .iter()
            .map(|range| (&self.addresses[range.from..range.from + range.length], range.seen))
    }
}

/// What was mapped at an address after so many parts, or else what was mapped there first.
fn mapped(changes: &Changes, seen: u32) -> u32 {
    let behind = changes.partition_point(|(part, _)| *part <= seen);
    changes[behind.saturating_sub(1)].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Mapping;

    #[test]
    fn stacks_are_found_by_their_numbers() {
        let mut stacks = Stacks::default();
        stacks.add(70, &[1, 2], 3);
        stacks.add(7, &[], 4);
        assert_eq!(
            [0, 70, 7, 1].map(|number| stacks.index(number, 9)),
            [Some(0), Some(1), Some(2), None]
        );
        let all: Vec<_> = stacks.iter().collect();
        assert_eq!(all, [(&[][..], 0), (&[1, 2][..], 3), (&[][..], 4)]);
        stacks.add(0, &[9], 4);
        assert_eq!(stacks.index(0, 9), Some(3));
        stacks.are_incomplete = true;
        assert_eq!([0, 70, 1].map(|number| stacks.index(number, 9)), [3, 1, 0].map(Some));
    }

    #[test]
    fn a_stack_is_there_once_for_each_file_at_its_addresses() {
        let (mut stacks, mut mappings) = (Stacks::default(), Mappings::default());
        let map = |mappings: &mut Mappings, start: u64, file: &str| {
            let (file, limit) = (file.to_owned(), start + 0x1000);
            mappings.begin();
            mappings.add(Mapping { start, limit, file, ..Mapping::default() });
        };
        map(&mut mappings, 0x1000, "a");
        stacks.add(7, &[0x1001, 0x9001], mappings.count());
        stacks.add(8, &[0x9001, 0x7001], mappings.count());
        for file in ["b", "b", "a", "c"] {
            map(&mut mappings, 0x1000, file);
        }
        stacks.add(9, &[0x1001], mappings.count());
        map(&mut mappings, 0x9000, "program");
        stacks.add_later(&mappings);
        let of = |number| [0, 1, 2, 3, 4, 5, 6].map(|seen| stacks.index(number, seen).expect("it"));
        assert_eq!(of(7), [1, 1, 4, 4, 1, 5, 5]);
        assert_eq!((of(8), of(9)), ([2; 7], [3; 7]));
        let all: Vec<_> = stacks.iter().skip(4).collect();
        assert_eq!(all, [(&[0x1001, 0x9001][..], 2), (&[0x1001, 0x9001][..], 5)]);
    }
}
