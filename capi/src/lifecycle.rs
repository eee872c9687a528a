//! What the library does when it is loaded, and when the process exits.
//!
//! The functions for start and end are listed in the sections `.init_array` and `.fini_array`,
//! because `atexit` would allocate.
use crate::cxx;
use crate::mallctl;
use crate::next_function;
use crate::region;
use crate::spare_stderr;
use crate::standard;
use crate::variables;
use alloc_core::control::profile;
use alloc_core::options::Letters;
use alloc_core::{fork, intervals, message, options};
use core::ffi::c_void;
use core::ptr;
use lumalloc_namespace::writer::WriteCallback;
use lumalloc_profile::actions;

/// Called by the loader once the library is relocated. The allocator itself needs no start, and may
/// have been used long before. Options are read now unless they were before, as in jemalloc.
extern "C" fn at_load() {
    profile::own_module(serves_loader);
    // SAFETY: the function takes any C string, in any thread.
    unsafe { message::set_sink(Some(variables::deliver)) };
    intervals::set_printer(Some(at_interval));
    if options::current().stats_print {
        spare_stderr::make();
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    cxx::resolved::begin();
    actions::begin();
    region::malloc::begin();
}

/// Whether the loader's `calloc` is ours: the first one of all libraries.
fn serves_loader() -> bool {
    next_function::first(c"calloc") == standard::calloc as *mut c_void
}

/// Prints the statistics. Called each time that `opt.stats_interval` bytes were allocated.
extern "C" fn at_interval() {
    print(None, &options::current().stats_interval_opts);
}

/// Prints the statistics with these letters, by a callback or to where messages go.
fn print(by: Option<WriteCallback>, letters: &Letters) {
    // SAFETY: a callback takes any text, NULL is allowed, and the letters are a C string.
    unsafe { mallctl::malloc_stats_print(by, ptr::null_mut(), letters.as_c_str().as_ptr()) };
}

/// Does what the options ask for at the end. Called when the process exits.
extern "C" fn at_exit() {
    region::malloc::end();
    let has_leaks = actions::end();
    if options::current().stats_print {
        print(spare_stderr::instead(), &options::current().stats_print_opts);
    }
    if has_leaks {
        actions::fail();
    }
}

/// Registers the handlers of fork, unless that was done. Called before other constructors of the
/// program that the archive is linked into, or of the shared object, because a program's may
/// register handlers that wait for a lock under which others allocate.
extern "C" fn before_constructors() {
    fork::register();
}

#[used]
#[unsafe(link_section = ".init_array.00000")]
static BEFORE_CONSTRUCTORS: extern "C" fn() = before_constructors;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
