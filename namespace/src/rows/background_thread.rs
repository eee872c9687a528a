//! `background_thread`, `background_thread_auto` and `max_background_threads`.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::rw;
use lumalloc::control;

/// The rows of these keys.
pub static ROWS: &[Spec] = &[
    rw!(
        "background_thread",
        Bool,
        None,
        |_| control::background_thread(),
        |_, on| control::set_background_thread(on).then_some(()).ok_or(Error::Again),
        "whether a thread of the library that purges unused pages is kept; false in a forked child"
    ),
    rw!(
        "background_thread_auto",
        Bool,
        None,
        |_| control::background_thread_auto(),
        |_, on| {
            control::set_background_thread_auto(on);
            Ok(())
        },
        "whether a temporary thread purges when use has fallen far; writing false to \
         background_thread turns this off too"
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
