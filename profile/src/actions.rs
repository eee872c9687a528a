//! What the options ask of a process: profiles while it runs, and files at its end.
//!
//! `liblumalloc` does it for the programs that it is preloaded into. A Rust program whose global
//! allocator is lumalloc calls [`start`].

use crate::dump::{self, Cause};
use crate::event_file::Unended;
use crate::leaks::Leaks;
use crate::messages::{Messages, tell_unnamed, tell_unwritten};
use crate::{log, monitor, mprof, standard_streams};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use lumalloc::{control, intervals, message, options};

/// Does from now on, and when the process exits, what the options ask for: `lg_prof_interval`,
/// `prof_gdump`, `prof_log`, `prof_final`, `prof_leak`, `prof_leak_error`, `mprof` and `monitor`.
/// Without these options it does nothing.
///
/// For programs whose global allocator is lumalloc; with `liblumalloc` nobody needs to call it. It
/// is called once, first in `main`. What cannot be done is said on standard error, or where
/// messages of the allocator go.
///
/// ```
/// // First in `main`. LUMALLOC_CONF=prof:true,prof_final:true writes a profile at the exit.
/// lumalloc_profile::actions::start();
/// ```
pub fn start() {
    begin();
    // SAFETY: the handler is a function without requirements. A process without memory for it
    // writes nothing at its end.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if end() {
        fail();
    }
}

/// Does what the options ask for while the process runs.
pub fn begin() {
    intervals::set_profiler(Some(at_interval));
    intervals::set_maximum_profiler(Some(at_maximum));
    if options::current().prof_libgcc {
        unwind_by_libgcc();
    }
    if options::current().prof_log && log::start(None).is_err() {
        message::write(b"<lumalloc>: no log of samples is kept: is there prof:true?\n");
    }
    if options::current().monitor {
        begin_monitor();
    }
}

/// A C library without backtrace(3) has no libgcc to load.
#[cfg(not(target_env = "gnu"))]
fn unwind_by_libgcc() {
    message::write(b"<lumalloc>: prof_libgcc has no effect with this C library\n");
}

/// Takes stacks from libgcc's unwinder, which backtrace(3) of the C library loads and calls.
#[cfg(target_env = "gnu")]
fn unwind_by_libgcc() {
    // The first call loads libgcc, which allocates.
    let mut callers = [core::ptr::null_mut(); 2];
    // SAFETY: there is room for two addresses.
    unsafe { libc::backtrace(callers.as_mut_ptr(), 2) };
    // SAFETY: the function writes as many addresses as it is told at most.
    unsafe { control::profile::set_unwinder(Some(libc::backtrace)) };
}

/// Does what the options ask for at the end of the process. Returns whether the process has to end
/// with an error, because memory is still allocated under `prof_leak_error:true`: then [`fail`] is
/// to be called.
#[must_use]
pub fn end() -> bool {
    if options::current().prof_leak {
        standard_streams::give_memory_back();
    }
    if log::is_begun_here() {
        // What is refused was told, or was not asked for.
        let _ = stop_log();
    }
    // A failure was told.
    let _ = stop_monitor();
    let _ = mprof::save_or(tell_unwritten_mprof);
    if options::current().prof_final {
        write_profile(Cause::Final, b"the profile at exit");
    }
    options::current().prof_leak && report_leaks()
}

/// Ends the process with an error because memory is still allocated. Called while it exits.
pub fn fail() -> ! {
    message::write(b"<lumalloc>: Exiting with error code because memory leaks were detected\n");
    standard_streams::fail()
}

/// Called each time that 2^`opt.lg_prof_interval` bytes were allocated.
extern "C" fn at_interval() {
    write_automatic(Cause::Interval);
}

/// Called when more memory is held than ever before, under `prof.gdump`.
extern "C" fn at_maximum() {
    write_automatic(Cause::Maximum);
}

/// The error of the last profile that an interval or a maximum asked for. 0: it was written.
static LAST_ERROR: AtomicI32 = AtomicI32::new(0);

/// Writes a profile as [`write_profile`]. What the last one was refused for is not told again,
/// because there may be one in each second.
fn write_automatic(cause: Cause) {
    let told = |path: &CStr, error| {
        if LAST_ERROR.swap(error, Relaxed) != error {
            tell_unwritten(b"a profile", path, error);
        }
    };
    if dump::to_file_or(None, cause, told).is_ok() {
        LAST_ERROR.store(0, Relaxed);
    }
}

/// Writes a profile, unless the prefix is empty or the process takes none. If it cannot be written,
/// `what` is told.
fn write_profile(cause: Cause, what: &[u8]) {
    // It was told, unless none is wanted.
    let _ = dump::to_file_or(None, cause, |path, error| tell_unwritten(what, path, error));
}

/// Writes a profile as [`dump::to_file`] for the program. If it cannot be written, standard error
/// tells the file and the reason.
///
/// # Errors
/// As [`dump::to_file`].
pub fn dump(name: Option<&CStr>) -> Result<(), c_int> {
    const WHAT: &[u8] = b"a profile";
    let told = |path: &CStr, error| tell_unwritten(WHAT, path, error);
    let dumped = dump::to_file_or(name, Cause::Manual, told);
    if name.is_none() && dumped == Err(libc::EINVAL) && dump::is_unwanted(libc::EINVAL) {
        message::write(b"<lumalloc>: a profile has no name for its file: see prof_prefix\n");
    }
    dumped
}

/// Ends the log of samples as [`log::stop`]. If it cannot be written, standard error tells the file
/// and the reason.
///
/// # Errors
/// As [`log::stop`].
pub fn stop_log() -> Result<(), log::Refusal> {
    log::stop_or(|path, error| tell_unwritten(b"the log of samples", path, error))
}

/// Begins the recording that `opt.monitor` asks for.
fn begin_monitor() {
    // `start_monitor` has told a failure on standard error.
    let _ = start_monitor(None);
}

/// Begins a recording as [`monitor::start`]. What the system refuses is told on standard error, and
/// that there is no name.
///
/// # Errors
/// As [`monitor::start`].
pub fn start_monitor(name: Option<&CStr>) -> Result<(), monitor::Refusal> {
    let told = |path: &CStr, error| tell_unwritten(b"the file of the heap monitor", path, error);
    let started = monitor::start_or(name, told);
    match started {
        Err(monitor::Refusal::BadName) if name.is_none() => message::write(
            b"<lumalloc>: the heap monitor has no name for its file: see prof_prefix\n",
        ),
        Err(monitor::Refusal::System) => message::warn(
            b"<lumalloc>: the heap monitor could not begin: there is no memory for it, or the \
              system refuses membarrier\n",
        ),
        _ => {}
    }
    started.map(|_| ())
}

/// Ends a recording as [`monitor::stop`]. If a part of it could not be written, or its name not
/// changed, standard error tells the file and the reason.
///
/// # Errors
/// As [`monitor::stop`].
pub fn stop_monitor() -> Result<monitor::Counts, monitor::Refusal> {
    const END: &[u8] = b"the end of the heap monitor's file";
    const PART: &[u8] = b"a part of the heap monitor's recording";
    monitor::stop_or(|path, unended| match unended {
        Unended::Cut(error) => tell_unwritten(END, path, error),
        Unended::Lost(error) => tell_unwritten(PART, path, error),
        Unended::Unnamed(error) => tell_unnamed(b"the file of the heap monitor", path, error),
    })
}

/// Writes the profile of mprof(1), and ends it, as [`mprof::stop`]. If its file cannot be written,
/// standard error tells the file and the reason.
///
/// # Errors
/// As [`mprof::stop`].
pub fn stop_mprof() -> Result<(), mprof::Refusal> {
    mprof::stop_or(tell_unwritten_mprof)
}

fn tell_unwritten_mprof(path: &CStr, error: c_int) {
    tell_unwritten(b"the data of mprof", path, error);
}

/// Reports what is still allocated. Returns whether that is an error.
fn report_leaks() -> bool {
    control::profile::settle();
    let leaks = Leaks::now();
    if leaks.stacks == 0 {
        return false;
    }
    leaks.write(&mut Messages);
    options::current().prof_leak_error
}
