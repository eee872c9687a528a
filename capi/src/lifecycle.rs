//! What happens when the library is loaded, when the process exits, and when it cannot go on.
//!
//! Start and end are functions in the sections `.init_array` and `.fini_array`: `atexit` would
//! allocate.
use crate::mallctl;
use crate::spare_stderr;
use crate::variables;
use alloc_core::options::Letters;
use alloc_core::{message, options, stats_interval};
use core::ptr;
use lumalloc_namespace::writer::WriteCallback;

/// Called by the loader once the library's relocations are done. The allocator itself needs no
/// start: it may have been used long before. Options are read now if they were not yet, as
/// jemalloc's are.
extern "C" fn at_load() {
    message::set_sink(Some(variables::deliver));
    stats_interval::set_printer(Some(at_interval));
    if options::current().stats_print {
        spare_stderr::make();
    }
}

/// Called when the bytes of `opt.stats_interval` were allocated: the statistics.
extern "C" fn at_interval() {
    print(None, &options::current().stats_interval_opts);
}

/// Prints the statistics by a callback, or where messages go, with these letters.
fn print(by: Option<WriteCallback>, letters: &Letters) {
    // SAFETY: a callback takes any text, none is allowed, and the letters are a C string.
    unsafe { mallctl::malloc_stats_print(by, ptr::null_mut(), letters.as_c_str().as_ptr()) };
}

/// Called when the process exits or the program ends: the statistics, under `opt.stats_print`.
extern "C" fn at_exit() {
    if options::current().stats_print {
        print(spare_stderr::instead(), &options::current().stats_print_opts);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Says why and aborts.
#[cold]
pub(crate) fn die(message: &[u8]) -> ! {
    variables::write_to_stderr(message);
    // SAFETY: abort has no requirements.
    unsafe { libc::abort() }
}
