//! The third table: the functions that allocated memory themselves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::blocks::{Block, Sized};
use super::percent::{breakdown, rounded};
use crate::symbols::Exact;

const HEADER: &str = "     % mem        bytes | % mem(size) |   bytes kept |  % all kept |        \
                      calls   name";
const RULER: &str =
    "---------------------------s--m--l--x-------------------s--m--l--x---------------";

/// Returns the table.
pub(super) fn table(exact: &Exact, blocks: &[Block], total: &Sized) -> String {
    let mut functions: BTreeMap<&str, Sized> = BTreeMap::new();
    for block in blocks {
        let first = block.chain.first();
        let name = first.map_or("<unknown>", |link| exact.names()[link.function].as_str());
        functions.entry(name).or_default().add(&Sized::of(block.size, block.cell));
    }
    let mut rows: Vec<(&str, Sized)> =
        functions.into_iter().filter(|(_, sized)| sized.cell.bytes != 0).collect();
    rows.sort_by_key(|(_, sized)| Reverse(sized.cell.bytes));
    let mut text = format!("{HEADER}\n\n{RULER}\n\n");
    text += &row("-----", "<TOTAL>", total, total);
    text.push('\n');
    for (name, sized) in rows {
        text += &row(&rounded(sized.cell.bytes, total.cell.bytes), name, &sized, total);
    }
    text + "\n"
}

fn row(percent: &str, name: &str, sized: &Sized, total: &Sized) -> String {
    let memory = breakdown(&sized.bytes, total.cell.bytes);
    let kept = breakdown(&sized.kept, total.cell.kept);
    format!(
        "  {percent:>8} {:>12} |{memory} | {:>12} |{kept} | {:>12}   {name}\n",
        sized.cell.bytes, sized.cell.kept, sized.cell.allocs
    )
}
