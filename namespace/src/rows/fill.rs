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
        |_, on| set(Fill { junk_allocated: on, ..control::fill() }),
        "what any thread allocates from now on reads 0xa5; opt.junk at first"
    ),
    rw!(
        "fill.junk_freed",
        Bool,
        None,
        |_| control::fill().junk_freed,
        |_, on| set(Fill { junk_freed: on, ..control::fill() }),
        "what any thread frees from now on reads 0x5a; opt.junk at first"
    ),
    rw!(
        "fill.zero",
        Bool,
        None,
        |_| control::fill().zero,
        |_, on| set(Fill { zero: on, ..control::fill() }),
        "what any thread allocates from now on reads zero; opt.zero at first"
    ),
];

fn set(fill: Fill) -> Result<(), Error> {
    control::set_fill(fill).then_some(()).ok_or(Error::Again)
}
