//! The functions of mprof(1).
use crate::variables::write_to_stderr;
use core::ffi::{CStr, c_char, c_int};
use lumalloc_profile::actions;
use lumalloc_profile::mprof::{self, Refusal};

/// Writes the profile after each `count` allocations, or with 0 only when the program exits.
/// Source: mprof(1).
#[unsafe(no_mangle)]
pub extern "C" fn set_mprof_autosave(count: c_int) {
    const NAME: &[u8] = b"set_mprof_autosave";
    let outcome = mprof::set_autosave(u64::try_from(count).unwrap_or(0));
    if outcome.is_ok() && count < 0 {
        say(NAME, b"the count is negative; the profile is written only when the program exits");
    }
    report(outcome, NAME);
}

/// Writes the profile, and ends it. Source: mprof(1).
#[unsafe(no_mangle)]
pub extern "C" fn mprof_stop() {
    report(actions::stop_mprof(), b"mprof_stop");
}

/// Begins a new profile, which is written to the file of that name, or for an empty name or `NULL`
/// to standard output. Source: mprof(1).
///
/// # Safety
/// `filename` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprof_restart(filename: *const c_char) {
    let name = if filename.is_null() {
        c""
    } else {
        // SAFETY: the caller's promise; it is not null.
        unsafe { CStr::from_ptr(filename) }
    };
    report(mprof::restart(name), b"mprof_restart");
}

fn report(outcome: Result<(), Refusal>, function: &[u8]) {
    let Err(refusal) = outcome else { return };
    let reason: &[u8] = match refusal {
        Refusal::Off => b"the program was started without mprof:true",
        Refusal::Running => b"the profile is being taken; call mprof_stop first",
        Refusal::Stopped => b"no profile is being taken",
        // Standard error has the name of the file and the reason already.
        Refusal::Unwritten(_) => return,
        Refusal::BadName => b"the name of the file is too long",
    };
    say(function, reason);
}

fn say(function: &[u8], reason: &[u8]) {
    for part in [b"<lumalloc>: ", function, b": ", reason, b"\n"] {
        write_to_stderr(part);
    }
}
