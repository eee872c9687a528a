//! The profile of mprof(1): each allocation is counted, and the counts are written to a file when
//! the program ends or asks for it.
//!
//! The file is a [`pprof`] profile. `lumalloc mprof` makes the tables from it.

use crate::file::to_descriptor;
use crate::output_file::{Name, write_whole};
use crate::path::Path;
use crate::pprof;
use crate::process::process_id;
use crate::reason;
use core::error::Error;
use core::ffi::{CStr, c_int};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use lumalloc::observe::TakeoverMutex;
use lumalloc::{control, intervals, observe, options};

/// The file that is written unless [`restart`] names another.
const DEFAULT_NAME: &CStr = c"mprof.data";

/// What stops a function of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process was started without `mprof:true`.
    Off,
    /// The profile is being taken already.
    Running,
    /// No profile is being taken.
    Stopped,
    /// The file could not be written, with the system's error number.
    Unwritten(c_int),
    /// The name is longer than any path.
    BadName,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Off => "the process was started without mprof:true",
            Refusal::Running => "the profile is being taken already",
            Refusal::Stopped => "no profile is being taken",
            Refusal::BadName => "the name is too long",
            Refusal::Unwritten(error) => return reason::say_unwritten(formatter, *error),
        })
    }
}

impl Error for Refusal {}

/// Empty: [`DEFAULT_NAME`], unless the profile goes to standard output.
static NAME: TakeoverMutex<Path> = TakeoverMutex::new(Path::new());
static TO_STDOUT: AtomicBool = AtomicBool::new(false);

/// Whether the program stopped the profile.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Allocations between two writes. 0: only at the end.
static AUTOSAVE: AtomicU64 = AtomicU64::new(0);
/// The process that took the name as it is. Others add their numbers.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Returns whether the profile is being taken.
#[must_use]
pub fn is_running() -> bool {
    options::current().mprof && !STOPPED.load(Ordering::Relaxed)
}

/// Writes the counts up to now.
///
/// A child of fork adds the number of its process to the name, so that it does not replace the
/// file of its parent.
///
/// # Errors
/// [`Refusal::Stopped`], and [`Refusal::Unwritten`]; the file is then as it was before.
pub fn save() -> Result<(), Refusal> {
    save_or(|_, _| ())
}

/// As [`save`]. Calls `tell` with the file that could not be written, and with the error.
///
/// # Errors
/// As [`save`].
pub(crate) fn save_or(tell: impl FnOnce(&CStr, c_int)) -> Result<(), Refusal> {
    if !is_running() {
        return Err(Refusal::Stopped);
    }
    control::profile::settle();
    if TO_STDOUT.load(Ordering::Relaxed) {
        return to_descriptor(libc::STDOUT_FILENO, pprof::write).map_err(|error| {
            tell(c"standard output", error);
            Refusal::Unwritten(error)
        });
    }
    let mut path = NAME.with(|path, _| path.clone());
    let mut origin = Name::Given;
    if path.as_c_str().is_empty() {
        path.push(DEFAULT_NAME.to_bytes());
        origin = Name::MadeUp;
    }
    if is_child() {
        path.push(b".").and_then(|path| path.push_number(u64::from(process_id())));
        origin = Name::MadeUp;
    }
    write_whole(path.as_c_str(), origin, pprof::write).map_err(|error| {
        tell(path.as_c_str(), error);
        Refusal::Unwritten(error)
    })
}

/// Returns whether this process is a child of the one whose name the file has.
fn is_child() -> bool {
    match FIRST.load(Ordering::Relaxed) {
        0 => observe::fork_generation() > 0,
        first => first != process_id(),
    }
}

/// Returns how many allocations there are between two writes. 0: the file is only written at the
/// end. Source: mprof(1), `set_mprof_autosave`.
#[must_use]
pub fn autosave() -> u64 {
    AUTOSAVE.load(Ordering::Relaxed)
}

/// Writes the file after each `count` allocations from now on. 0: only at the end. A file that
/// cannot be written is tried again at the next time.
///
/// # Errors
/// [`Refusal::Off`].
pub fn set_autosave(count: u64) -> Result<(), Refusal> {
    check_exact()?;
    AUTOSAVE.store(count, Ordering::Relaxed);
    intervals::set_sample_action(Some(save_now), count);
    Ok(())
}

extern "C" fn save_now() {
    // There is nobody to tell.
    let _ = save();
}

fn check_exact() -> Result<(), Refusal> {
    if options::current().mprof { Ok(()) } else { Err(Refusal::Off) }
}

/// Writes the file, and takes no profile from then on. Source: mprof(1), `mprof_stop`.
///
/// # Errors
/// [`Refusal::Off`], [`Refusal::Stopped`], and [`Refusal::Unwritten`] after it was stopped.
pub fn stop() -> Result<(), Refusal> {
    stop_or(|_, _| ())
}

/// As [`stop`]. Calls `tell` with the file that could not be written, and with the error.
///
/// # Errors
/// As [`stop`].
pub(crate) fn stop_or(tell: impl FnOnce(&CStr, c_int)) -> Result<(), Refusal> {
    check_exact()?;
    let saved = save_or(tell);
    if saved != Err(Refusal::Stopped) {
        control::profile::set_active(false);
        STOPPED.store(true, Ordering::Relaxed);
    }
    saved
}

/// Takes a new profile, from empty counts, that is written to another file. An empty name is
/// standard output. Source: mprof(1), `mprof_restart`.
///
/// # Errors
/// [`Refusal::Off`], [`Refusal::Running`], [`Refusal::BadName`].
pub fn restart(name: &CStr) -> Result<(), Refusal> {
    check_exact()?;
    if is_running() {
        return Err(Refusal::Running);
    }
    let mut path = Path::new();
    path.push(name.to_bytes()).ok_or(Refusal::BadName)?;
    NAME.with(|present, _| *present = path);
    TO_STDOUT.store(name.is_empty(), Ordering::Relaxed);
    FIRST.store(process_id(), Ordering::Relaxed);
    control::profile::reset(0);
    STOPPED.store(false, Ordering::Relaxed);
    control::profile::set_active(true);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_option_all_is_refused() {
        assert!(!is_running());
        assert_eq!(save(), Err(Refusal::Stopped));
        assert_eq!(stop(), Err(Refusal::Off));
        assert_eq!(restart(c"x"), Err(Refusal::Off));
        assert_eq!((set_autosave(3), autosave()), (Err(Refusal::Off), 0));
    }
}
