//! `ctl.*`: keys that describe the namespace itself.
//!
//! `ctl.names` reads all names of rows, one per line. The other keys take one name, as a text at
//! `newp`: the name of a row (`arena.<i>.purge`), or a name with its indices (`arena.0.purge`):
//!
//! ```c
//! const char *name = "arena.0.purge", *help;
//! size_t length = sizeof help;
//! mallctl("ctl.help", &help, &length, &name, sizeof name);
//! ```
use crate::Error;
use crate::key_table::Row;
use crate::row::Spec;
use crate::row_macros::{ask, ro};
use crate::self_description::{NAMES, named};
use core::ffi::CStr;

/// A row that tells something about the row with the given name.
macro_rules! about {
    ($name:literal, $tell:expr, $help:literal) => {
        ask!(
            concat!("ctl.", $name),
            Str => Str,
            None,
            |_, name| {
                let tell: fn(&'static Row) -> &'static CStr = $tell;
                named(name.ok_or(Error::Invalid)?).map(tell)
            },
            $help
        )
    };
}

/// The rows of `ctl.*`.
pub static ROWS: &[Spec] = &[
    ro!("ctl.names", Str, None, |_| NAMES, "the names of all keys, one a line"),
    about!("type", |row| row.kind.c_name(), "the C type of the key whose name comes in"),
    about!(
        "input",
        |row| row.access.input().map_or(c"-", |input| input.c_name()),
        "the C type of what that key is asked about; - when it is not asked"
    ),
    about!("unit", |row| row.unit.name(), "its unit: bytes, pages, count, ms, ns, log2 or -"),
    about!("access", |row| row.access.notation(), "what may be done with it: r-, rw, -w or --"),
    about!("stability", |row| row.stability.name(), "stable, unstable or deprecated"),
    about!("help", |row| row.help(), "one line about it"),
];
