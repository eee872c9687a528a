//! `background_thread` and `max_background_threads`.
use crate::Error;
use crate::row::Row;
use crate::row_macros::rw;
use lumalloc::control;

/// The rows of both keys.
pub static ROWS: &[Row] = &[
    rw!(
        "background_thread",
        Bool,
        None,
        |_| control::background_thread(),
        |_, on| control::set_background_thread(on).then_some(()).ok_or(Error::Again),
        "whether a thread of the library purges unused pages; false in a forked child"
    ),
    rw!(
        "max_background_threads",
        Size,
        Count,
        |_| control::max_background_threads(),
        |_, most| control::set_max_background_threads(most).then_some(()).ok_or(Error::Invalid),
        "most background threads: 1 to opt.max_background_threads; one is all there ever is"
    ),
];
