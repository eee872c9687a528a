//! `monitor.*`: the heap monitor, which writes each allocation and each free to a file.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::{act, ro, wo_or};
use lumalloc_profile::actions;
use lumalloc_profile::monitor::{self, Refusal};

/// The rows of the branch.
pub static ROWS: &[Spec] = &[
    wo_or!(
        "monitor.start",
        Str,
        None,
        |_, name| actions::start_monitor(Some(name)).map_err(error_of),
        |_| actions::start_monitor(None).map_err(error_of),
        "begins to write each allocation and each free to the file of that name, or for NULL to \
         one that is named by prof.prefix, process and number (EBUSY: it does already; EFAULT: \
         the file cannot be written; standard error tells why)"
    ),
    act!(
        "monitor.stop",
        |_| actions::stop_monitor().map(|_| ()).map_err(error_of),
        "ends what monitor.start began (EAGAIN: it was not begun; EFAULT: a part of the file could \
         not be written; standard error tells why)"
    ),
    ro!(
        "monitor.active",
        Bool,
        None,
        |_| monitor::is_running(),
        "whether each allocation and each free is being written to a file"
    ),
    ro!(
        "monitor.events",
        U64,
        Count,
        |_| monitor::counts().taken,
        "allocations and frees that were written, by the present or the last recording"
    ),
    ro!(
        "monitor.dropped",
        U64,
        Count,
        |_| monitor::counts().dropped,
        "allocations and frees that could not be written, because the file refused them"
    ),
    ro!(
        "monitor.recordings",
        U64,
        Count,
        |_| monitor::recordings(),
        "recordings that began; tells the present one from a later one"
    ),
];

fn error_of(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Running => Error::Busy,
        Refusal::Stopped => Error::Again,
        Refusal::BadName => Error::Invalid,
        Refusal::Unwritten(_) => Error::Fault,
        Refusal::System => Error::NoMemory,
    }
}
