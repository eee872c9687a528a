//! The blocks that are in use, by their addresses in the trace and by their regions.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// A block in use.
pub(super) struct Block {
    pub(super) region: usize,
    pub(super) number: usize,
    pub(super) size: usize,
    pub(super) place: Option<Rc<str>>,
}

/// All blocks in use. Those of a region are found without a look at the others.
#[derive(Default)]
pub(super) struct Blocks {
    all: HashMap<u64, Block>,
    /// The region and the address of each.
    of_regions: BTreeSet<(usize, u64)>,
}

impl Blocks {
    /// Returns the region of the block at an address.
    pub(super) fn region_at(&self, address: u64) -> Option<usize> {
        self.all.get(&address).map(|block| block.region)
    }

    /// Adds a block. There must be none at its address.
    pub(super) fn insert(&mut self, address: u64, block: Block) {
        self.of_regions.insert((block.region, address));
        self.all.insert(address, block);
    }

    /// Removes the block at an address, if it is one of this region.
    pub(super) fn remove(&mut self, region: usize, address: u64) -> Option<Block> {
        if !self.of_regions.remove(&(region, address)) {
            return None;
        }
        self.all.remove(&address)
    }

    /// Removes all blocks of a region, and returns them in the order in which they came.
    pub(super) fn remove_all_of(&mut self, region: usize) -> Vec<Block> {
        let places = self.of_regions.range((region, 0)..=(region, u64::MAX));
        let addresses: Vec<u64> = places.map(|(_, address)| *address).collect();
        let gone = addresses.into_iter().filter_map(|address| self.remove(region, address));
        in_order(gone.collect())
    }

    /// Returns all blocks in the order in which they came.
    pub(super) fn into_all(self) -> Vec<Block> {
        in_order(self.all.into_values().collect())
    }
}

fn in_order(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.sort_unstable_by_key(|block| block.number);
    blocks
}
