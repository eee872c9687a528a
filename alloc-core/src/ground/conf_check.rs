//! Checks whether an option string would be accepted, without setting anything.

use super::cache_limits::CacheLimits;
use super::conf::{DEFAULT, boolean, fraction, unsigned, without_blanks, word};
use super::conf_table::{Kind, Shape, TABLE};
use super::options::Letters;

/// Why an option would not take effect as given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// No option has this name.
    Unknown,
    /// The value is neither `true` nor `false`.
    NotABool,
    /// The value is not a number.
    NotANumber,
    /// The value is not a decimal fraction below 65536.
    NotAFraction,
    /// The value is none of these words.
    NotOneOf(&'static [&'static str]),
    /// The number is out of range. It is refused, or replaced by the nearest bound.
    OutOfRange {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: u64,
    },
    /// The value has a letter that is none of these.
    UnknownLetter(&'static str),
    /// The value is not a list of limits such as `8-64:10|1024-2048:0`.
    NotLimits,
    /// The value has a comma, which would end it.
    Comma,
    /// The option is one of jemalloc that has no effect here.
    NoEffect,
}

/// Returns the names of all options that have an effect, in no particular order.
///
/// ```
/// assert!(lumalloc::options::names().any(|name| name == "narenas"));
/// assert!(lumalloc::options::names().all(|name| name != "hpa"));
/// ```
pub fn names() -> impl Iterator<Item = &'static str> {
    let has_effect = |kind: &Kind| !matches!(kind, Kind::NoEffect(_));
    TABLE.iter().filter(move |row| has_effect(&row.kind)).map(|row| row.name)
}

/// The letters that `malloc_stats_print` takes.
const LETTERS: &str = match core::str::from_utf8(Letters::KNOWN) {
    Ok(letters) => letters,
    Err(_) => "",
};

/// Checks one option as if an option string had `name:value`.
///
/// # Errors
/// Returns why the option would not take effect as given. A number that would be replaced by the
/// nearest bound of its range is an error too.
///
/// ```
/// use lumalloc::options::{Problem, check};
/// assert_eq!(check("narenas", "4"), Ok(()));
/// assert_eq!(check("narenas", "0"), Err(Problem::OutOfRange { min: 1, max: 4094 }));
/// assert_eq!(check("thp", "maybe"), Err(Problem::NotOneOf(&["default", "always", "never"])));
/// assert_eq!(check("xmalloc", "yes"), Err(Problem::NotABool));
/// assert_eq!(check("lg_chunk", "21"), Err(Problem::Unknown));
/// ```
pub fn check(name: &str, value: &str) -> Result<(), Problem> {
    let row = TABLE.iter().find(|row| row.name == name).ok_or(Problem::Unknown)?;
    let value = value.as_bytes();
    if value.contains(&b',') {
        return Err(Problem::Comma);
    }
    match row.kind {
        Kind::Bool(_) => is_bool(value),
        Kind::UnsignedOrDefault { .. } if value == DEFAULT => Ok(()),
        Kind::Unsigned { min, max, .. } | Kind::UnsignedOrDefault { min, max, .. } => {
            let range = Problem::OutOfRange { min: min as i64, max };
            let n = number(value, range)?;
            let is_negative = without_blanks(value).first() == Some(&b'-');
            if is_negative || n < min || n > max { Err(range) } else { Ok(()) }
        }
        Kind::Signed { min, max, .. } => {
            let range = Problem::OutOfRange { min, max: max as u64 };
            let n = number(value, range)? as i64;
            if n < min || n > max { Err(range) } else { Ok(()) }
        }
        Kind::Fraction(_) => fraction(value).map(drop).map_err(|_| Problem::NotAFraction),
        Kind::Word(words, _) => is_word(words, value),
        Kind::Letters(_) => {
            let known = value.iter().all(|letter| LETTERS.as_bytes().contains(letter));
            if known { Ok(()) } else { Err(Problem::UnknownLetter(LETTERS)) }
        }
        Kind::Text(_) => Ok(()),
        Kind::CacheLimits(_) => {
            if { CacheLimits::NONE }.read(value) {
                Ok(())
            } else {
                Err(Problem::NotLimits)
            }
        }
        Kind::NoEffect(ref shape) => shaped(shape, value).and(Err(Problem::NoEffect)),
    }
}

/// Parses a number. The error is `range` if the number has too many digits.
fn number(value: &[u8], range: Problem) -> Result<u64, Problem> {
    let digits = value.iter().filter(|c| c.is_ascii_digit()).count();
    let is_long = digits >= 19;
    unsigned(value).map_err(|_| if is_long { range } else { Problem::NotANumber })
}

fn shaped(shape: &Shape, value: &[u8]) -> Result<(), Problem> {
    match shape {
        Shape::Bool => is_bool(value),
        Shape::Number => unsigned(value).map(drop).map_err(|_| Problem::NotANumber),
        Shape::Words(words) => is_word(words, value),
        Shape::Any => Ok(()),
    }
}

fn is_bool(value: &[u8]) -> Result<(), Problem> {
    boolean(value).map(drop).map_err(|_| Problem::NotABool)
}

fn is_word(words: &'static [&'static str], value: &[u8]) -> Result<(), Problem> {
    word(words, value).map(drop).map_err(|_| Problem::NotOneOf(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_value_is_looked_at() {
        let decay = Problem::OutOfRange { min: -1, max: i64::MAX as u64 / 1_000_000 };
        let size = Problem::OutOfRange { min: 0, max: 32768 };
        for (name, value, expected) in [
            ("abort", "true", Ok(())),
            ("abort", "", Err(Problem::NotABool)),
            ("dirty_decay_ms", "-1", Ok(())),
            ("dirty_decay_ms", "-2", Err(decay)),
            ("dirty_decay_ms", "x", Err(Problem::NotANumber)),
            ("tcache_max", "0x1000", Ok(())),
            ("tcache_max", "32769", Err(size)),
            ("tcache_max", "-1", Err(size)),
            ("tcache_max", "99999999999999999999", Err(size)),
            ("tcache_max", "4K", Err(Problem::NotANumber)),
            ("tcache_max", " 4096", Ok(())),
            ("tcache_max", "4096 ", Err(Problem::NotANumber)),
            ("prof_seed", " -1", Err(Problem::OutOfRange { min: 0, max: u64::MAX })),
            ("narenas", "default", Ok(())),
            ("narenas", "4095", Err(Problem::OutOfRange { min: 1, max: 4094 })),
            ("narenas", "none", Err(Problem::NotANumber)),
            ("narenas_ratio", "0.5", Ok(())),
            ("narenas_ratio", "half", Err(Problem::NotAFraction)),
            ("stats_print_opts", "Jg", Ok(())),
            ("stats_print_opts", "Z", Err(Problem::UnknownLetter(LETTERS))),
            ("stats_print_opts", "w", Ok(())),
            ("tcache_ncached_max", "8-64:10|1024-2048:0", Ok(())),
            ("tcache_ncached_max", "8-64", Err(Problem::NotLimits)),
            ("hpa", "true", Err(Problem::NoEffect)),
            ("hpa", "maybe", Err(Problem::NotABool)),
            ("prof", "true", Ok(())),
            ("prof", "maybe", Err(Problem::NotABool)),
            ("prof_prefix", "a,b", Err(Problem::Comma)),
        ] {
            assert_eq!(check(name, value), expected, "{name}:{value}");
        }
    }
}
