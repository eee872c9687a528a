//! `thread.*`: the calling thread.
use crate::Error;
use crate::row::Row;
use crate::row_macros::act;
use lumalloc::control;

/// These keys.
pub static ROWS: &[Row] = &[
    act!(
        "thread.tcache.flush",
        |_| control::flush_thread_cache().then_some(()).ok_or(Error::Fault),
        "gives this thread's cached blocks back"
    ),
    act!(
        "thread.idle",
        |_| idle(),
        "says that this thread will do nothing for long: its cache keeps nothing"
    ),
];

/// A thread without a cache has nothing to give: that is no failure.
fn idle() -> Result<(), Error> {
    control::thread_idle();
    Ok(())
}
