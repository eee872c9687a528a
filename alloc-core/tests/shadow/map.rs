//! The allocated blocks, by address.

use std::collections::BTreeMap;

/// Ranges that must not overlap: beginning and length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map(BTreeMap<usize, usize>);

impl Map {
    /// Adds a block. Panics if it overlaps another.
    #[track_caller]
    pub(crate) fn insert(&mut self, address: usize, length: usize) {
        assert!(address != 0 && length > 0 && address.checked_add(length).is_some());
        if let Some((before, its)) = self.0.range(..=address).next_back() {
            assert!(before + its <= address, "{address:#x} lies in {before:#x} + {its}");
        }
        if let Some((behind, _)) = self.0.range(address..).next() {
            assert!(address + length <= *behind, "{address:#x} + {length} reaches {behind:#x}");
        }
        self.0.insert(address, length);
    }

    /// Removes a block.
    #[track_caller]
    pub(crate) fn remove(&mut self, address: usize) {
        assert!(self.0.remove(&address).is_some(), "{address:#x} is not known");
    }

    /// The blocks, by address: beginning and length.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().map(|(address, length)| (*address, *length))
    }

    /// The bytes in all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.0.values().sum()
    }
}
