//! `config.effective`: all options in force as one option string, which sets the same when it is
//! given to a program.
use super::once_text::{OnceText, Room};
use crate::error::Error;
use crate::rows::opt;
use crate::value::Value;
use core::ffi::CStr;

static TEXT: OnceText = OnceText::new();

/// The option string.
///
/// # Errors
/// [`Error::Again`] when four threads ask for the first time at this moment.
pub fn text() -> Result<&'static CStr, Error> {
    TEXT.get(write)
}

fn write(room: &mut Room<'_>) {
    let mut separator: &[u8] = b"";
    for row in opt::ROWS {
        let name = row.name.as_bytes().strip_prefix(b"opt.");
        let value = row.access.reader().and_then(|read| read(&[]).ok());
        let (Some(name), Some(value)) = (name, value) else { continue };
        // An option that is empty by default has no way to be said.
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
        Value::Unsigned(number) | Value::U32(number) => write_number(room, u64::from(number)),
        Value::U64(number) => write_number(room, number),
        Value::Size(number) => write_number(room, number as u64),
        Value::Ssize(number) => write_signed(room, number as i64),
        Value::I64(number) => write_signed(room, number),
        Value::Pointer(_) => {}
    }
}

fn write_signed(room: &mut Room<'_>, number: i64) {
    if number < 0 {
        room.push(b"-");
    }
    write_number(room, number.unsigned_abs());
}

fn write_number(room: &mut Room<'_>, number: u64) {
    if number >= 10 {
        write_number(room, number / 10);
    }
    room.push(&[b'0' + (number % 10) as u8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn every_option_with_an_effect_is_among_them() {
        // What is set by these is told by another option: narenas, tcache_max.
        let others = ["narenas_ratio", "lg_tcache_max"];
        for name in lumalloc::options::names().filter(|name| !others.contains(name)) {
            let key = format!("opt.{name}");
            assert!(opt::ROWS.iter().any(|row| row.name == key), "rows/opt.rs lacks {key}");
        }
    }
}
