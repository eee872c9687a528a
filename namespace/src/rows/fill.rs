//! `fill.*`: junk and zero fill at run time.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::rw;
use lumalloc::control::{self, Fill};

/// The rows of `fill.*`.
pub static ROWS: &[Spec] = &[
    rw!(
        "fill.junk_allocated",
        Bool,
        None,
        |_| control::fill().junk_allocated,
        |_, on| change(|fill| Fill { junk_allocated: on, ..fill }),
        "what any thread allocates from now on reads 0xa5; opt.junk at first"
    ),
    rw!(
        "fill.junk_freed",
        Bool,
        None,
        |_| control::fill().junk_freed,
        |_, on| change(|fill| Fill { junk_freed: on, ..fill }),
        "what any thread frees from now on reads 0x5a; opt.junk at first"
    ),
    rw!(
        "fill.zero",
        Bool,
        None,
        |_| control::fill().zero,
        |_, on| change(|fill| Fill { zero: on, ..fill }),
        "what any thread allocates from now on reads zero; opt.zero at first"
    ),
];

fn change(change: impl FnOnce(Fill) -> Fill) -> Result<(), Error> {
    control::change_fill(change).then_some(()).ok_or(Error::Again)
}
