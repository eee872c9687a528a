//! A map as cells: each stands for a page, or for some pages.

use super::heap::{Heap, Run, State};

/// Rows that a picture has at most, unless the size of a cell is given.
const ROWS: u64 = 30;

/// How a picture is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Bytes of a cell.
    pub(crate) cell: u64,
    /// Cells of a row.
    pub(crate) width: u64,
}

impl Scale {
    /// Returns the scale with so many pages a cell, or with the fewest pages with which the maps
    /// fit on a screen.
    pub(crate) fn of(heaps: &[&Heap], pages: Option<u64>, width: u64) -> Scale {
        let page = heaps.first().map_or(4096, |heap| heap.page);
        if let Some(pages) = pages {
            return Scale { cell: page.saturating_mul(pages), width };
        }
        let cells = std::iter::successors(Some(page), |cell| cell.checked_mul(2));
        let mut scales = cells.map(|cell| Scale { cell, width });
        let fits = |scale: &Scale| {
            let stretches = stretches(heaps, *scale);
            stretches.iter().map(|stretch| stretch.rows(*scale)).sum::<u64>() <= ROWS
        };
        scales.find(fits).unwrap_or(Scale { cell: 1 << 47, width })
    }

    /// Returns the bytes of a row.
    pub(crate) fn row(self) -> u64 {
        self.cell.saturating_mul(self.width)
    }
}

/// A part of the addresses that is drawn without a gap of more than a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The first address, a multiple of a cell.
    pub(crate) base: u64,
    /// The address behind the last.
    pub(crate) end: u64,
}

impl Stretch {
    /// Returns the number of rows.
    pub(crate) fn rows(&self, scale: Scale) -> u64 {
        (self.end - self.base).div_ceil(scale.row())
    }
}

/// Returns the parts of the addresses that the picture of these maps shows. Addresses without
/// memory are left out where they would take a row and more.
pub(crate) fn stretches(heaps: &[&Heap], scale: Scale) -> Vec<Stretch> {
    let is_shown = |run: &&Run| run.state != State::Retained || run.bytes < scale.row();
    let runs = heaps.iter().flat_map(|heap| heap.runs.iter().filter(is_shown));
    let mut ranges: Vec<(u64, u64)> = runs.map(|run| (run.base.0, run.end())).collect();
    ranges.sort_unstable();
    let mut stretches: Vec<Stretch> = Vec::new();
    for (base, end) in ranges {
        match stretches.last_mut() {
            Some(last) if base < last.end.saturating_add(scale.row()) => {
                last.end = last.end.max(end);
            }
            _ => stretches.push(Stretch { base: base - base % scale.cell, end }),
        }
    }
    stretches
}

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The state that most of its bytes have.
    pub(crate) state: State,
    /// Of a cell with slabs or samples: the blocks in use, in thousandths.
    pub(crate) fill: u64,
    /// Bytes in blocks in use.
    pub(crate) used: u64,
}

/// Returns the cell of the addresses from `base` on, or `None` if no run is there.
pub(crate) fn cell(heap: &Heap, base: u64, bytes: u64) -> Option<Cell> {
    let end = base.saturating_add(bytes);
    let first = heap.runs.partition_point(|run| run.end() <= base);
    let runs = heap.runs.get(first..).unwrap_or_default();
    let here = runs.iter().take_while(|run| run.base.0 < end);
    let mut covered = [0u64; State::ALL.len()];
    let (mut room, mut used) = (0u64, 0u64);
    for run in here {
        let part = run.end().min(end) - run.base.0.max(base);
        let all = &mut covered[run.state as usize];
        *all = all.saturating_add(part);
        // What a run has in use is spread over its bytes evenly.
        used = used.saturating_add(spread(run.used_bytes(), part, run.bytes));
        if matches!(run.state, State::Slab | State::Samples) {
            let blocks = run.block.saturating_mul(run.blocks);
            room = room.saturating_add(spread(blocks, part, run.bytes));
        }
    }
    let most = *covered.iter().max()?;
    let state = State::ALL.into_iter().find(|state| covered[*state as usize] == most)?;
    let fill = used.min(room).saturating_mul(1000).checked_div(room).unwrap_or(0);
    (most > 0).then_some(Cell { state, fill, used })
}

fn spread(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::super::heap::tests::{heap, run, slab};
    use super::*;

    #[test]
    fn a_cell_has_the_state_of_most_of_its_bytes() {
        let heap = heap(vec![slab(16, 512), run(32, 3, State::Large), run(35, 1, State::Dirty)]);
        let at = |page: u64, pages: u64| cell(&heap, page << 12, pages << 12);
        let slab = Cell { state: State::Slab, fill: 500, used: 2048 };
        assert_eq!(at(16, 1), Some(slab));
        assert_eq!(at(14, 4), Some(Cell { used: 4096, ..slab }));
        assert_eq!(at(32, 4).map(|cell| cell.state), Some(State::Large));
        assert_eq!(at(35, 1).map(|cell| cell.state), Some(State::Dirty));
        assert_eq!((at(0, 16), at(36, 100)), (None, None));
    }

    #[test]
    fn gaps_and_long_retained_runs_part_the_picture() {
        let heap = heap(vec![
            slab(17, 1),
            run(33, 2, State::Retained),
            run(35, 1000, State::Retained),
            run(1035, 4, State::Dirty),
            run(90_000, 1, State::Metadata),
        ]);
        let scale = Scale { cell: 4 << 12, width: 8 };
        let expected = [(16, 35), (1032, 1039), (90_000, 90_001)];
        let expected = expected.map(|(base, end)| Stretch { base: base << 12, end: end << 12 });
        let found = stretches(&[&heap], scale);
        assert_eq!(found, expected);
        assert_eq!(found[0].rows(scale), 1);
        assert_eq!(found[0].rows(Scale { cell: 4096, width: 8 }), 3);
    }

    #[test]
    fn the_scale_is_the_finest_that_fits() {
        let small = heap(vec![slab(16, 1)]);
        assert_eq!(Scale::of(&[&small], None, 64), Scale { cell: 4096, width: 64 });
        let large = heap(vec![run(0, 30 * 64 * 4, State::Large)]);
        assert_eq!(Scale::of(&[&large], None, 64), Scale { cell: 4 * 4096, width: 64 });
        assert_eq!(Scale::of(&[&small, &large], None, 64).cell, 4 * 4096);
        assert_eq!(Scale::of(&[&large], Some(3), 64).cell, 3 * 4096);
    }
}
