//! What a trace did, as calls on regions and blocks with numbers.
//!
//! vmalloc(3) does not trace that a region is cleared or closed. But then addresses are handed out
//! again that are in use. If the region is the same one it was cleared, and otherwise closed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::arguments::MethodArgument;
use super::blocks::{Block, Blocks};
use super::line::{Event, Moment, Record};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        region: usize,
    },
    Alloc {
        region: usize,
        block: usize,
        size: usize,
        align: usize,
    },
    Resize {
        region: usize,
        block: usize,
        size: usize,
    },
    Free {
        region: usize,
        block: usize,
    },
    Compact {
        region: usize,
    },
    /// A block goes because its region is cleared or closed next.
    Drop {
        region: usize,
        block: usize,
    },
    Clear {
        region: usize,
    },
    Close {
        region: usize,
    },
}

impl Call {
    /// Returns the region that the call is about.
    pub(super) fn region(self) -> usize {
        match self {
            Call::Open { region }
            | Call::Alloc { region, .. }
            | Call::Resize { region, .. }
            | Call::Free { region, .. }
            | Call::Compact { region }
            | Call::Drop { region, .. }
            | Call::Clear { region }
            | Call::Close { region } => region,
        }
    }
}

/// A block that is in use at the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) size: usize,
    pub(super) place: Option<Rc<str>>,
}

/// How many calls of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) allocs: usize,
    pub(super) resizes: usize,
    pub(super) frees: usize,
    pub(super) compactions: usize,
    pub(super) clears: usize,
    /// Calls about blocks that the trace has not seen before.
    pub(super) unknown: usize,
}

/// The calls of a trace.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The method of each region.
    pub(super) regions: Vec<MethodArgument>,
    pub(super) blocks: usize,
    pub(super) calls: Vec<Call>,
    pub(super) counts: Counts,
    /// The most bytes in use at one time, as they were asked for.
    pub(super) peak: usize,
    pub(super) live: Vec<Live>,
    /// When the calls were made, if the trace says it.
    pub(super) recorded: Option<Recorded>,
}

/// When the calls of a trace were made: the first and the last moment, in nanoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    first: u64,
    last: u64,
    threads: HashSet<u32>,
}

impl Recorded {
    fn add(&mut self, moment: Moment) {
        if self.threads.is_empty() {
            (self.first, self.last) = (moment.time, moment.time);
        }
        self.first = self.first.min(moment.time);
        self.last = self.last.max(moment.time);
        self.threads.insert(moment.thread);
    }

    /// Returns how long the calls took, in nanoseconds.
    pub(super) fn nanoseconds(&self) -> u64 {
        self.last - self.first
    }

    /// Returns how many threads made them.
    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }
}

/// Makes a plan of the lines of a trace, one after the other.
#[derive(Default)]
pub(super) struct Planner {
    plan: Plan,
    /// Regions by their addresses in the trace, and the other way round.
    regions: HashMap<u64, usize>,
    addresses: Vec<u64>,
    blocks: Blocks,
    places: HashSet<Rc<str>>,
    /// The bytes in use. A damaged trace may have more than an address space.
    busy: u128,
}

impl Planner {
    /// Takes a line in. All regions have the method `only`, if it is given.
    pub(super) fn add(&mut self, record: &Record, only: Option<MethodArgument>) {
        if let Some(moment) = record.moment {
            self.plan.recorded.get_or_insert_default().add(moment);
        }
        let region = self.region(record, only);
        match record.event {
            Event::Alloc { new } if record.method.is_some() => self.alloc(region, record, new),
            // A block that was in use when the trace began, or one that was seen.
            Event::Alloc { new } if self.blocks.region_at(new).is_some() => {}
            Event::Alloc { new } => self.alloc(region, record, new),
            Event::Resize { old, new } => self.resize(region, record, old, new),
            Event::Free { old } => self.free(region, old),
            Event::Compact => {
                self.plan.counts.compactions += 1;
                self.plan.calls.push(Call::Compact { region });
            }
        }
        self.plan.peak = self.plan.peak.max(usize::try_from(self.busy).unwrap_or(usize::MAX));
    }

    /// Returns the plan.
    pub(super) fn finish(mut self) -> Plan {
        let live = |block: Block| Live { size: block.size, place: block.place };
        self.plan.live = self.blocks.into_all().into_iter().map(live).collect();
        self.plan
    }

    /// Returns the number of a line's region, which may be a new one at the address of another.
    fn region(&mut self, record: &Record, only: Option<MethodArgument>) -> usize {
        let method = only.or(record.method);
        if let Some(&region) = self.regions.get(&record.region) {
            let is_same = method.is_none_or(|method| self.plan.regions[region] == method);
            if is_same {
                return region;
            }
            self.close(region);
        }
        let region = self.plan.regions.len();
        self.plan.regions.push(method.unwrap_or(MethodArgument::Best));
        self.regions.insert(record.region, region);
        self.addresses.push(record.region);
        self.plan.calls.push(Call::Open { region });
        region
    }

    fn alloc(&mut self, region: usize, record: &Record, new: u64) {
        self.make_room(region, new);
        let (size, align) = (record.size, record.align);
        let number = self.plan.blocks;
        self.plan.blocks += 1;
        self.plan.counts.allocs += 1;
        self.busy += size as u128;
        self.plan.calls.push(Call::Alloc { region, block: number, size, align });
        let place = self.place(record);
        self.blocks.insert(new, Block { region, number, size, place });
    }

    fn resize(&mut self, region: usize, record: &Record, old: u64, new: u64) {
        let Some(mut block) = self.blocks.remove(region, old) else {
            self.plan.counts.unknown += 1;
            return self.alloc(region, record, new);
        };
        self.make_room(region, new);
        self.plan.counts.resizes += 1;
        self.busy = self.busy - block.size as u128 + record.size as u128;
        let (number, size) = (block.number, record.size);
        self.plan.calls.push(Call::Resize { region, block: number, size });
        block.size = size;
        block.place = self.place(record).or(block.place);
        self.blocks.insert(new, block);
    }

    fn free(&mut self, region: usize, old: u64) {
        let Some(block) = self.blocks.remove(region, old) else {
            self.plan.counts.unknown += 1;
            return;
        };
        self.plan.calls.push(Call::Free { region, block: block.number });
        self.plan.counts.frees += 1;
        self.busy -= block.size as u128;
    }

    /// Sees to it that no block is in use at an address that is handed out.
    fn make_room(&mut self, region: usize, new: u64) {
        match self.blocks.region_at(new) {
            None => {}
            Some(same) if same == region => {
                self.drop_blocks(region);
                self.plan.counts.clears += 1;
                self.plan.calls.push(Call::Clear { region });
            }
            Some(other) => self.close(other),
        }
    }

    fn close(&mut self, region: usize) {
        self.drop_blocks(region);
        self.plan.calls.push(Call::Close { region });
        self.regions.remove(&self.addresses[region]);
    }

    fn drop_blocks(&mut self, region: usize) {
        for block in self.blocks.remove_all_of(region) {
            self.busy -= block.size as u128;
            self.plan.calls.push(Call::Drop { region, block: block.number });
        }
    }

    fn place(&mut self, record: &Record) -> Option<Rc<str>> {
        let place = record.place.as_deref()?;
        if let Some(known) = self.places.get(place) {
            return Some(Rc::clone(known));
        }
        let place: Rc<str> = place.into();
        self.places.insert(Rc::clone(&place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::parse;
    use super::*;

    fn plan(lines: &str, only: Option<MethodArgument>) -> Plan {
        let mut planner = Planner::default();
        for line in lines.lines() {
            planner.add(&parse(line).unwrap(), only);
        }
        planner.finish()
    }

    /// A damaged trace may have any sizes.
    #[test]
    fn the_sum_of_sizes_may_be_larger_than_memory() {
        let most = usize::MAX;
        let lines =
            format!("0:10:{most}:0:7:b:\n0:20:{most}:0:7:b:\n10:30:8:0:7:b:\n20:0:{most}:0:7:b:\n");
        let plan = plan(&lines, None);
        assert_eq!((plan.peak, plan.live.len(), plan.live[0].size), (most, 1, 8));
    }

    #[test]
    fn calls_have_the_numbers_of_their_blocks() {
        let lines = "0:10:100:0:7:b:file=a.c,line=1:\n0:20:50:0:7:b:\n10:30:200:0:7:b:\n\
                     20:0:56:0:7:b:\n0:0:0:0:7:b:\n";
        let plan = plan(lines, None);
        let (region, align) = (0, 0);
        assert_eq!(
            plan.calls,
            [
                Call::Open { region },
                Call::Alloc { region, block: 0, size: 100, align },
                Call::Alloc { region, block: 1, size: 50, align },
                Call::Resize { region, block: 0, size: 200 },
                Call::Free { region, block: 1 },
                Call::Compact { region },
            ]
        );
        assert_eq!((plan.blocks, plan.peak), (2, 250));
        assert_eq!(plan.live, [Live { size: 200, place: Some("a.c:1".into()) }]);
        let counts =
            Counts { allocs: 2, resizes: 1, frees: 1, compactions: 1, ..Counts::default() };
        assert_eq!(plan.counts, counts);
    }

    #[test]
    fn an_address_that_is_in_use_means_that_its_region_was_cleared_or_closed() {
        let plan = plan("0:10:8:0:7:l:\n0:10:8:0:7:l:\n0:10:8:0:9:l:\n0:10:8:0:9:p:\n", None);
        let (region, size, align) = (0, 8, 0);
        assert_eq!(
            plan.calls,
            [
                Call::Open { region },
                Call::Alloc { region, block: 0, size, align },
                Call::Drop { region, block: 0 },
                Call::Clear { region },
                Call::Alloc { region, block: 1, size, align },
                Call::Open { region: 1 },
                Call::Drop { region, block: 1 },
                Call::Close { region },
                Call::Alloc { region: 1, block: 2, size, align },
                Call::Drop { region: 1, block: 2 },
                Call::Close { region: 1 },
                Call::Open { region: 2 },
                Call::Alloc { region: 2, block: 3, size, align },
            ]
        );
        assert_eq!((plan.regions.len(), plan.peak, plan.counts.clears), (3, 8, 1));
    }

    #[test]
    fn blocks_that_were_not_seen_are_counted() {
        let plan = plan("50:0:8:0:7:b:\n0:10:8:0:7:u:\n0:10:8:0:7:u:\n60:70:5:0:7:b:\n", None);
        assert_eq!((plan.counts.unknown, plan.counts.allocs, plan.live.len()), (2, 2, 2));
    }

    #[test]
    fn a_resize_in_another_region_leaves_the_block_to_its_own() {
        let plan = plan("0:10:8:0:7:b:\n10:20:5:0:9:b:\n10:0:8:0:7:b:\n", None);
        let counts = (plan.counts.unknown, plan.counts.frees, plan.counts.allocs);
        assert_eq!(counts, (1, 1, 2));
        assert_eq!(plan.live, [Live { size: 5, place: None }]);
    }

    #[test]
    fn one_method_may_stand_for_all() {
        let plan = plan("0:10:8:0:7:l:\n0:20:8:0:7:p:\n", Some(MethodArgument::Malloc));
        assert_eq!(plan.regions, [MethodArgument::Malloc]);
    }
}
