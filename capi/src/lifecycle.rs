//! What the library does when it is loaded, when the process exits, and when it cannot go on.
//!
//! The functions for start and end are listed in the sections `.init_array` and `.fini_array`,
//! because `atexit` would allocate.
use crate::mallctl;
use crate::spare_stderr;
use crate::variables;
use alloc_core::control::profile;
use alloc_core::options::Letters;
use alloc_core::{intervals, message, options};
use core::ptr;
use lumalloc_namespace::writer::WriteCallback;
use lumalloc_profile::dump::{self, Cause};
use lumalloc_profile::leaks::Leaks;
use lumalloc_profile::log;
use lumalloc_profile::monitor::{self, Counts, Refusal};
use lumalloc_profile::mprof;
use lumalloc_profile::sink::Sink;

/// Called by the loader once the library is relocated. The allocator itself needs no start, and may
/// have been used long before. Options are read now unless they were before, as in jemalloc.
extern "C" fn at_load() {
    profile::own_module();
    message::set_sink(Some(variables::deliver));
    intervals::set_printer(Some(at_interval));
    intervals::set_profiler(Some(at_profile_interval));
    intervals::set_maximum_profiler(Some(at_maximum));
    if options::current().stats_print {
        spare_stderr::make();
    }
    if options::current().prof_log && log::start(None).is_err() {
        variables::write_to_stderr(b"<lumalloc>: no log of samples is kept: is there prof:true?\n");
    }
    if options::current().monitor && monitor::start(None).is_err() {
        variables::write_to_stderr(b"<lumalloc>: the file of the heap monitor cannot be written\n");
    }
}

/// Prints the statistics. Called each time that `opt.stats_interval` bytes were allocated.
extern "C" fn at_interval() {
    print(None, &options::current().stats_interval_opts);
}

/// Writes a profile. Called each time that 2^`opt.lg_prof_interval` bytes were allocated.
extern "C" fn at_profile_interval() {
    write_profile(Cause::Interval);
}

/// Writes a profile. Called when more memory is held than ever before, under `prof.gdump`.
extern "C" fn at_maximum() {
    write_profile(Cause::Maximum);
}

fn write_profile(cause: Cause) {
    if dump::to_file(None, cause).is_err_and(|error| !dump::is_unwanted(error)) {
        variables::write_to_stderr(b"<lumalloc>: a profile could not be written\n");
    }
}

/// Prints the statistics with these letters, by a callback or to where messages go.
fn print(by: Option<WriteCallback>, letters: &Letters) {
    // SAFETY: a callback takes any text, NULL is allowed, and the letters are a C string.
    unsafe { mallctl::malloc_stats_print(by, ptr::null_mut(), letters.as_c_str().as_ptr()) };
}

/// Prints the statistics under `opt.stats_print`. Called when the process exits.
extern "C" fn at_exit() {
    if let Err(log::Refusal::Unwritten(_)) = log::stop() {
        variables::write_to_stderr(b"<lumalloc>: the log of samples could not be written\n");
    }
    end_monitor();
    if mprof::is_running() && mprof::save().is_err() {
        variables::write_to_stderr(b"<lumalloc>: the data of mprof could not be written\n");
    }
    if options::current().prof_final {
        write_final_profile();
    }
    if options::current().prof_leak {
        report_leaks();
    }
    if options::current().stats_print {
        print(spare_stderr::instead(), &options::current().stats_print_opts);
    }
}

/// Ends the recording of the heap monitor, if there is one. Says so if its file is not whole.
fn end_monitor() {
    let text: &[u8] = match monitor::stop() {
        Ok(Counts { dropped: 0, .. }) | Err(Refusal::Stopped) => return,
        Ok(_) => b"<lumalloc>: events of the heap monitor were dropped: the file refused them\n",
        Err(_) => b"<lumalloc>: the end of the heap monitor's file could not be written\n",
    };
    variables::write_to_stderr(text);
}

/// Writes a profile under `opt.prof_final`. Says so if that fails.
fn write_final_profile() {
    // Without a prefix none is wanted, and without `prof:true` there is none.
    if dump::to_file(None, Cause::Final).is_err_and(|error| !dump::is_unwanted(error)) {
        variables::write_to_stderr(b"<lumalloc>: the profile at exit could not be written\n");
    }
}

/// Reports what is still allocated, under `opt.prof_leak`. Ends the process with an error under
/// `opt.prof_leak_error`.
fn report_leaks() {
    profile::settle_thread();
    let leaks = Leaks::now();
    if leaks.stacks == 0 {
        return;
    }
    leaks.write(&mut ToStderr);
    if options::current().prof_leak_error {
        variables::write_to_stderr(LEAK_ERROR);
        // The handlers of exit run at this moment, so they must not be called again.
        // SAFETY: ends the process.
        unsafe { libc::_exit(libc::EXIT_FAILURE) };
    }
}

const LEAK_ERROR: &[u8] =
    b"<lumalloc>: Exiting with error code because memory leaks were detected\n";

struct ToStderr;

impl Sink for ToStderr {
    fn put(&mut self, bytes: &[u8]) -> bool {
        variables::write_to_stderr(bytes);
        true
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Writes a message and aborts.
#[cold]
pub(crate) fn die(message: &[u8]) -> ! {
    variables::write_to_stderr(message);
    // SAFETY: abort has no requirements.
    unsafe { libc::abort() }
}
