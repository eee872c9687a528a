//! The second table: chains of calls that allocated memory which was not freed.

use std::collections::BTreeMap;

use super::blocks::{Block, Cell};
use super::options::{Leaks, Options, Verbosity};
use super::percent::{in_parentheses, right};
use crate::report::Report;

/// A chain has at most so many functions.
const DEPTH: usize = 5;
const TITLE: &str =
    "----------------  Partial Dynamic Call Paths for Memory Leaks  ----------------";

/// A chain, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    is_whole: bool,
    /// The number of the name of each function, and the distance of the call. Chains of the same
    /// names are one.
    links: Vec<(usize, u64)>,
}

/// Returns the table; nothing if nothing is kept.
pub(super) fn table(report: &Report, blocks: &[Block], options: &Options) -> String {
    let paths = leaking(report, blocks, options.leaks);
    if paths.is_empty() || options.leaks == Leaks::None {
        return String::new();
    }
    let mut total = Cell::default();
    paths.iter().for_each(|(_, cell)| total.add(cell));
    let has_frees = paths.iter().any(|(_, cell)| cell.frees() != 0);
    let mut text = format!("{TITLE}\n\nTotal bytes not freed: {}\n\n", total.kept);
    text +=
        &format!("{:>10} {:<4}{:>10}{:>10} {:<4}", "kept bytes", "(%)", "allocs", "bytes", "(%)");
    if has_frees {
        text += &format!("{:>10}{:>10} {:<4}", "frees", "bytes", "(%)");
    }
    text += "    path\n\n";
    for (path, cell) in paths.iter().filter(|(_, cell)| is_shown(cell, &total, options.verbosity)) {
        text += &row(cell, &total, has_frees);
        text += &format!("   {}\n", name(report, path, options.leaks).trim_end());
    }
    text + "\n\x0c\n\n"
}

/// The chains with blocks that were not freed, by decreasing bytes.
fn leaking(report: &Report, blocks: &[Block], leaks: Leaks) -> Vec<(Path, Cell)> {
    let mut paths: BTreeMap<Path, Cell> = BTreeMap::new();
    for block in blocks {
        let shown = block.chain.iter().take(DEPTH).rev();
        let has_offsets = leaks == Leaks::WithOffsets;
        let links = shown.map(|link| (link.name, if has_offsets { link.offset } else { 0 }));
        let path = Path { is_whole: is_whole(report, block), links: links.collect() };
        paths.entry(path).or_default().add(&block.cell);
    }
    let mut paths: Vec<(Path, Cell)> =
        paths.into_iter().filter(|(_, cell)| cell.live != 0 || cell.kept != 0).collect();
    paths.sort_by_key(|(_, cell)| std::cmp::Reverse(cell.kept));
    paths
}

/// Whether a chain has no more callers than are shown, and was not cut when it was recorded.
fn is_whole(report: &Report, block: &Block) -> bool {
    block.chain.len() <= DEPTH && report.is_whole(block.stack)
}

/// Whether its share of the bytes that all these chains allocated, or of those that they keep, is
/// large enough. The original looks at the allocated bytes alone, where a leak of a program that
/// allocates much is a small part.
fn is_shown(cell: &Cell, total: &Cell, verbosity: Verbosity) -> bool {
    let least = match verbosity {
        Verbosity::Verbose => 0.0,
        Verbosity::Normal => 0.005,
        Verbosity::Terse => 0.01,
    };
    let is_part = |part: i64, all: i64| part as f64 >= least * all as f64;
    is_part(cell.bytes, total.bytes) || is_part(cell.kept, total.kept)
}

fn row(cell: &Cell, total: &Cell, has_frees: bool) -> String {
    let kept = in_parentheses(cell.kept, total.kept);
    let bytes = in_parentheses(cell.bytes, total.bytes);
    let mut row = format!(
        "{:>10} {kept:<4}{}{} {bytes:<4}",
        cell.kept,
        right(cell.allocs, 10),
        right(cell.bytes, 10)
    );
    if has_frees {
        let freed = in_parentheses(cell.freed(), total.freed());
        let (frees, bytes) = (right(cell.frees(), 10), right(cell.freed(), 10));
        row += &format!("{frees}{bytes} {freed:<4}");
    }
    row
}

fn name(report: &Report, path: &Path, leaks: Leaks) -> String {
    let mut text = if path.is_whole { "|| " } else { "..." }.to_owned();
    for (name, offset) in &path.links {
        text += &format!("> {}", report.function(*name));
        if leaks == Leaks::WithOffsets {
            text += &format!("+{offset}");
        }
        text.push(' ');
    }
    text
}
