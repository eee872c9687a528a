//! The stacks of a recording, which events name by numbers.

use std::collections::HashMap;

/// A stack and what was mapped when it was written.
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
    ranges: Vec<Range>,
    addresses: Vec<u64>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let ranges = vec![Range { from: 0, length: 0, seen: 0 }];
        let (by_number, addresses) = (HashMap::new(), Vec::new());
        Stacks { are_incomplete: false, by_number, ranges, addresses }
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

    /// The index of the stack with a number. The number 0 stands for the empty stack if the file
    /// has no other one.
    pub(super) fn index(&self, number: u64) -> Option<u32> {
        let is_empty = number == 0 || self.are_incomplete;
        self.by_number.get(&number).copied().or(is_empty.then_some(0))
    }

    /// The addresses of each stack, in the order of the indices, with the number of parts with
    /// mappings before it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u64], u32)> {
        self.ranges
            .iter()
            .map(|range| (&self.addresses[range.from..range.from + range.length], range.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_found_by_their_numbers() {
        let mut stacks = Stacks::default();
        stacks.add(70, &[1, 2], 3);
        stacks.add(7, &[], 4);
        assert_eq!(
            [0, 70, 7, 1].map(|number| stacks.index(number)),
            [Some(0), Some(1), Some(2), None]
        );
        let all: Vec<_> = stacks.iter().collect();
        assert_eq!(all, [(&[][..], 0), (&[1, 2][..], 3), (&[][..], 4)]);
        stacks.add(0, &[9], 4);
        assert_eq!(stacks.index(0), Some(3));
        stacks.are_incomplete = true;
        assert_eq!([0, 70, 1].map(|number| stacks.index(number)), [3, 1, 0].map(Some));
    }
}
