//! Numbers as people read them.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Microseconds,
    /// A part of a whole, from 0 to 1.
    Part,
}

impl Unit {
    /// Returns the number with its unit.
    pub(crate) fn show(self, number: f64) -> String {
        match self {
            Self::Count => grouped(number),
            Self::Bytes if number < 1024.0 * 1024.0 => format!("{:.1} KiB", number / 1024.0),
            Self::Bytes => format!("{:.1} MiB", number / 1024.0 / 1024.0),
            Self::Microseconds if number < 100.0 => format!("{number:.1} µs"),
            Self::Microseconds if number < 1000.0 => format!("{number:.0} µs"),
            Self::Microseconds if number < 10_000.0 => format!("{:.2} ms", number / 1e3),
            Self::Part => format!("{:.1} %", number * 100.0),
            Self::Microseconds => format!("{:.1} ms", number / 1e3),
        }
    }
}

/// Returns a whole number with commas: 1,234,567.
fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whether to colour output: on a terminal that can show colours, unless the user refuses them.
pub(crate) fn wants_colour(is_terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        let texts = [0.0, 7.4, 999.0, 999.6, 41_230.0, 1_234_567.0].map(|n| Unit::Count.show(n));
        assert_eq!(texts, ["0", "7", "999", "1,000", "41,230", "1,234,567"]);
    }

    #[test]
    fn bytes_and_times_choose_their_unit() {
        assert_eq!(Unit::Bytes.show(512.0 * 1024.0), "512.0 KiB");
        assert_eq!(Unit::Bytes.show(96.5 * 1024.0 * 1024.0), "96.5 MiB");
        assert_eq!(Unit::Part.show(0.876), "87.6 %");
        let texts = [31.26, 812.4, 3_124.0, 45_600.0].map(|n| Unit::Microseconds.show(n));
        assert_eq!(texts, ["31.3 µs", "812 µs", "3.12 ms", "45.6 ms"]);
    }

    #[test]
    fn files_get_no_colour() {
        assert!(!wants_colour(false));
    }
}
