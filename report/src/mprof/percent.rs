//! The two notations of percentages in mprof's tables. Both cut off and never round.

/// The blocks by size: small, medium, large, extra large.
pub(super) type BySize = [i64; 4];

/// The category of a size: up to 32, 256, 2048 bytes, and larger.
pub(super) fn category(size: u64) -> usize {
    [32, 256, 2048].iter().filter(|bound| size > **bound).count()
}

/// A part of a whole in percent, cut off. `None` if there is no whole.
fn whole_percent(part: i64, whole: i64) -> Option<i64> {
    let percent = i128::from(part) * 100 / i128::from(Some(whole).filter(|whole| *whole != 0)?);
    i64::try_from(percent).ok()
}

/// The notation in parentheses, without its blanks: nothing for 0, `(.)` below 1, `(**)` for 100.
pub(super) fn in_parentheses(part: i64, whole: i64) -> String {
    match whole_percent(part, whole) {
        None => "(0)".to_owned(),
        Some(0) if part == 0 => String::new(),
        Some(0) => "(.)".to_owned(),
        Some(100) => "(**)".to_owned(),
        Some(percent) => format!("({percent})"),
    }
}

/// The breakdown by size: four cells of two characters, each after a blank.
pub(super) fn breakdown(parts: &BySize, whole: i64) -> String {
    let cell = |part: &i64| match whole_percent(*part, whole) {
        None => " ".repeat(3),
        Some(0) if *part == 0 => " ".repeat(3),
        Some(0) => "  .".to_owned(),
        Some(100) => " **".to_owned(),
        Some(percent) => format!(" {percent:>2}"),
    };
    parts.iter().map(cell).collect()
}

/// A part of a whole in percent with one decimal, rounded.
pub(super) fn rounded(part: i64, whole: i64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{percent:.1}")
}

/// A number at the right end of its column. One that is too wide keeps a blank before it.
pub(super) fn right(number: impl ToString, width: usize) -> String {
    format!("{:>width$}", format!(" {}", number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_cut_off() {
        for (part, whole, text, cell) in [
            (0, 10, "", "   "),
            (1, 1000, "(.)", "  ."),
            (1, 100, "(1)", "  1"),
            (199, 10_000, "(1)", "  1"),
            (9998, 10_000, "(99)", " 99"),
            (10, 10, "(**)", " **"),
            (5, 0, "(0)", "   "),
            (0, 0, "(0)", "   "),
            (i64::MAX / 2, i64::MAX, "(49)", " 49"),
        ] {
            assert_eq!(in_parentheses(part, whole), text, "{part} of {whole}");
            assert_eq!(breakdown(&[part, 0, 0, 0], whole), format!("{cell}         "));
        }
        assert_eq!(breakdown(&[9, 11, 8, 69], 100), "  9 11  8 69");
        assert_eq!((rounded(28672, 41075), rounded(1, 0)), ("69.8".into(), "0.0".into()));
    }

    #[test]
    fn sizes_have_four_categories() {
        for (size, expected) in
            [(0, 0), (32, 0), (33, 1), (256, 1), (257, 2), (2048, 2), (2049, 3), (u64::MAX, 3)]
        {
            assert_eq!(category(size), expected, "{size}");
        }
    }
}
