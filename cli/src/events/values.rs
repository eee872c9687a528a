//! The values of the options that choose blocks: ranges of sizes and ages, threads, patterns.

use lumalloc_report::events::{PageSize, Range, Regex, Thread};

/// Reads a range of sizes: `16`, `16..`, `..64`, `1k..4k`.
pub(crate) fn sizes(text: &str) -> Result<Range, String> {
    range(text, "a size like 64, 4k or 1M", size)
}

/// Reads the size of a page: `4k`, `2M`.
pub(crate) fn page_size(text: &str) -> Result<PageSize, String> {
    let page = size(text).and_then(PageSize::new);
    page.ok_or_else(|| format!("'{text}' is not a power of two from 4k to 1G"))
}

/// Reads a range of durations, in nanoseconds: `10ms..`, `..2s`, `1us..1ms`.
pub(crate) fn ages(text: &str) -> Result<Range, String> {
    range(text, "a duration like 10ms, 2s or 1h", |age| {
        let begin = age.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (digits, unit) = age.split_at(begin);
        let nanoseconds = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => return None,
        };
        match digits.split_once('.') {
            None => whole(digits)?.checked_mul(nanoseconds),
            Some((before, after)) if after.len() <= 9 => {
                let part = whole(after)?.checked_mul(nanoseconds)? / 10u64.pow(after.len() as u32);
                whole(before)?.checked_mul(nanoseconds)?.checked_add(part)
            }
            Some(_) => None,
        }
    })
}

/// Reads a thread: `7` or `22-7`.
pub(crate) fn thread(text: &str) -> Result<Thread, String> {
    let wrong = || format!("'{text}' is not TID or PID-TID");
    let (pid, tid) = match text.split_once('-') {
        None => (None, text),
        Some((pid, tid)) => (Some(whole(pid).ok_or_else(wrong)?), tid),
    };
    Ok(Thread { pid, tid: whole(tid).ok_or_else(wrong)? })
}

/// Reads a regular expression.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    // The message of a wrong pattern has several lines, and the last one says what is wrong.
    Regex::new(text).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or("").trim();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// Reads `VALUE`, `MIN..`, `..MAX` or `MIN..MAX`.
fn range(text: &str, what: &str, read: impl Fn(&str) -> Option<u64>) -> Result<Range, String> {
    let value = |value: &str| read(value).ok_or_else(|| format!("'{value}' is not {what}"));
    let range = match text.split_once("..") {
        None => value(text).map(|value| Range { min: value, max: value })?,
        Some(("", "")) => return Err("the range has no end; write MIN.., ..MAX or MIN..MAX".into()),
        Some((min, "")) => Range { min: value(min)?, max: u64::MAX },
        Some(("", max)) => Range { min: 0, max: value(max)? },
        Some((min, max)) => Range { min: value(min)?, max: value(max)? },
    };
    if range.min > range.max {
        return Err("the first value is larger than the second one".to_owned());
    }
    Ok(range)
}

/// Reads a number of bytes with its unit.
fn size(text: &str) -> Option<u64> {
    let units = [("k", 10), ("K", 10), ("m", 20), ("M", 20), ("g", 30), ("G", 30)];
    let unit = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, 1 << bits)));
    let (digits, bytes) = unit.unwrap_or((text, 1));
    whole(digits)?.checked_mul(bytes)
}

fn whole(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(min: u64, max: u64) -> Result<Range, String> {
        Ok(Range { min, max })
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(sizes("16"), of(16, 16));
        assert_eq!(sizes("16.."), of(16, u64::MAX));
        assert_eq!(sizes("..64"), of(0, 64));
        assert_eq!(sizes("1k..4K"), of(1024, 4096));
        assert_eq!(sizes("1M..2G"), of(1 << 20, 2 << 30));
        assert_eq!(sizes("1m..2g"), of(1 << 20, 2 << 30));
        let wrong = |text: &str| sizes(text).expect_err("wrong");
        for text in ["", "x", "+1", "1.5k", "k", "99999999999999999999", "99999999999999999G"] {
            assert_eq!(wrong(text), format!("'{text}' is not a size like 64, 4k or 1M"));
        }
        assert_eq!(wrong("1..x"), "'x' is not a size like 64, 4k or 1M");
        assert_eq!(wrong(".."), "the range has no end; write MIN.., ..MAX or MIN..MAX");
        assert_eq!(wrong("2..1"), "the first value is larger than the second one");
    }

    #[test]
    fn sizes_of_pages_are_powers_of_two() {
        for (text, bytes) in [("4096", 4096), ("64k", 64 << 10), ("2m", 2 << 20), ("1G", 1 << 30)] {
            assert_eq!(page_size(text).map(PageSize::bytes), Ok(bytes));
        }
        for text in ["", "0", "2k", "5k", "2G", "4k..", "x"] {
            let wrong = format!("'{text}' is not a power of two from 4k to 1G");
            assert_eq!(page_size(text), Err(wrong));
        }
    }

    #[test]
    fn ages_have_units() {
        assert_eq!(ages("10ms.."), of(10_000_000, u64::MAX));
        assert_eq!(ages("..2s"), of(0, 2_000_000_000));
        assert_eq!(ages("1us..1.5ms"), of(1_000, 1_500_000));
        assert_eq!(ages("5ns..1µs"), of(5, 1_000));
        assert_eq!(ages("1m..1h"), of(60_000_000_000, 3_600_000_000_000));
        for text in ["10", "ms", "1x", "1.s", ".5s", "-1s", "1.0000000001s", "9999999999h"] {
            let wrong = format!("'{text}' is not a duration like 10ms, 2s or 1h");
            assert_eq!(ages(text), Err(wrong));
        }
    }

    #[test]
    fn threads_may_have_their_process() {
        assert_eq!(thread("7"), Ok(Thread { pid: None, tid: 7 }));
        assert_eq!(thread("22-7"), Ok(Thread { pid: Some(22), tid: 7 }));
        for text in ["", "a", "1-", "-1", "1-2-3"] {
            assert_eq!(thread(text), Err(format!("'{text}' is not TID or PID-TID")));
        }
    }

    #[test]
    fn wrong_patterns_have_one_line() {
        assert!(pattern("^Vec<.*>$").is_ok());
        assert_eq!(pattern("(").map(|_| ()), Err("unclosed group".to_owned()));
    }
}
