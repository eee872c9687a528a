//! `config.effective`: all options in force as one option string. Given to another program, it sets
//! the same options.
use crate::error::Error;
use crate::once_text::{OnceText, Room};
use crate::rows::opt;
use crate::value::Value;
use core::ffi::CStr;

/// Room for all options with their longest values: two of them are long, a prefix of PATH_MAX and
/// the limits of each class. A test adds them up.
const ROOM: usize = 8 << 10;

static TEXT: OnceText<ROOM> = OnceText::new();

/// The option string.
///
/// # Errors
/// [`Error::Again`] when more than four threads ask for the text for the first time at once.
pub fn text() -> Result<&'static CStr, Error> {
    TEXT.get(write)
}

fn write(room: &mut Room<'_>) {
    let mut separator: &[u8] = b"";
    for row in opt::ROWS {
        let name = row.name.as_bytes().strip_prefix(b"opt.");
        let value = row.access.reader().and_then(|read| read(&[]).ok());
        let (Some(name), Some(value)) = (name, value) else { continue };
        // An option string has no way to give an empty text, and it is the default.
        if value == Value::Str(c"") {
            continue;
        }
        room.push(separator);
        room.push(name);
        room.push(b":");
        write_value(room, value);
        separator = b",";
    }
}

fn write_value(room: &mut Room<'_>, value: Value<'_>) {
    match value {
        Value::Bool(value) => room.push(if value { b"true" } else { b"false" }),
        Value::Str(text) => room.push(text.to_bytes()),
        Value::Unsigned(number) | Value::U32(number) => room.push_number(u64::from(number)),
        Value::U64(number) => room.push_number(number),
        Value::Size(number) => room.push_number(number as u64),
        Value::Ssize(number) => write_signed(room, number as i64),
        Value::I64(number) => write_signed(room, number),
        Value::Pointer(_) => {}
    }
}

fn write_signed(room: &mut Room<'_>, number: i64) {
    if number < 0 {
        room.push(b"-");
    }
    room.push_number(number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option_text::LONGEST_LIMITS;
    use crate::value::Type;
    use std::format;

    #[test]
    fn all_options_fit_with_their_longest_values() {
        let longest = |row: &crate::row::Spec| match row.kind {
            // `control::profile::Prefix` and its NUL are PATH_MAX.
            Type::Str if row.name == "opt.prof_prefix" => libc::PATH_MAX as usize - 1,
            Type::Str if row.name == "opt.tcache_ncached_max" => LONGEST_LIMITS,
            Type::Str => "65535.99999 and more".len(),
            Type::Bool => "false".len(),
            _ => "18446744073709551615".len(),
        };
        assert_eq!(size_of::<lumalloc::control::profile::Prefix>(), libc::PATH_MAX as usize);
        let name = |row: &crate::row::Spec| row.name.len() - "opt.".len();
        let pair = |row: &crate::row::Spec| name(row) + ":,".len() + longest(row);
        let all: usize = opt::ROWS.iter().map(pair).sum();
        assert!(all < ROOM, "{all} bytes, and the NUL, need more than {ROOM}");
    }

    #[test]
    fn every_option_with_an_effect_is_among_them() {
        // `lg_tcache_max` sets `tcache_max`, which is listed.
        for name in lumalloc::options::names().filter(|&name| name != "lg_tcache_max") {
            let key = format!("opt.{name}");
            assert!(opt::ROWS.iter().any(|row| row.name == key), "rows/opt.rs lacks {key}");
        }
    }
}
