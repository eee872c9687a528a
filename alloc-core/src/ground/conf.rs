//! Option strings: `key:value,key:value`. Grammar and messages: jemalloc(3), TUNING.
//!
//! The sources, of which the last wins: the program's `malloc_conf` variable, the target of the
//! symbolic link `/etc/malloc.conf`, `MALLOC_CONF`, `LUMALLOC_CONF`, the program's
//! `malloc_conf_2_conf_harder`. Each message names its source.

use super::conf_record::Record;
use super::conf_table::{Kind, Shape, TABLE};
use super::options::{DEFAULTS, Letters, Options};
use super::text::Line;
use super::weak::weak_symbol;
use super::{fatal, files, message, os};
use core::ffi::{CStr, c_char};

/// Reads all sources, and returns the options that result. Notes in `record` what was read.
pub(crate) fn read_all(record: &mut Record) -> Options {
    let mut options = DEFAULTS;
    for_each_source(|source, text| {
        record.add_source(source, text);
        let mut reader = Reader { source, record, only_confirm: true, bad: false };
        reader.string(&mut options, text);
    });
    let mut number = 0u64;
    let mut bad = false;
    for_each_source(|source, text| {
        number += 1;
        if options.confirm_conf {
            let mut line = Line::<1000>::new();
            line.text("<lumalloc>: malloc_conf #").number(number).text(" (").text(source);
            line.text("): \"").bytes(text).text("\"\n");
            message::write(line.as_bytes());
        }
        let mut reader = Reader { source, record, only_confirm: false, bad };
        reader.string(&mut options, text);
        bad = reader.bad;
        if bad && options.abort_conf {
            fatal::bad_option();
        }
    });
    warn_of_other_variable();
    if options.prof_leak_error && !options.prof_final {
        message::write(LEAK_ERROR_ALONE);
        if options.abort_conf {
            fatal::bad_option();
        }
    }
    options.complete();
    options
}

/// As in jemalloc, which does nothing at exit then. Here what leaked is reported all the same.
const LEAK_ERROR_ALONE: &[u8] = b"<lumalloc>: prof_leak_error is set without prof_final: \
    no profile will tell what leaked\n";

/// Warns if `_RJEM_MALLOC_CONF` is set. Programs with a prefixed jemalloc read that variable, and a
/// user who moves away from one would not notice that nothing reads it any more.
fn warn_of_other_variable() {
    if !os::is_secure_mode() && os::environment(c"_RJEM_MALLOC_CONF").is_some() {
        message::write(OTHER_VARIABLE);
    }
}

const OTHER_VARIABLE: &[u8] = b"<lumalloc>: _RJEM_MALLOC_CONF is set and not read: \
    lumalloc reads MALLOC_CONF and LUMALLOC_CONF\n";

fn for_each_source(mut visit: impl FnMut(&'static str, &[u8])) {
    if let Some(text) = program_variable(variable_address()) {
        visit("malloc_conf", text);
    }
    let mut buffer = [0u8; 4096];
    if let Some(text) = files::link(c"/etc/malloc.conf", &mut buffer) {
        visit("/etc/malloc.conf", text);
    }
    if !os::is_secure_mode() {
        if let Some(text) = os::environment(c"MALLOC_CONF") {
            visit("MALLOC_CONF", text);
        }
        if let Some(text) = os::environment(c"LUMALLOC_CONF") {
            visit("LUMALLOC_CONF", text);
        }
    }
    if let Some(text) = program_variable(harder_address()) {
        visit("malloc_conf_2_conf_harder", text);
    }
}

/// Returns the string of a `const char *` variable of the program, if it has one.
fn program_variable(address: usize) -> Option<&'static [u8]> {
    let variable = core::ptr::with_exposed_provenance::<*const c_char>(address);
    if variable.is_null() {
        return None;
    }
    // SAFETY: a symbol of this name is a `const char *` by jemalloc(3).
    let text = unsafe { *variable };
    if text.is_null() {
        return None;
    }
    // SAFETY: by jemalloc(3) the variable points to a C string.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes())
}

weak_symbol!(variable_address, "malloc_conf");
weak_symbol!(harder_address, "malloc_conf_2_conf_harder");

/// A reader of one option string.
struct Reader<'record> {
    source: &'static str,
    record: &'record mut Record,
    only_confirm: bool,
    /// Whether an option was bad, in this source or an earlier one.
    bad: bool,
}

impl Reader<'_> {
    fn string(&mut self, options: &mut Options, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            let key_length = rest.iter().take_while(|c| is_key(**c)).count();
            let (Some(key), Some(after)) = (rest.get(..key_length), rest.get(key_length..)) else {
                return;
            };
            let Some(value_on) = after.strip_prefix(b":") else {
                if after.is_empty() {
                    self.complain("Conf string ends with key -- ", key, None);
                } else {
                    self.complain("Malformed conf string -- ", rest, None);
                }
                return;
            };
            let value_length = value_on.iter().take_while(|c| **c != b',').count();
            let value = value_on.get(..value_length).unwrap_or(value_on);
            let after = value_on.get(value_length..).unwrap_or(&[]);
            self.pair(options, key, value);
            rest = after.strip_prefix(b",").unwrap_or(&[]);
            if rest.is_empty() && !after.is_empty() {
                self.complain("Conf string ends with comma -- ", text, None);
            }
        }
    }

    fn pair(&mut self, options: &mut Options, key: &[u8], value: &[u8]) {
        if self.only_confirm && key != b"confirm_conf" {
            return;
        }
        let Some(row) = TABLE.iter().find(|row| row.name.as_bytes() == key) else {
            self.complain("Invalid conf pair: ", key, Some(value));
            return;
        };
        match apply(&row.kind, options, value) {
            Ok(()) => {
                if options.confirm_conf && !self.only_confirm {
                    say("-- Set conf value: ", key, Some(value), self.source);
                }
            }
            Err(Refusal::Nearest(taken)) => {
                if options.confirm_conf {
                    say("-- Set conf value: ", key, Some(value), self.source);
                }
                say_taken(key, value, self.source, taken);
            }
            Err(Refusal::Value) => self.complain("Invalid conf value: ", key, Some(value)),
            Err(Refusal::Range) => self.complain("Out-of-range conf value: ", key, Some(value)),
            Err(Refusal::NoEffect) => self.ignore("conf option has no effect: ", key, Some(value)),
        }
    }

    fn complain(&mut self, what: &str, key: &[u8], value: Option<&[u8]>) {
        if self.only_confirm {
            return;
        }
        self.ignore(what, key, value);
        // Experimental options may come and go, so an unknown one is reported, but is not fatal.
        // The same holds for two options that jemalloc has given up.
        let tolerated = key.starts_with(b"experimental_") || RETIRED.contains(&key);
        if !tolerated {
            self.bad = true;
        }
    }

    /// Prints and records an option that has no effect.
    fn ignore(&mut self, what: &str, key: &[u8], value: Option<&[u8]>) {
        say(what, key, value, self.source);
        let colon: &[u8] = if value.is_some() { b":" } else { b"" };
        let (what, value) = (what.as_bytes(), value.unwrap_or(b""));
        self.record.add_ignored(&[what, key, colon, value, b" (", self.source.as_bytes(), b")"]);
    }
}

/// Options of earlier versions of jemalloc that its later versions report and tolerate.
const RETIRED: [&[u8]; 2] = [b"hpa_sec_bytes_after_flush", b"hpa_sec_batch_fill_extra"];

fn say(what: &str, key: &[u8], value: Option<&[u8]>, source: &str) {
    let mut line = Line::<1000>::new();
    line.text("<lumalloc>: ").text(what).bytes(key);
    if let Some(value) = value {
        line.text(":").bytes(value);
    }
    line.text(" (").text(source).text(")\n");
    message::write(line.as_bytes());
}

/// Says that the nearest value was taken. That is no bad option for `abort_conf`, as in jemalloc,
/// which says nothing.
fn say_taken(key: &[u8], value: &[u8], source: &str, taken: u64) {
    let mut line = Line::<1000>::new();
    line.text("<lumalloc>: Out-of-range conf value: ").bytes(key).text(":").bytes(value);
    line.text(" (").text(source).text("), ").number(taken).text(" is taken\n");
    message::write(line.as_bytes());
}

fn is_key(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// Why a value is refused.
pub(super) enum Refusal {
    Value,
    Range,
    /// It is out of range, and this one was taken.
    Nearest(u64),
    NoEffect,
}

/// The value of [`Kind::UnsignedOrDefault`] that is no number.
pub(super) const DEFAULT: &[u8] = b"default";

fn apply(kind: &Kind, options: &mut Options, value: &[u8]) -> Result<(), Refusal> {
    match *kind {
        Kind::Bool(set) => set(options, boolean(value)?),
        Kind::Unsigned { min, max, clip, set } => {
            let n = unsigned(value)?;
            let nearest = n.max(min).min(max);
            if !clip && n != nearest {
                return Err(Refusal::Range);
            }
            set(options, nearest);
            if n != nearest {
                return Err(Refusal::Nearest(nearest));
            }
        }
        Kind::UnsignedOrDefault { set, .. } if value == DEFAULT => set(options, 0),
        Kind::UnsignedOrDefault { min, max, set } => {
            let n = unsigned(value)?;
            if n < min {
                return Err(Refusal::Range);
            }
            set(options, n.min(max));
            if n > max {
                return Err(Refusal::Nearest(max));
            }
        }
        Kind::Signed { min, max, set } => {
            let n = unsigned(value)? as i64;
            if n < min || n > max {
                return Err(Refusal::Range);
            }
            set(options, n);
        }
        Kind::Fraction(set) => set(options, fraction(value)?),
        Kind::Word(words, set) => set(options, word(words, value)?),
        Kind::Letters(set) => set(options, Letters::from_text(value)),
        Kind::Text(set) => set(value),
        Kind::CacheLimits(place) => {
            if !place(options).read(value) {
                return Err(Refusal::Value);
            }
        }
        Kind::NoEffect(ref shape) => {
            match shape {
                Shape::Bool => drop(boolean(value)?),
                Shape::Number => drop(unsigned(value)?),
                Shape::Words(words) => drop(word(words, value)?),
                Shape::Any => {}
            }
            return Err(Refusal::NoEffect);
        }
    }
    Ok(())
}

pub(super) fn boolean(value: &[u8]) -> Result<bool, Refusal> {
    match value {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(Refusal::Value),
    }
}

pub(super) fn word(words: &[&str], value: &[u8]) -> Result<usize, Refusal> {
    words.iter().position(|word| word.as_bytes() == value).ok_or(Refusal::Value)
}

/// Returns a value from its first byte on that is no white space of the C locale.
pub(super) fn without_blanks(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r');
    value.get(value.iter().take_while(is_blank).count()..).unwrap_or_default()
}

/// Parses a number as strtoumax with base 0 does: white space before it is skipped, `0x…` and `0…`
/// work, a leading `-` wraps, and suffixes are refused.
pub(super) fn unsigned(value: &[u8]) -> Result<u64, Refusal> {
    number(without_blanks(value))
}

fn number(value: &[u8]) -> Result<u64, Refusal> {
    let (negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, value),
    };
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        _ => (10u32, digits),
    };
    if digits.is_empty() {
        return Err(Refusal::Value);
    }
    let mut n = 0u64;
    for &c in digits {
        let digit = (c as char).to_digit(base).ok_or(Refusal::Value)?;
        let next = n.checked_mul(u64::from(base)).and_then(|n| n.checked_add(u64::from(digit)));
        n = next.ok_or(Refusal::Range)?;
    }
    Ok(if negative { n.wrapping_neg() } else { n })
}

/// Parses a decimal fraction below 65536 into 16.16 fixed point.
pub(super) fn fraction(value: &[u8]) -> Result<u32, Refusal> {
    let point = value.iter().position(|c| *c == b'.').unwrap_or(value.len());
    let whole = number(value.get(..point).unwrap_or(&[]))?;
    if whole > 0xffff {
        return Err(Refusal::Range);
    }
    let mut part = 0u64;
    let mut scale = 1u64;
    for &c in value.get(point + 1..).unwrap_or(&[]) {
        let digit = (c as char).to_digit(10).ok_or(Refusal::Value)?;
        if scale < 1_000_000_000 {
            part = part * 10 + u64::from(digit);
            scale *= 10;
        }
    }
    let part = (part << 16).checked_div(scale).unwrap_or(0);
    Ok((whole as u32) << 16 | part as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Options, bool) {
        let mut options = DEFAULTS;
        let mut record = Box::new(Record::EMPTY);
        let record = &mut *record;
        let mut reader = Reader { source: "test", record, only_confirm: false, bad: false };
        reader.string(&mut options, text.as_bytes());
        (options, reader.bad)
    }

    #[test]
    fn numbers_are_read_as_strtoumax_reads_them() {
        let ok = |text: &str| unsigned(text.as_bytes()).ok();
        assert_eq!(ok("0x10"), Some(16));
        assert_eq!(ok("010"), Some(8));
        assert_eq!(ok("0"), Some(0));
        assert_eq!(ok("-1"), Some(u64::MAX));
        assert_eq!(ok("18446744073709551616"), None);
        assert_eq!(ok("10K"), None);
        assert_eq!(ok(""), None);
        assert_eq!(ok("0x"), None);
        assert_eq!(
            (ok(" 2"), ok("\t\n\x0b\x0c\r 0x10"), ok("  -1")),
            (Some(2), Some(16), Some(u64::MAX))
        );
        assert_eq!((ok("2 "), ok("- 1"), ok(" "), ok("\u{a0}2")), (None, None, None, None));
        assert_eq!(fraction(b" 4").ok(), None);
        assert_eq!(fraction(b"4").ok(), Some(4 << 16));
        assert_eq!(fraction(b"0.25").ok(), Some(1 << 14));
        assert_eq!(fraction(b".").ok(), None);
    }

    #[test]
    fn good_pairs_count_and_later_ones_win() {
        let (options, bad) = read("narenas:3,dirty_decay_ms:-1,narenas:4,zero_realloc:alloc");
        assert!(!bad);
        assert_eq!(options.narenas, 4);
        let (options_of_default, bad) = read("narenas:3,narenas:default");
        assert!(!bad && options_of_default.narenas == 0);
        assert_eq!(options.dirty_decay_ms, -1);
        assert_eq!(options.zero_realloc, super::super::options::ZeroRealloc::Alloc);
        let (options, bad) = read("narenas: 2,dirty_decay_ms:\t-1");
        assert!(!bad && (options.narenas, options.dirty_decay_ms) == (2, -1));
    }

    #[test]
    fn bad_pairs_are_bad_and_the_rest_still_counts() {
        for text in ["nonsense:1", "narenas:0", "narenas:x", "abort:yes", "narenas", "a b:1"] {
            assert!(read(text).1, "{text}");
        }
        for text in ["guarded_sample:-1", "guarded_sample:4294967297"] {
            let (options, bad) = read(text);
            assert!(bad && options.guarded_sample == 0, "{text}");
        }
        let (options, bad) = read("nonsense:1,xmalloc:true");
        assert!(bad && options.xmalloc);
        let (options, bad) = read("xmalloc:true,");
        assert!(bad && options.xmalloc);
        assert!(!read("experimental_zzz:1").1);
        assert!(!read("prof:true").1);
        assert!(read("prof:maybe").1);
        assert!(!read("").1);
    }

    #[test]
    fn values_are_clipped_where_the_table_says_so() {
        assert_eq!(read("tcache_max:1000000").0.tcache_max, 32768);
        assert_eq!(read("lg_tcache_max:12").0.tcache_max, 4096);
        let (options, bad) = read("lg_prof_sample:-1,prof_bt_max:0");
        assert!(!bad && (options.lg_prof_sample, options.prof_bt_max) == (63, 1));
        for text in ["narenas:4095", "narenas:-1"] {
            let (options, bad) = read(text);
            assert!(!bad && options.narenas == 4094, "{text}");
        }
    }

    #[test]
    fn limits_of_caches_add_up_unless_one_is_bad() {
        let parts = |text: &str| {
            let (options, bad) = read(text);
            (options.tcache_ncached_max.parts().collect::<Vec<_>>(), bad)
        };
        let both = "tcache_ncached_max:8-16:1|24-32:2,tcache_ncached_max:32-32:3";
        assert_eq!(parts(both), (vec![(8, 16, 1), (32, 32, 3)], false));
        let second_bad = "tcache_ncached_max:8-16:1,tcache_ncached_max:8-16:2|x";
        assert_eq!(parts(second_bad), (vec![(8, 16, 1)], true));
    }
}
