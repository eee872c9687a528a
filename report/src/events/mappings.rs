//! What was mapped when.

use std::collections::HashMap;

use crate::profile::Mapping;
use crate::ranges;

/// How many mappings of addresses are looked at for changes, so that a damaged file takes no time
/// without bound.
const MOST_LOOKS: usize = 1 << 24;

/// What was mapped at an address: numbers of parts, and a number for what was mapped from then on.
pub(crate) type Changes = Vec<(u32, u32)>;

/// The mappings of a recording. Those of a later part of the file replace earlier ones from then
/// on.
#[derive(Default)]
pub(crate) struct Mappings {
    all: Vec<Mapping>,
    /// Of each mapping, the number of the part that has it.
    parts: Vec<u32>,
    /// The number of parts so far.
    count: u32,
}

impl Mappings {
    /// Begins a new part.
    pub(super) fn begin(&mut self) {
        self.count += 1;
    }

    /// Adds a mapping to the part.
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.all.push(mapping);
        self.parts.push(self.count);
    }

    /// All mappings.
    pub(super) fn all(&self) -> &[Mapping] {
        &self.all
    }

    /// The number of parts so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Puts mappings into the order in which they are to be asked about an address that was seen
    /// after so many parts: the last ones before that, then the first ones after it, which have
    /// what was mapped in between.
    pub(super) fn order(&self, seen: u32) -> impl Iterator<Item = usize> + '_ {
        let known = self.known(seen);
        (0..known).rev().chain(known..self.all.len())
    }

    /// Whether a mapping has addresses that another one has too.
    pub(super) fn overlap(&self) -> bool {
        let ranges = self.all.iter().map(|mapping| (mapping.start, mapping.limit));
        let mut ranges: Vec<(u64, u64)> = ranges.filter(|(start, limit)| start < limit).collect();
        ranges.sort_unstable();
        ranges.windows(2).any(|pair| pair[1].0 < pair[0].1)
    }

    /// What was mapped one after the other, of the addresses at which that changed. The calls stand
    /// before these return addresses.
    pub(super) fn changes<'a>(&'a self, addresses: &[u64]) -> HashMap<u64, Changes> {
        let mut numbers: HashMap<(u64, &'a String, &'a String), u32> = HashMap::new();
        let number = |Mapping { start, offset, file, build_id, .. }: &'a Mapping| {
            let next = numbers.len() as u32;
            *numbers.entry((start.wrapping_sub(*offset), file, build_id)).or_insert(next)
        };
        let numbers: Vec<u32> = self.all.iter().map(number).collect();
        let calls: Vec<u64> = addresses.iter().map(|address| address.saturating_sub(1)).collect();
        let (mut changes, mut left) = (HashMap::new(), MOST_LOOKS);
        ranges::for_each(&self.all, &calls, |place, around| {
            if around.len() < 2 || left < around.len() {
                return;
            }
            left -= around.len();
            let mut all: Changes =
                around.iter().map(|it| (self.parts[*it], numbers[*it])).collect();
            all.dedup_by_key(|(_, number)| *number);
            if all.len() > 1 {
                changes.insert(addresses[place], all);
            }
        });
        changes
    }

    /// How many mappings the first parts have.
    pub(super) fn known(&self, seen: u32) -> usize {
        self.parts.partition_point(|part| *part <= seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mapping_holds_from_then_on() {
        let mut mappings = Mappings::default();
        for (start, limit) in [(0x1000, 0x3000), (0x2000, 0x4000), (0x5000, 0x6000)] {
            mappings.begin();
            mappings.add(Mapping { start, limit, ..Mapping::default() });
        }
        for (address, seen, expected) in [
            (0x2000, 1, Some(0)),
            (0x2000, 2, Some(1)),
            (0x1fff, 3, Some(0)),
            (0x3fff, 1, Some(1)),
            (0x5000, 0, Some(2)),
            (0x4000, 3, None),
        ] {
            let found = ranges::find(mappings.all(), &[(address, mappings.known(seen))]);
            assert_eq!(found, [expected], "{address:#x} {seen}");
        }
        assert_eq!(mappings.order(1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(mappings.order(3).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn what_was_mapped_in_place_of_something_else_is_a_change() {
        let of = |places: &[(u64, u64, u64, &str)]| {
            let mut mappings = Mappings::default();
            for (start, limit, offset, file) in places.iter().copied() {
                mappings.begin();
                let (file, build_id) = (file.to_owned(), String::new());
                mappings.add(Mapping { start, limit, offset, file, build_id });
            }
            let mut changes: Vec<_> =
                mappings.changes(&[0x1800, 0x2000, 0x2800]).into_iter().collect();
            changes.sort();
            (mappings.overlap(), changes)
        };
        assert_eq!(of(&[(0x1000, 0x2000, 0, "a"), (0x2000, 0x3000, 0, "b")]), (false, vec![]));
        assert_eq!(of(&[(0x1000, 0x3000, 0, "a"), (0x2000, 0x2000, 0, "b")]), (false, vec![]));
        let grown =
            [(0x1000, 0x2000, 0, "a"), (0x1000, 0x3000, 0, "a"), (0x2000, 0x4000, 0x1000, "a")];
        assert_eq!(of(&grown), (true, vec![]), "the same bytes of the file");
        let other = [(0x1000, 0x2000, 0, "a"), (0x1000, 0x2000, 0, "b"), (0x1000, 0x2000, 0, "a")];
        let changes = vec![(1, 0), (2, 1), (3, 0)];
        assert_eq!(of(&other), (true, vec![(0x1800, changes.clone()), (0x2000, changes)]));
        let moved = [(0x2000, 0x3000, 0, "a"), (0x2000, 0x3000, 0x1000, "a")];
        assert_eq!(of(&moved), (true, vec![(0x2800, vec![(1, 0), (2, 1)])]));
    }
}
