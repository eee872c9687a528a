//! How long blocks live, by what allocates them.

use std::collections::{BTreeMap, HashMap};

use super::choice::Choice;
use super::decoder::Event;
use super::filter::Filter;
use super::groups::{By, Groups};
use super::ledger::{Block, Ledger, Step};
use super::names::Names;
use crate::error::Result;

/// The bounds of the classes of ages, in nanoseconds.
pub(super) const BOUNDS: [u64; 3] = [1_000_000, 100_000_000, 10_000_000_000];
/// The bits of ages that are kept for the median.
const BITS: u32 = 7;

/// What is shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which blocks.
    pub filter: Filter,
    /// What the blocks of a row have in common.
    pub by: By,
    /// The most rows.
    pub top: usize,
}

/// How the blocks of a row lived.
#[derive(Clone, Default)]
pub(super) struct Lives {
    /// Allocations.
    pub(super) allocations: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Blocks that were not freed.
    pub(super) live: u64,
    /// Their bytes.
    pub(super) live_bytes: u64,
    /// Blocks that another thread freed.
    pub(super) by_other: u64,
    /// Blocks whose deletion is the next event of the thread that allocated them.
    pub(super) next: u64,
    /// Blocks that their thread freed with at most one other allocation of its in between.
    pub(super) soon: u64,
    /// Freed blocks by their ages: below each of [`BOUNDS`], and older ones.
    pub(super) classes: [u64; 4],
    /// How many blocks had each age, rounded.
    ages: BTreeMap<u64, u64>,
}

impl Lives {
    /// The median age of the freed blocks, in nanoseconds.
    pub(super) fn median(&self) -> Option<u64> {
        let middle = self.ages.values().sum::<u64>().div_ceil(2);
        let mut count = 0;
        let mut ages = self.ages.iter();
        let median = ages.find(|(_, blocks)| {
            count += *blocks;
            count >= middle
        });
        median.map(|(age, _)| *age)
    }

    /// Adds a block. `death` is how it was deleted.
    fn add(&mut self, block: &Block, death: Option<&Death>) {
        self.allocations += 1;
        self.bytes = self.bytes.saturating_add(block.size);
        let Some(death) = death else {
            self.live += 1;
            self.live_bytes = self.live_bytes.saturating_add(block.size);
            return;
        };
        self.by_other += u64::from(death.is_by_other);
        self.next += u64::from(death.is_next);
        self.soon += u64::from(death.is_soon);
        let class = BOUNDS.iter().position(|bound| death.age < *bound);
        self.classes[class.unwrap_or(BOUNDS.len())] += 1;
        *self.ages.entry(rounded(death.age)).or_default() += 1;
    }
}

/// An age of which only the first bits are kept, so that there are not many different ones.
fn rounded(age: u64) -> u64 {
    let rest = age.checked_ilog2().unwrap_or(0).saturating_sub(BITS - 1);
    age >> rest << rest
}

/// How a block was deleted.
struct Death {
    age: u64,
    is_by_other: bool,
    is_next: bool,
    is_soon: bool,
}

/// What a thread did last, by the numbers of the events.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// The last event, if it was an allocation.
    last: Option<u64>,
    /// The last two allocations.
    allocations: [Option<u64>; 2],
}

/// The lives of all blocks that the recording allocated.
pub(super) struct Lifetimes {
    /// Each row with the lines of its text: first the one with the most allocations.
    pub(super) rows: Vec<(Vec<String>, Lives)>,
    /// All rows together.
    pub(super) total: Lives,
    /// The time of the last event, or of the end of the recording.
    pub(super) end: u64,
}

impl Lifetimes {
    /// Reads all events.
    pub(super) fn new(names: &mut Names<'_>, options: &Options) -> Result<Lifetimes> {
        let recording = names.recording();
        let mut ledger = Ledger::new(recording);
        let mut rows = Rows::new(options, names);
        let mut threads: HashMap<u64, Recent> = HashMap::new();
        for event in recording.events() {
            let (event, number) = (event?, ledger.count());
            let recent = threads.entry(event.thread).or_default();
            let step = ledger.apply(&event);
            match step {
                Step::Deleted(block) => {
                    if let Some(death) = death(&block, &event, recent) {
                        rows.add(&block, Some((&event, death)), event.time, names);
                    }
                }
                Step::Replaced(block) => rows.add(&block, None, event.time, names),
                Step::Allocated | Step::Unknown => {}
            }
            recent.last = event.is_allocation().then_some(number);
            if event.is_allocation() {
                recent.allocations = [Some(number), recent.allocations[0]];
            }
        }
        let end = ledger.last();
        for block in ledger.into_live() {
            rows.add(&block, None, end, names);
        }
        Ok(rows.finish(end))
    }
}

/// How an event deletes a block. Old blocks are not looked at.
fn death(block: &Block, event: &Event, recent: &Recent) -> Option<Death> {
    let number = block.number()?;
    let allocation = block.allocation()?;
    Some(Death {
        age: event.time.saturating_sub(allocation.time),
        is_by_other: allocation.thread != event.thread,
        is_next: recent.last == Some(number),
        is_soon: recent.allocations.contains(&Some(number)),
    })
}

/// The rows so far.
struct Rows<'o> {
    choice: Choice<'o>,
    groups: Groups,
    total: Lives,
    lives: Vec<Lives>,
}

impl Rows<'_> {
    fn new<'o>(options: &'o Options, names: &Names<'_>) -> Rows<'o> {
        Rows {
            choice: Choice::new(&options.filter, names),
            groups: Groups::new(options.by),
            total: Lives::default(),
            lives: Vec::new(),
        }
    }

    fn add(
        &mut self,
        block: &Block,
        deletion: Option<(&Event, Death)>,
        end: u64,
        names: &mut Names<'_>,
    ) {
        let event = deletion.as_ref().map(|(event, _)| *event);
        if block.is_old() || !self.choice.has_block(block, event, end, names) {
            return;
        }
        let group = self.groups.of(block, event, names);
        self.lives.resize_with(self.groups.count(), Lives::default);
        let death = deletion.map(|(_, death)| death);
        self.total.add(block, death.as_ref());
        self.lives[group].add(block, death.as_ref());
    }

    fn finish(self, end: u64) -> Lifetimes {
        let mut rows: Vec<_> = self.groups.into_lines().into_iter().zip(self.lives).collect();
        rows.sort_by(|(first, one), (second, other)| {
            other.allocations.cmp(&one.allocations).then_with(|| first.cmp(second))
        });
        Lifetimes { rows, total: self.total, end }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::Recording;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    fn lifetimes(file: &File, options: &Options) -> Lifetimes {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        Lifetimes::new(&mut names, options).expect("lifetimes")
    }

    fn all() -> Options {
        Options { filter: Filter::default(), by: By::Site, top: 9 }
    }

    #[test]
    fn temporary_blocks_are_known_by_the_events_of_their_thread() {
        let new = |address| Happens::New(address, 8);
        let delete = |address| Happens::Delete(address, 0);
        let of = |one: &[(u64, Happens, u64)], other: &[(u64, Happens, u64)]| {
            let file = File::default().events(1, one).events(2, other);
            let total = lifetimes(&file, &all()).total;
            [total.next, total.soon, total.by_other]
        };
        assert_eq!(of(&[(1, new(8), 0), (3, delete(8), 0)], &[(2, new(16), 0)]), [1, 1, 0]);
        let one_between = [(1, new(8), 0), (2, new(16), 0), (3, delete(8), 0)];
        assert_eq!(of(&one_between, &[]), [0, 1, 0]);
        let freed_between =
            [(1, new(16), 0), (2, new(8), 0), (3, delete(16), 0), (4, delete(8), 0)];
        assert_eq!(of(&freed_between, &[]), [0, 2, 0]);
        let two_between = [(1, new(8), 0), (2, new(16), 0), (3, new(24), 0), (4, delete(8), 0)];
        assert_eq!(of(&two_between, &[]), [0, 0, 0]);
        assert_eq!(of(&[(1, new(8), 0)], &[(2, delete(8), 0)]), [0, 0, 1]);
    }

    #[test]
    fn ages_have_classes_and_a_median() {
        let mut events = Vec::new();
        for (place, age) in
            [999_999, 1_000_000, 100_000_000, 9_999_999_999, 10_000_000_000].iter().enumerate()
        {
            events.push((place as u64, Happens::New(place as u64 + 1, 8), 0));
            events.push((place as u64 + age, Happens::Delete(place as u64 + 1, 0), 0));
        }
        events.push((7, Happens::New(90, 5), 0));
        events.sort_by_key(|event| event.0);
        let total = lifetimes(&File::default().events(1, &events), &all()).total;
        assert_eq!(total.classes, [1, 1, 2, 1]);
        assert_eq!((total.allocations, total.bytes, total.live, total.live_bytes), (6, 45, 1, 5));
        let median = total.median().expect("a median");
        assert_eq!(median, rounded(100_000_000));
        assert_eq!(lifetimes(&File::default(), &all()).total.median(), None);
    }

    #[test]
    fn ages_are_rounded_to_seven_bits() {
        for (age, expected) in [(0, 0), (127, 127), (128, 128), (129, 128), (u64::MAX, 0x7f << 57)]
        {
            assert_eq!(rounded(age), expected);
        }
        let of = |ages: &[u64]| {
            let ages = ages.iter().map(|age| (*age, 1)).collect();
            Lives { ages, ..Lives::default() }.median()
        };
        assert_eq!(
            [of(&[]), of(&[5]), of(&[5, 7]), of(&[5, 7, 9])],
            [None, Some(5), Some(5), Some(7)]
        );
    }

    #[test]
    fn old_blocks_are_not_counted() {
        let file = File::default()
            .old(1, &[[8, 8, 0], [16, 8, 0]])
            .events(1, &[(2, Happens::Delete(8, 0), 0)]);
        let found = lifetimes(&file, &all());
        assert_eq!((found.total.allocations, found.rows.len()), (0, 0));
    }

    #[test]
    fn rows_are_sorted_by_their_allocations() {
        let file = File::default().stack(1, &[0x101, 0x301]).stack(2, &[0x201]).stack(3, &[0x101]);
        let new = |time, stack| (time, Happens::New(time, 8), stack);
        let file = file.events(1, &[new(1, 2), new(2, 1), new(3, 3), new(4, 2), new(5, 1)]);
        let of = |by| {
            let rows = lifetimes(&file, &Options { by, ..all() }).rows;
            let row = |(lines, lives): &(Vec<String>, Lives)| (lines.join("|"), lives.allocations);
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let owned = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
            rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        assert_eq!(of(By::Site), owned(&[("0x100", 3), ("0x200", 2)]));
        assert_eq!(of(By::Stack), owned(&[("0x100|0x300", 2), ("0x200", 2), ("0x100", 1)]));
        assert_eq!(of(By::Type), owned(&[("notype", 5)]));
    }
}
