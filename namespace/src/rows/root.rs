//! `version` and `epoch`.
use crate::row::{Access, Spec};
use crate::row_macros::{ro, row};
use crate::{VERSION, Value, snapshot};

/// The rows of both keys.
pub static ROWS: &[Spec] = &[
    ro!("version", Str, None, |_| VERSION, "version of the library"),
    row!(
        "epoch",
        U64,
        Count,
        Access::WriteThenRead(
            |_| Ok(Value::U64(snapshot::current().epoch)),
            |_, _| {
                snapshot::refresh();
                Ok(())
            },
        ),
        "any write takes a new snapshot of the statistics and counts up; reads give the count"
    ),
];
