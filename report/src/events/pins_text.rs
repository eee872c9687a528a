//! Who pins memory, as a table.

use std::io::Write;

use super::lines::OLD;
use super::names::Names;
use super::pins::{Holding, Kept, Options, Pins};
use super::recording::Recording;
use super::stop::Stop;
use super::texts::{bytes, count, duration, title};
use crate::views::{Table, percent, stack_lines};

/// What the columns mean.
const MEANINGS: &str = "\
pinned  the pages that blocks of this row alone touch: what comes back once they are freed
fill    how much of these pages the blocks take
touched all pages that blocks of the row touch
";

/// Writes a table of who pins memory: which pages the live blocks keep, by what allocated them.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn pins(names: &mut Names<'_>, options: &Options, out: &mut dyn Write) -> Result<(), Stop> {
    let recording = names.recording();
    let found = Pins::new(names, options)?;
    writeln!(out, "{}\n{}", title(recording), head(&found, options))?;
    let what = options.by.heading();
    writeln!(out, "{what} by pinned bytes\n{}", table(&found, options).text())?;
    if let Some(rest) = found.rows.len().checked_sub(options.top).filter(|rest| *rest > 0) {
        writeln!(out, "  and {rest} more\n")?;
    }
    if !found.emptiest.is_empty() {
        let emptiest = emptiest(&found, recording).text();
        writeln!(out, "Pages that the fewest bytes keep, with their blocks\n{emptiest}")?;
    }
    Ok(write!(out, "{MEANINGS}")?)
}

fn head(found: &Pins, options: &Options) -> String {
    let Pins { rows, total, shown, .. } = found;
    let size = |pages| bytes(options.page.bytes_of(pages));
    let pages = |pages| format!("{} in {}", size(pages), count(pages, "page"));
    let bytes_of_pages = options.page.bytes_of(total.pages);
    let empty = match bytes_of_pages.saturating_sub(total.filled) {
        0 => String::new(),
        empty => format!("; {} of their bytes are empty", share(empty, bytes_of_pages)),
    };
    let pinned = rows.iter().map(|(_, row)| row.pages).sum();
    let blocks = |it: &Holding| format!("{} in {}", bytes(it.bytes), count(it.blocks, "block"));
    let mut text = format!(
        "  live    {}\n  pages   {} of {}{empty}\n  pinned  {} that belong to \
         one row alone\n",
        blocks(total),
        pages(total.pages),
        size(1),
        pages(pinned),
    );
    if shown.blocks < total.blocks {
        let (blocks, pages) = (blocks(shown), pages(shown.pages));
        text += &format!("  shown   {blocks}, which alone keep {pages}\n");
    }
    text
}

fn table(found: &Pins, options: &Options) -> Table {
    let header = ["pinned", "fill", "pages", "touched", "blocks", "bytes"];
    let mut table = Table::new(header.map(str::to_owned).to_vec());
    for (lines, row) in found.rows.iter().take(options.top) {
        let pinned = options.page.bytes_of(row.pages);
        let mut cells = vec![bytes(pinned), share(row.filled, pinned)];
        cells.extend([row.pages, row.touched, row.blocks].map(|it| it.to_string()));
        cells.push(bytes(row.bytes));
        table.row(cells, stack_lines(lines));
    }
    table
}

/// The pages that few bytes keep: a row for each of their blocks, the first one with the pages.
fn emptiest(found: &Pins, recording: &Recording) -> Table {
    let header = ["page", "pinned", "block", "size", "age"];
    let mut table = Table::new(header.map(str::to_owned).to_vec());
    for Kept { address, bytes: size, blocks, more, .. } in &found.emptiest {
        for (place, (block, lines)) in blocks.iter().enumerate() {
            let mut cells = match place {
                0 => vec![format!("{address:#x}"), bytes(*size)],
                _ => vec![String::new(); 2],
            };
            cells.extend([format!("{:#x}", block.address), bytes(block.size)]);
            cells.push(match block.is_old() {
                true => OLD.to_owned(),
                false => duration(block.age(found.end, recording)),
            });
            table.row(cells, stack_lines(lines));
        }
        if *more > 0 {
            let cells = ["", "", &format!("and {more} more"), "", ""];
            table.row(cells.map(str::to_owned).to_vec(), vec![String::new()]);
        }
    }
    table
}

/// A share of some bytes.
fn share(part: u64, whole: u64) -> String {
    let [part, whole] = [part, whole].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
    percent(part, whole)
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Filter, Old};
    use super::super::groups::By;
    use super::super::pages::PageSize;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    fn shown(file: &File, options: &Options) -> String {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut out = Vec::new();
        pins(&mut names, options, &mut out).expect("it is shown");
        String::from_utf8(out).expect("text")
    }

    fn options() -> Options {
        let page = PageSize::default();
        Options { filter: Filter::default(), by: By::Site, top: 1, page, emptiest: 2 }
    }

    fn file() -> File {
        let new = |time, address, size, site| (time, Happens::New(address, size), site);
        let mut events = vec![new(2, 0x10800, 32, 1), new(3, 0x2fff0, 32, 1)];
        events.extend((0..10).map(|it| new(4, 0x40000 + it * 64, 64, 2)));
        File::default()
            .stack(1, &[0x101, 0x301])
            .stack(2, &[0x201])
            .old(1, &[[0x10000, 64, 0]])
            .events(7, &events)
            .end(1002, 0)
    }

    #[test]
    fn the_table_has_a_row_for_each_site() {
        let expected = "\
/bin/x: process 22, lumalloc 0.1.0
  live    768 B in 13 blocks
  pages   16.0 KiB in 4 pages of 4.00 KiB; 95.3% of their bytes are empty
  pinned  12.0 KiB in 3 pages that belong to one row alone

Sites by pinned bytes
    pinned  fill  pages  touched  blocks  bytes
  8.00 KiB  0.4%      2        3       2   64 B  0x100

  and 2 more

Pages that the fewest bytes keep, with their blocks
     page    pinned    block  size      age
  0x2f000  8.00 KiB  0x2fff0  32 B   999 ns  0x100
  0x10000  4.00 KiB  0x10000  64 B      old  (older than the recording)
                     0x10800  32 B  1.00 us  0x100

";
        assert_eq!(shown(&file(), &options()), format!("{expected}{MEANINGS}"));
    }

    #[test]
    fn options_choose_what_is_shown() {
        let filter = Filter { old: Old::Excluded, ..Filter::default() };
        let text = shown(&file(), &Options { filter, by: By::Stack, emptiest: 9, ..options() });
        let line = "\n  shown   704 B in 12 blocks, which alone keep 12.0 KiB in 3 pages\n\n";
        assert!(text.contains(line) && text.contains("\nStacks by pinned bytes\n"), "{text}");
        assert!(text.contains("  0x100\n") && text.contains("    0x300\n"), "{text}");
        assert!(text.contains("  and 2 more\n\npinned"), "{text}");
        let text = shown(&file(), &Options { emptiest: 0, top: 9, ..options() });
        let (_, rows) = text.split_once("\nSites by pinned bytes\n").expect("the rows");
        assert!(!rows.contains("with their blocks") && !rows.contains("more"), "{rows}");
    }

    #[test]
    fn no_block_at_all_is_no_error() {
        let expected = "\
/bin/x: process 22, lumalloc 0.1.0
  live    0 B in 0 blocks
  pages   0 B in 0 pages of 4.00 KiB
  pinned  0 B in 0 pages that belong to one row alone

Sites by pinned bytes
  pinned  fill  pages  touched  blocks  bytes

";
        let text = shown(&File::default().end(1, 0), &options());
        assert_eq!(text, format!("{expected}{MEANINGS}"));
    }
}
