//! The pages that blocks touch, and who holds them.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// The size of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    bits: u32,
}

impl PageSize {
    /// The size in bytes, if it is a power of two from 4 KiB to 1 GiB.
    pub fn new(bytes: u64) -> Option<PageSize> {
        let is_size = bytes.is_power_of_two() && (1 << 12..=1 << 30).contains(&bytes);
        is_size.then(|| PageSize { bits: bytes.ilog2() })
    }

    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        1 << self.bits
    }

    /// The bytes of some pages.
    pub(super) fn bytes_of(self, pages: u64) -> u64 {
        pages.saturating_mul(self.bytes())
    }
}

impl Default for PageSize {
    /// 4 KiB.
    fn default() -> PageSize {
        PageSize { bits: 12 }
    }
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first byte.
    pub(super) address: u64,
    /// The number of bytes. A block of none touches the page of its address.
    pub(super) size: u64,
    /// The row that the block belongs to; none if the block is not shown.
    pub(super) row: Option<usize>,
}

impl Span {
    /// The numbers of the pages that the block touches.
    pub(super) fn pages(&self, page: PageSize) -> Range<u64> {
        let last = self.address.saturating_add(self.size.saturating_sub(1));
        self.address >> page.bits..(last >> page.bits) + 1
    }
}

/// Neighbouring pages that the same blocks touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The numbers of the pages.
    pub(super) pages: Range<u64>,
    /// The bytes of blocks in these pages.
    pub(super) live: u64,
    /// How many blocks touch them.
    pub(super) blocks: usize,
    /// The bytes of these blocks, in other pages too.
    pub(super) whole: u64,
    /// The row to which all these blocks belong, if it is one.
    pub(super) row: Option<usize>,
    /// How many of these blocks are shown.
    pub(super) shown: usize,
}

impl Run {
    /// Whether all blocks are shown.
    pub(super) fn is_shown(&self) -> bool {
        self.shown == self.blocks
    }

    /// How many pages there are.
    pub(super) fn count(&self) -> u64 {
        self.pages.end - self.pages.start
    }
}

/// Goes over the pages with blocks, from the lowest address up.
///
/// The pages in the middle of a large block are one run, so the time depends on the number of the
/// blocks and not on their sizes. Blocks may overlap, because those of a damaged file do.
pub(super) struct Runs<'s> {
    page: PageSize,
    /// All blocks, in the order of their addresses.
    spans: &'s [Span],
    /// How many of them have begun.
    begun: usize,
    /// Those under way: the page behind the last one of each, and its place.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// The rows of those under way: how many of its blocks, and the first page.
    rows: BTreeMap<usize, (usize, u64)>,
    /// How many of those under way have a row.
    shown: usize,
    /// The bytes of those under way.
    whole: u128,
    coverage: Coverage<'s>,
    /// How many pages the blocks of each row touch.
    touched: Vec<u64>,
    /// The page behind the last run.
    next: u64,
}

impl<'s> Runs<'s> {
    /// Begins. The blocks are in the order of their addresses, and their rows are below a number.
    pub(super) fn new(spans: &'s [Span], rows: usize, page: PageSize) -> Runs<'s> {
        Runs {
            page,
            spans,
            begun: 0,
            ends: BinaryHeap::new(),
            rows: BTreeMap::new(),
            shown: 0,
            whole: 0,
            coverage: Coverage { spans, limit: 0 },
            touched: vec![0; rows],
            next: 0,
        }
    }

    /// How many pages the blocks of each row touch. Complete after the last run.
    pub(super) fn into_touched(self) -> Vec<u64> {
        self.touched
    }

    /// The first page of the next block that has not begun.
    fn first_of_rest(&self) -> Option<u64> {
        self.spans.get(self.begun).map(|span| span.pages(self.page).start)
    }

    /// Begins with the blocks whose first page this is.
    fn begin(&mut self, page: u64) {
        while self.first_of_rest() == Some(page) {
            let span = &self.spans[self.begun];
            self.ends.push(Reverse((span.pages(self.page).end, self.begun)));
            self.whole += u128::from(span.size);
            if let Some(row) = span.row {
                self.rows.entry(row).or_insert((0, page)).0 += 1;
                self.shown += 1;
            }
            self.begun += 1;
        }
    }

    /// Ends the blocks that do not touch this page any more.
    fn end(&mut self, page: u64) {
        while let Some(&Reverse((end, place))) = self.ends.peek()
            && end == page
        {
            self.ends.pop();
            let span = &self.spans[place];
            self.whole -= u128::from(span.size);
            let Some(row) = span.row else { continue };
            self.shown -= 1;
            let Entry::Occupied(mut entry) = self.rows.entry(row) else { continue };
            let (blocks, since) = entry.get_mut();
            *blocks -= 1;
            if *blocks == 0 {
                self.touched[row] += page - *since;
                entry.remove();
            }
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let first = match self.ends.is_empty() {
            true => self.first_of_rest()?,
            false => self.next,
        };
        self.begin(first);
        let Reverse((end, _)) = *self.ends.peek()?;
        let limit = self.first_of_rest().map_or(end, |page| page.min(end));
        let (blocks, shown) = (self.ends.len(), self.shown);
        let has_one = shown == blocks && self.rows.len() == 1;
        let run = Run {
            pages: first..limit,
            live: self.coverage.below(self.page.bytes_of(limit)),
            blocks,
            whole: u64::try_from(self.whole).unwrap_or(u64::MAX),
            row: self.rows.keys().next().copied().filter(|_| has_one),
            shown,
        };
        self.end(limit);
        self.next = limit;
        Some(run)
    }
}

/// How many bytes blocks cover. Where blocks overlap, a byte counts once.
struct Coverage<'s> {
    /// The blocks that are not counted yet as a whole.
    spans: &'s [Span],
    /// Up to where the bytes are counted.
    limit: u64,
}

impl Coverage<'_> {
    /// The bytes from the last limit to this one.
    fn below(&mut self, limit: u64) -> u64 {
        let mut bytes = 0;
        while let Some((span, rest)) = self.spans.split_first() {
            let end = span.address.saturating_add(span.size);
            let from = self.limit.max(span.address);
            if from < limit && from < end {
                self.limit = limit.min(end);
                bytes += self.limit - from;
            }
            if end > limit || span.address >= limit {
                break;
            }
            self.spans = rest;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(address: u64, size: u64, row: Option<usize>) -> Span {
        Span { address, size, row }
    }

    /// The runs of some blocks of three rows, and how many pages each row touches.
    fn all(spans: &[Span], page: PageSize) -> (Vec<Run>, Vec<u64>) {
        let mut runs = Runs::new(spans, 3, page);
        let found = runs.by_ref().collect();
        (found, runs.into_touched())
    }

    #[test]
    fn sizes_of_pages_are_powers_of_two() {
        let of = |bytes| PageSize::new(bytes).map(PageSize::bytes);
        assert_eq!([4096, 2 << 20, 1 << 30].map(of), [Some(4096), Some(2 << 20), Some(1 << 30)]);
        assert_eq!([0, 2048, 4097, 2 << 30, u64::MAX].map(of), [None; 5]);
        assert_eq!(PageSize::default().bytes(), 4096);
    }

    #[test]
    fn pages_of_different_blocks_are_told_apart() {
        let spans = [
            span(0x1010, 16, Some(0)),
            span(0x1ff0, 0x20, Some(0)),
            span(0x2100, 0x3000, Some(1)),
            span(0x9000, 0, Some(2)),
            span(0x9800, 8, None),
            span(0xa000, 0x1000, Some(2)),
        ];
        let run = |pages, live, blocks, whole, row| Run {
            pages,
            live,
            blocks,
            whole,
            row,
            shown: blocks,
        };
        let expected = vec![
            run(1..2, 32, 2, 48, Some(0)),
            run(2..3, 0x10 + 0xf00, 2, 0x3020, None),
            run(3..6, 0x2100, 1, 0x3000, Some(1)),
            Run { shown: 1, ..run(9..10, 8, 2, 8, None) },
            run(10..11, 0x1000, 1, 0x1000, Some(2)),
        ];
        assert_eq!(all(&spans, PageSize::default()), (expected, vec![2, 4, 2]));
    }

    #[test]
    fn the_last_page_of_all_is_no_exception() {
        let most = u64::MAX;
        let spans = [span(0, most, Some(0)), span(most, most, Some(0))];
        let (runs, touched) = all(&spans, PageSize::default());
        let pages = 1 << 52;
        assert_eq!(touched, [pages, 0, 0]);
        assert_eq!(runs.iter().map(Run::count).sum::<u64>(), pages);
        assert_eq!(runs.iter().map(|run| run.live).sum::<u64>(), most);
    }

    proptest! {
        #[test]
        fn each_page_is_as_if_its_blocks_were_looked_at(
            blocks in proptest::collection::vec(
                (0u64..40_000, prop_oneof![0u64..40, 0u64..20_000],
                 proptest::option::weighted(0.8, 0usize..3)),
                0..30
            )
        ) {
            let mut spans: Vec<Span> =
                blocks.iter().map(|(address, size, row)| span(*address, *size, *row)).collect();
            spans.sort_by_key(|span| span.address);
            let page = PageSize::default();
            let (runs, touched) = all(&spans, page);
            let run_of = |number| runs.iter().find(|run| run.pages.contains(&number));
            let mut expected_touched = vec![0; 3];
            for number in 0..20 {
                let on_page: Vec<&Span> =
                    spans.iter().filter(|span| span.pages(page).contains(&number)).collect();
                let rows = (0..3).filter(|row| on_page.iter().any(|it| it.row == Some(*row)));
                let rows: Vec<usize> = rows.collect();
                rows.iter().for_each(|row| expected_touched[*row] += 1);
                let Some(run) = run_of(number) else {
                    prop_assert!(on_page.is_empty());
                    continue;
                };
                let shown = on_page.iter().filter(|span| span.row.is_some()).count();
                let row = (run.is_shown() && rows.len() == 1).then(|| rows[0]);
                let whole = on_page.iter().map(|span| span.size).sum::<u64>();
                prop_assert_eq!((run.row, run.shown), (row, shown));
                prop_assert_eq!((run.blocks, run.whole), (on_page.len(), whole));
            }
            prop_assert_eq!(touched, expected_touched);
            for run in &runs {
                let bytes = page.bytes_of(run.pages.start)..page.bytes_of(run.pages.end);
                let has = |byte: &u64| {
                    spans.iter().any(|span| (span.address..span.address + span.size).contains(byte))
                };
                prop_assert_eq!(run.live, bytes.filter(has).count() as u64);
            }
        }
    }
}
