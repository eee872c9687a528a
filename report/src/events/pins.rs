//! Who pins memory: the pages that live blocks keep in use, by what allocated the blocks.

use std::collections::BTreeMap;

use super::choice::Choice;
use super::filter::Filter;
use super::groups::{By, Groups};
use super::ledger::{Block, Ledger};
use super::names::Names;
use super::pages::{PageSize, Run, Runs, Span};
use super::recording::Recording;
use crate::error::Result;

/// At most so many blocks of a page are listed.
const BLOCKS: usize = 8;

/// What is shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which blocks. The others still hold their pages.
    pub filter: Filter,
    /// What the blocks of a row have in common.
    pub by: By,
    /// The most rows.
    pub top: usize,
    /// The size of a page.
    pub page: PageSize,
    /// The most pages that are listed with their blocks.
    pub emptiest: usize,
}

/// Blocks, and pages that nothing else holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    /// Live blocks.
    pub(super) blocks: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// The pages that they touch.
    pub(super) touched: u64,
    /// The pages that no other block touches.
    pub(super) pages: u64,
    /// The bytes of blocks in these pages.
    pub(super) filled: u64,
}

impl Holding {
    fn add_block(&mut self, block: &Block) {
        self.blocks += 1;
        self.bytes = self.bytes.saturating_add(block.size);
    }

    fn add_run(&mut self, run: &Run) {
        self.pages += run.count();
        self.filled = self.filled.saturating_add(run.live);
    }
}

/// Neighbouring pages that few bytes keep in use.
pub(super) struct Kept {
    /// The first byte of the first page.
    pub(super) address: u64,
    /// The bytes of the pages.
    pub(super) bytes: u64,
    /// The bytes of the blocks that touch the pages.
    pub(super) whole: u64,
    /// The first of these blocks, by their addresses, each with the text of its row.
    pub(super) blocks: Vec<(Block, Vec<String>)>,
    /// How many more there are.
    pub(super) more: usize,
}

/// Who pins memory at the end of a recording.
pub(super) struct Pins {
    /// Each row with the lines of its text: first the one with the most pages.
    pub(super) rows: Vec<(Vec<String>, Holding)>,
    /// All live blocks.
    pub(super) total: Holding,
    /// Those that are shown.
    pub(super) shown: Holding,
    /// The pages that the fewest bytes keep, all of whose blocks are shown.
    pub(super) emptiest: Vec<Kept>,
    /// The time of the last event, or of the end of the recording.
    pub(super) end: u64,
}

impl Pins {
    /// Reads all events.
    pub(super) fn new(names: &mut Names<'_>, options: &Options) -> Result<Pins> {
        let (live, end) = live(names.recording())?;
        let choice = Choice::new(&options.filter, names);
        let mut groups = Groups::new(options.by);
        let rows = live.iter().map(|block| {
            let is_shown = choice.has_block(block, None, end, names);
            is_shown.then(|| groups.of(block, None, names))
        });
        let rows: Vec<Option<usize>> = rows.collect();
        let pages = Pages::new(&live, &rows, groups.count(), options);
        let text = |place: usize| rows[place].map_or(Vec::new(), |row| groups.lines(row).to_vec());
        let emptiest = pages.kept(&live, options.page, text);
        let mut rows: Vec<_> = groups.into_lines().into_iter().zip(pages.rows).collect();
        rows.sort_by(|(first, one), (second, other)| {
            let by_size = other.pages.cmp(&one.pages).then(other.bytes.cmp(&one.bytes));
            by_size.then_with(|| first.cmp(second))
        });
        Ok(Pins { rows, total: pages.total, shown: pages.shown, emptiest, end })
    }
}

/// The blocks that are live at the end, in the order of their addresses, and when that is.
fn live(recording: &Recording) -> Result<(Vec<Block>, u64)> {
    let mut ledger = Ledger::new(recording);
    for event in recording.events() {
        ledger.apply(&event?);
    }
    let end = ledger.last();
    let mut live = ledger.into_live();
    live.sort_by_key(|block| block.address);
    Ok((live, end))
}

/// What is found while the pages are gone over.
struct Pages {
    rows: Vec<Holding>,
    total: Holding,
    shown: Holding,
    /// The pages that the fewest bytes keep, all of whose blocks are shown.
    emptiest: Vec<Run>,
}

impl Pages {
    /// Goes over the pages of some blocks, which are in the order of their addresses. A block
    /// without a row is not shown.
    fn new(live: &[Block], rows: &[Option<usize>], count: usize, options: &Options) -> Pages {
        let (mut total, mut shown) = (Holding::default(), Holding::default());
        let mut holdings = vec![Holding::default(); count];
        let mut spans = Vec::with_capacity(live.len());
        for (block, row) in live.iter().zip(rows) {
            total.add_block(block);
            if let Some(row) = *row {
                shown.add_block(block);
                holdings[row].add_block(block);
            }
            spans.push(Span { address: block.address, size: block.size, row: *row });
        }
        let mut emptiest = Emptiest { most: options.emptiest, found: BTreeMap::new() };
        let mut runs = Runs::new(&spans, count, options.page);
        for run in runs.by_ref() {
            total.touched += run.count();
            shown.touched += if run.shown > 0 { run.count() } else { 0 };
            total.add_run(&run);
            if let Some(row) = run.row {
                holdings[row].add_run(&run);
            }
            if run.is_shown() {
                shown.add_run(&run);
                emptiest.add(run);
            }
        }
        for (holding, touched) in holdings.iter_mut().zip(runs.into_touched()) {
            holding.touched = touched;
        }
        let emptiest = emptiest.found.into_values().collect();
        Pages { rows: holdings, total, shown, emptiest }
    }

    /// The blocks of the emptiest pages. `text` tells the text of a block's row by its place.
    fn kept(
        &self,
        live: &[Block],
        page: PageSize,
        text: impl Fn(usize) -> Vec<String>,
    ) -> Vec<Kept> {
        let kept = self.emptiest.iter().map(|run| Kept {
            address: page.bytes_of(run.pages.start),
            bytes: page.bytes_of(run.count()),
            whole: run.whole,
            blocks: Vec::new(),
            more: 0,
        });
        let mut kept: Vec<Kept> = kept.collect();
        let runs = self.emptiest.iter().enumerate();
        let places: BTreeMap<u64, usize> =
            runs.map(|(place, run)| (run.pages.start, place)).collect();
        for (place, block) in live.iter().enumerate() {
            let span = Span { address: block.address, size: block.size, row: None };
            // A block touches all pages of a run or none.
            for (_, at) in places.range(span.pages(page)) {
                match kept[*at].blocks.len() < BLOCKS {
                    true => kept[*at].blocks.push((*block, text(place))),
                    false => kept[*at].more += 1,
                }
            }
        }
        kept
    }
}

/// The pages that the fewest bytes keep, so far.
struct Emptiest {
    most: usize,
    /// By the bytes of the blocks for each page, the number of the blocks, and the first page.
    found: BTreeMap<(u64, usize, u64), Run>,
}

impl Emptiest {
    fn add(&mut self, run: Run) {
        self.found.insert((run.whole / run.count(), run.blocks, run.pages.start), run);
        if self.found.len() > self.most {
            self.found.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Old, Range};
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    fn of(file: &File, options: &Options) -> Pins {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        Pins::new(&mut names, options).expect("pins")
    }

    fn all() -> Options {
        let page = PageSize::default();
        Options { filter: Filter::default(), by: By::Site, top: 9, page, emptiest: 9 }
    }

    /// An old block and one of site 1 in page 1, site 1 alone in pages 2 and 3, site 2 in the pages
    /// from 4 to 6, and a block of it in page 8 that was deleted.
    fn file() -> File {
        let new = |time, address, size, site| (time, Happens::New(address, size), site);
        File::default()
            .stack(1, &[0x101])
            .stack(2, &[0x201])
            .old(1, &[[0x1000, 64, 0]])
            .events(
                7,
                &[
                    new(2, 0x1800, 32, 1),
                    new(3, 0x8000, 16, 2),
                    new(4, 0x2ff0, 32, 1),
                    new(5, 0x4000, 0x2800, 2),
                    new(6, 0x6900, 16, 2),
                    (7, Happens::Delete(0x8000, 0), 2),
                ],
            )
            .end(9, 0)
    }

    fn numbers(holding: &Holding) -> [u64; 5] {
        let Holding { blocks, bytes, touched, pages, filled } = *holding;
        [blocks, bytes, touched, pages, filled]
    }

    fn rows(pins: &Pins) -> Vec<(&str, [u64; 5])> {
        pins.rows.iter().map(|(lines, holding)| (lines[0].as_str(), numbers(holding))).collect()
    }

    #[test]
    fn a_row_pins_the_pages_that_only_its_blocks_touch() {
        let pins = of(&file(), &all());
        let expected = [
            ("0x200", [2, 0x2810, 3, 3, 0x2810]),
            ("0x100", [2, 64, 3, 2, 32]),
            ("(older than the recording)", [1, 64, 1, 0, 0]),
        ];
        assert_eq!(rows(&pins), expected);
        let total = [5, 0x2890, 6, 6, 0x2890];
        assert_eq!((numbers(&pins.total), numbers(&pins.shown)), (total, total));
    }

    #[test]
    fn blocks_that_are_not_shown_hold_their_pages() {
        let filter = Filter { old: Old::Excluded, ..Filter::default() };
        let pins = of(&file(), &Options { filter, ..all() });
        let first = ("0x200", [2, 0x2810, 3, 3, 0x2810]);
        assert_eq!(rows(&pins), [first, ("0x100", [2, 64, 3, 2, 32])]);
        assert_eq!(numbers(&pins.shown), [4, 0x2850, 6, 5, 0x2830]);
        let filter = Filter { size: Range { min: 16, max: 32 }, ..Filter::default() };
        let pins = of(&file(), &Options { filter, ..all() });
        assert_eq!(rows(&pins), [("0x100", [2, 64, 3, 2, 32]), ("0x200", [1, 16, 1, 0, 0])]);
        assert_eq!(numbers(&pins.shown), [3, 80, 4, 2, 32]);
        assert_eq!(numbers(&pins.total), [5, 0x2890, 6, 6, 0x2890]);
    }

    #[test]
    fn larger_pages_have_more_holders() {
        let page = PageSize::new(2 << 20).expect("a size");
        let pins = of(&file(), &Options { page, ..all() });
        assert_eq!(pins.rows.iter().map(|(_, row)| row.pages).sum::<u64>(), 0);
        assert_eq!((pins.total.pages, pins.total.touched), (1, 1));
    }

    #[test]
    fn few_bytes_are_counted_for_each_page() {
        let events = [(1, Happens::New(0x8000, 20), 0), (2, Happens::New(0x2ff0, 32), 0)];
        let pins = of(&File::default().events(1, &events), &all());
        let addresses: Vec<u64> = pins.emptiest.iter().map(|kept| kept.address).collect();
        assert_eq!(addresses, [0x2000, 0x8000]);
    }

    fn kept(options: &Options) -> Vec<(u64, u64, u64, Vec<u64>, usize)> {
        let addresses = |kept: &Kept| kept.blocks.iter().map(|(it, _)| it.address).collect();
        let pins = of(&file(), options);
        let numbers = |it: &Kept| (it.address, it.bytes, it.whole, addresses(it), it.more);
        pins.emptiest.iter().map(numbers).collect()
    }

    #[test]
    fn pages_that_few_bytes_keep_come_first() {
        let expected = vec![
            (0x2000, 0x2000, 32, vec![0x2ff0], 0),
            (0x1000, 0x1000, 96, vec![0x1000, 0x1800], 0),
            (0x4000, 0x2000, 0x2800, vec![0x4000], 0),
            (0x6000, 0x1000, 0x2810, vec![0x4000, 0x6900], 0),
        ];
        assert_eq!(kept(&all()), expected);
        assert_eq!(kept(&Options { emptiest: 1, ..all() }), expected[..1]);
        assert_eq!(kept(&Options { emptiest: 0, ..all() }), []);
        let filter = Filter { old: Old::Excluded, ..Filter::default() };
        let without_old = [&expected[..1], &expected[2..]].concat();
        assert_eq!(kept(&Options { filter, ..all() }), without_old);
    }

    #[test]
    fn the_number_of_blocks_of_a_page_is_bounded() {
        let events: Vec<_> = (0..10).map(|it| (it, Happens::New(it * 16, 16), 0)).collect();
        let pins = of(&File::default().events(1, &events), &all());
        let kept = &pins.emptiest[0];
        assert_eq!((kept.blocks.len(), kept.more, kept.whole), (8, 2, 160));
        assert_eq!(kept.blocks[0].1, ["(no stack)"]);
    }
}
