//! The first table: allocations by the number of bytes that were requested.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Block, Cell};
use super::options::Verbosity;
use super::percent::{in_parentheses, right};

/// Larger sizes share one row.
const LARGEST: u64 = 1024;
const TITLE: &str =
    "----------------------  Allocation Bins with possible Types  ----------------------";
const TYPES_A_LINE: usize = 3;
/// Where the types of the following lines begin.
const INDENT: usize = 64;

/// A type that blocks of a size may have.
pub(super) type Types = BTreeSet<(u64, String)>;

/// Returns the table.
pub(super) fn table(blocks: &[Block], types: &Types, verbosity: Verbosity) -> String {
    let bins = Bins::new(blocks, types);
    let mut text = format!("{TITLE}\n\n");
    text += &format!(
        "{:>11}{:>10}{:>10} {:<4}{:>10}{:>10} {:<4}    types\n\n",
        "size:", "allocs", "bytes", "(%)", "frees", "kept", "(%)"
    );
    let mut others = Cell::default();
    let mut is_complete = true;
    for (size, cell) in &bins.small {
        let names = bins.types_of(*size);
        if bins.is_shown(*size, cell, !names.is_empty(), verbosity) {
            text += &bins.row(&size.to_string(), cell, &names);
        } else {
            is_complete = false;
            others.add(cell);
        }
    }
    text += &bins.row("> 1024", &bins.large, &bins.types_of_large());
    text.push('\n');
    if !is_complete {
        text += &bins.row("other bins", &others, &[]);
    }
    let total = &bins.total;
    let row = format!(
        "{:>11}{}{}     {}{}\n",
        "<TOTAL>",
        right(total.allocs, 10),
        right(total.bytes, 10),
        right(total.frees(), 10),
        right(total.kept, 10)
    );
    text + &row + "\n\x0c\n\n"
}

struct Bins<'a> {
    small: BTreeMap<u64, Cell>,
    large: Cell,
    large_sizes: BTreeSet<u64>,
    total: Cell,
    types: &'a Types,
}

impl<'a> Bins<'a> {
    fn new(blocks: &[Block], types: &'a Types) -> Bins<'a> {
        let mut bins = Bins {
            small: BTreeMap::new(),
            large: Cell::default(),
            large_sizes: BTreeSet::new(),
            total: Cell::default(),
            types,
        };
        for block in blocks {
            bins.total.add(&block.cell);
            if block.size > LARGEST {
                bins.large.add(&block.cell);
                bins.large_sizes.insert(block.size);
            } else {
                bins.small.entry(block.size).or_default().add(&block.cell);
            }
        }
        bins.small.retain(|_, cell| *cell != Cell::default());
        bins
    }

    fn types_of(&self, size: u64) -> Vec<&'a str> {
        let from = (size, String::new());
        let behind = self.types.range(from..).take_while(|(of, _)| *of == size);
        behind.map(|(_, name)| name.as_str()).collect()
    }

    fn types_of_large(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let all = self.large_sizes.iter().flat_map(|size| self.types_of(*size));
        all.filter(|name| seen.insert(*name)).collect()
    }

    /// Whether a row is shown, by its share of the number of allocations.
    fn is_shown(&self, size: u64, cell: &Cell, has_types: bool, verbosity: Verbosity) -> bool {
        let share = cell.allocs as f64 / self.total.allocs.max(1) as f64;
        let by_type = has_types && share > 0.01;
        match verbosity {
            Verbosity::Verbose => cell.allocs > 0 || cell.frees() > 0 || cell.live > 0,
            Verbosity::Normal => (size > 100 && cell.allocs > 0) || share > 0.002 || by_type,
            Verbosity::Terse => share > 0.02 || by_type,
        }
    }

    fn row(&self, label: &str, cell: &Cell, types: &[&str]) -> String {
        let bytes = in_parentheses(cell.bytes, self.total.bytes);
        let kept = in_parentheses(cell.kept, self.total.kept);
        let numbers = format!(
            "{label:>11}{}{} {bytes:<4}{}{} {kept:<4}",
            right(cell.allocs, 10),
            right(cell.bytes, 10),
            right(cell.frees(), 10),
            right(cell.kept, 10)
        );
        let mut lines = types.chunks(TYPES_A_LINE).map(|names| {
            let names: Vec<String> = names.iter().map(|name| format!("{name:<12} ")).collect();
            names.concat().trim_end().to_owned()
        });
        let first = format!("{numbers}   {}", lines.next().unwrap_or_default());
        let mut text = format!("{}\n", first.trim_end());
        lines.for_each(|line| text += &format!("{:INDENT$}{line}\n", ""));
        text
    }
}
