//! Numbers as people read them.

/// How numbers of bytes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bytes {
    /// With a unit and three digits or more: `1.23 MiB`.
    #[default]
    WithUnits,
    /// All digits.
    AllDigits,
}

impl Bytes {
    /// A number of bytes.
    pub(crate) fn text(self, bytes: i64) -> String {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self == Bytes::AllDigits {
            return bytes.to_string();
        }
        if bytes.unsigned_abs() < 1024 {
            return format!("{bytes} B");
        }
        let mut number = bytes as f64 / 1024.0;
        let mut unit = 0;
        // 1023.96 would become 1024.0.
        while number.abs() >= 1023.95 && unit + 1 < UNITS.len() {
            number /= 1024.0;
            unit += 1;
        }
        let digits = match number.abs() {
            small if small < 9.995 => 2,
            _ => 1,
        };
        format!("{number:.digits$} {}", UNITS[unit])
    }

    /// A change of a number of bytes, with its sign.
    pub(crate) fn change(self, bytes: i64) -> String {
        signed(bytes, self.text(bytes))
    }
}

/// A change of a count, with its sign.
pub(crate) fn count_change(count: i64) -> String {
    signed(count, count.to_string())
}

fn signed(number: i64, text: String) -> String {
    if number > 0 { format!("+{text}") } else { text }
}

/// A share with one decimal.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (-1536, "-1.50 KiB"),
            (10_236, "10.0 KiB"),
            (1_048_575, "1.00 MiB"),
            (123 << 20, "123.0 MiB"),
            (i64::MAX, "8.00 EiB"),
        ] {
            assert_eq!(Bytes::WithUnits.text(bytes), text);
        }
        assert_eq!(Bytes::AllDigits.text(1 << 40), "1099511627776");
    }

    #[test]
    fn changes_have_signs() {
        assert_eq!(Bytes::WithUnits.change(2048), "+2.00 KiB");
        assert_eq!((count_change(-3), count_change(0)), ("-3".into(), "0".into()));
    }

    #[test]
    fn shares_have_a_decimal() {
        assert_eq!((percent(1, 3), percent(1, 0)), ("33.3%".into(), "-".into()));
    }
}
