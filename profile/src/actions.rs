//! What the options ask of a process: profiles while it runs, and files at its end.
//!
//! `liblumalloc` does it for the programs that it is preloaded into. A Rust program whose global
//! allocator is lumalloc calls [`start`].

use crate::dump::{self, Cause};
use crate::leaks::Leaks;
use crate::monitor::{self, Counts};
use crate::sink::Sink;
use crate::{log, mprof, standard_streams};
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
    if options::current().monitor && monitor::start(None).is_err() {
        message::write(b"<lumalloc>: the file of the heap monitor cannot be written\n");
    }
}

/// Takes stacks from libgcc's unwinder, which backtrace(3) of the C library loads and calls.
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
    if let Err(log::Refusal::Unwritten(_)) = log::stop() {
        message::write(b"<lumalloc>: the log of samples could not be written\n");
    }
    end_monitor();
    if mprof::is_running() && mprof::save().is_err() {
        message::write(b"<lumalloc>: the data of mprof could not be written\n");
    }
    if options::current().prof_final {
        let failed = b"<lumalloc>: the profile at exit could not be written\n";
        write_profile(Cause::Final, failed);
    }
    options::current().prof_leak && report_leaks()
}

/// Ends the process with an error because memory is still allocated.
pub fn fail() -> ! {
    message::write(b"<lumalloc>: Exiting with error code because memory leaks were detected\n");
    standard_streams::flush();
    // The handlers of exit run at this moment, so they must not be called again.
    // SAFETY: ends the process.
    unsafe { libc::_exit(libc::EXIT_FAILURE) }
}

/// Called each time that 2^`opt.lg_prof_interval` bytes were allocated.
extern "C" fn at_interval() {
    write_profile(Cause::Interval, UNWRITTEN);
}

/// Called when more memory is held than ever before, under `prof.gdump`.
extern "C" fn at_maximum() {
    write_profile(Cause::Maximum, UNWRITTEN);
}

const UNWRITTEN: &[u8] = b"<lumalloc>: a profile could not be written\n";

/// Writes a profile, unless the prefix is empty or the process takes none.
fn write_profile(cause: Cause, failed: &[u8]) {
    if dump::to_file(None, cause).is_err_and(|error| !dump::is_unwanted(error)) {
        message::write(failed);
    }
}

/// Ends the recording of the heap monitor, if there is one. Says so if its file is not whole.
fn end_monitor() {
    let text: &[u8] = match monitor::stop() {
        Ok(Counts { dropped: 0, .. }) | Err(monitor::Refusal::Stopped) => return,
        Ok(_) => b"<lumalloc>: events of the heap monitor were dropped: the file refused them\n",
        Err(_) => b"<lumalloc>: the end of the heap monitor's file could not be written\n",
    };
    message::write(text);
}

/// Reports what is still allocated. Returns whether that is an error.
fn report_leaks() -> bool {
    control::profile::settle_thread();
    let leaks = Leaks::now();
    if leaks.stacks == 0 {
        return false;
    }
    leaks.write(&mut Messages);
    options::current().prof_leak_error
}

struct Messages;

impl Sink for Messages {
    fn put(&mut self, bytes: &[u8]) -> bool {
        message::write(bytes);
        true
    }
}
