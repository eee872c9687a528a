//! Columns: right-aligned numbers under right-aligned titles.
use super::keys::as_number;
use crate::value::{Unit, Value};
use crate::writer::Writer;

/// A title and its width.
pub(super) type Column = (&'static str, usize);

/// The content of a column.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// A number.
    Number(u64),
    /// A count and an uptime: the count, and in the next column its rate per second.
    Count(u64, u64),
    /// A text.
    Text(&'static str),
    /// Thousandths, as `0.25`; `1` for 1000.
    Thousandths(u64),
}

/// Prints the titles and ends the line. `skip` characters of the first column are already printed.
pub(super) fn titles(writer: &mut Writer, columns: &[Column], skip: usize) {
    let mut skip = skip;
    for &(title, width) in columns {
        writer.right(title, width.saturating_sub(skip));
        skip = 0;
    }
    writer.text("\n");
}

/// Prints cells under their columns, without the end of the line.
pub(super) fn cells(writer: &mut Writer, columns: &[Column], cells: &[Cell]) {
    let mut widths = columns.iter().map(|&(_, width)| width);
    let mut width = || widths.next().unwrap_or(0);
    for cell in cells {
        match *cell {
            Cell::Number(number) => writer.right_number(number, width()),
            Cell::Count(count, uptime) => {
                writer.right_number(count, width());
                writer.right_number(per_second(count, uptime), width());
            }
            Cell::Text(text) => writer.right(text, width()),
            Cell::Thousandths(share) => thousandths(writer, share, width()),
        }
    }
}

fn thousandths(writer: &mut Writer, share: u64, width: usize) {
    let digit = |n: u64| b'0' + (n % 10) as u8;
    let text = [b'0', b'.', digit(share / 100), digit(share / 10), digit(share)];
    match share {
        1000.. => writer.right("1", width),
        _ => writer.right_bytes(&text, width),
    }
}

/// The rate per second of a count in a time in nanoseconds; within the first second, the count
/// itself.
fn per_second(count: u64, nanoseconds: u64) -> u64 {
    match nanoseconds / 1_000_000_000 {
        0 => count,
        seconds => count.checked_div(seconds).unwrap_or(count),
    }
}

/// `part` of `whole` in thousandths; 1000 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> u64 {
    let product = u128::from(part) * 1000;
    let share = product.checked_div(u128::from(whole)).unwrap_or(1000);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Tells which rows are shown: those that hold something. A line stands for the rows left out.
pub(super) struct Gaps {
    open: bool,
}

impl Gaps {
    pub(super) fn new() -> Self {
        Gaps { open: false }
    }

    /// Whether a row is shown.
    pub(super) fn shows(&mut self, writer: &mut Writer, holds_something: bool) -> bool {
        if holds_something {
            self.close(writer);
        }
        self.open = !holds_something;
        holds_something
    }

    /// Prints the line, if rows were left out.
    pub(super) fn close(&self, writer: &mut Writer) {
        if self.open {
            writer.text("                     ---\n");
        }
    }
}

/// Prints a value as the text shows it, with texts in quotes.
pub(super) fn value(writer: &mut Writer, value: Value<'_>) {
    match value {
        Value::Bool(value) => writer.text(if value { "true" } else { "false" }),
        Value::I64(value) => writer.signed(value),
        Value::Ssize(value) => writer.signed(value as i64),
        Value::Str(value) => {
            writer.text("\"");
            writer.c_text(value);
            writer.text("\"");
        }
        other => writer.number(as_number(other)),
    }
}

/// Prints the unit after a value.
pub(super) fn unit(writer: &mut Writer, unit: Unit) {
    writer.text(match unit {
        Unit::Bytes => " bytes",
        Unit::Pages => " pages",
        Unit::Milliseconds => " ms",
        Unit::Nanoseconds => " ns",
        Unit::None | Unit::Count | Unit::Log2 => "",
    });
}

/// Prints bytes in a readable unit, right-aligned: `12.3 MiB`. A negative number keeps its sign.
pub(super) fn right_size(writer: &mut Writer, value: Value<'_>, width: usize) {
    let (sign, bytes) = match value {
        Value::Ssize(value) => (if value < 0 { -1 } else { 1 }, value.unsigned_abs() as u64),
        other => (1, as_number(other)),
    };
    let units = [(" B", 0), (" KiB", 10), (" MiB", 20), (" GiB", 30), (" TiB", 40)];
    let fits = units.iter().rev().find(|(_, shift)| bytes >> shift > 0);
    let &(unit, shift) = fits.unwrap_or(&(" B", 0));
    // The first digit after the decimal point; ten bits of the rest are enough for it.
    let tenth = (shift > 0).then(|| (((bytes >> (shift - 10)) & 1023) * 10) >> 10);
    let behind = unit.len() + tenth.map_or(0, |_| 2);
    writer.right_signed((bytes >> shift) as i64 * sign, width.saturating_sub(behind));
    if let Some(tenth) = tenth {
        writer.text(".");
        writer.number(tenth);
    }
    writer.text(unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::collected;

    #[test]
    fn columns_are_right_aligned_and_overflow_whole() {
        let columns: &[Column] = &[("size", 8), ("util", 6), ("n", 3), ("(#/sec)", 8), ("m", 2)];
        let text = collected(|writer| {
            writer.text("bins:");
            titles(writer, columns, 5);
            let count = Cell::Count(123_456, 2_000_000_000);
            let row = [Cell::Number(7), Cell::Thousandths(250), count, Cell::Text("x")];
            cells(writer, columns, &row);
        });
        assert_eq!(text, "bins:size  util  n (#/sec) m\n       7 0.250123456   61728 x");
    }

    #[test]
    fn shares_and_rates() {
        assert_eq!((share(1, 3), share(3, 3), share(0, 0), share(0, 7)), (333, 1000, 1000, 0));
        assert_eq!(per_second(500, 999_999_999), 500);
        assert_eq!(per_second(500, 5_000_000_000), 100);
        assert_eq!(collected(|writer| thousandths(writer, 7, 6)), " 0.007");
        assert_eq!(collected(|writer| thousandths(writer, 1000, 6)), "     1");
    }

    #[test]
    fn sizes_have_one_digit_behind_the_point() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(collected(|writer| right_size(writer, Value::U64(bytes), 0)), text);
        }
        let credit = collected(|writer| right_size(writer, Value::Ssize(-1536), 10));
        assert_eq!(credit, "  -1.5 KiB");
    }

    #[test]
    fn gaps_are_marked_once() {
        let text = collected(|writer| {
            let mut gaps = Gaps::new();
            for holds in [false, false, true, true, false, true, false] {
                if gaps.shows(writer, holds) {
                    writer.text("row\n");
                }
            }
            gaps.close(writer);
        });
        let gap = "                     ---\n";
        assert_eq!(text, std::format!("{gap}row\nrow\n{gap}row\n{gap}"));
    }
}
