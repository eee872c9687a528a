//! Texts that tables have in common.

use super::recording::Recording;
use crate::symbols::printable;
use crate::views::Bytes;

/// The first line of a table: which process was recorded.
pub(super) fn title(recording: &Recording) -> String {
    let process = recording.process();
    let (program, allocator) = (process.program.clone(), process.allocator.clone());
    format!("{}: process {}, {}", printable(program), process.pid, printable(allocator))
}

/// A number of bytes with its unit.
pub(super) fn bytes(number: u64) -> String {
    Bytes::default().text(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A number of things, with their name.
pub(super) fn count(number: u64, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

/// A duration with three digits or more.
pub(super) fn duration(nanoseconds: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let unit = UNITS.iter().find(|(_, size)| nanoseconds >= *size);
    let (unit, size) = unit.copied().unwrap_or(("ns", 1));
    let number = nanoseconds as f64 / size as f64;
    let digits = match number {
        _ if size == 1 => 0,
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (nanoseconds, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (12_340, "12.3 us"),
            (9_999_000, "10.0 ms"),
            (123_456_789, "123 ms"),
            (u64::MAX, "18446744074 s"),
        ] {
            assert_eq!(duration(nanoseconds), text);
        }
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([0, 1, 2].map(|it| count(it, "page")), ["0 pages", "1 page", "2 pages"]);
    }

    #[test]
    fn numbers_of_bytes_are_not_negative() {
        assert_eq!((bytes(1024), bytes(u64::MAX)), ("1.00 KiB".into(), "8.00 EiB".into()));
    }
}
