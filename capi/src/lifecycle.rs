//! What happens when the library is loaded, when the process exits, and when it cannot go on.
//!
//! Start and end are functions in the sections `.init_array` and `.fini_array`: `atexit` would
//! allocate.
use crate::mallctl;
use crate::variables;
use alloc_core::{message, options};
use core::ptr;

/// Called by the loader once the library's relocations are done. The allocator itself needs no
/// start: it may have been used long before.
extern "C" fn at_load() {
    message::set_sink(Some(variables::deliver));
}

/// Called when the process exits or the program ends: the statistics, under `opt.stats_print`.
extern "C" fn at_exit() {
    if options::current().stats_print {
        // SAFETY: no callback, no options: NULLs are allowed.
        unsafe { mallctl::malloc_stats_print(None, ptr::null_mut(), ptr::null()) };
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
