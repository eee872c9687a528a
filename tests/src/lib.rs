//! Helpers for the tests that look at lumalloc from outside.
//!
//! * [`build`]: the shared object under test and the C and C++ programs in `tests/c`;
//! * [`run`]: children with and without `LD_PRELOAD`, bounded in time and always reaped;
//! * [`identities`]: facts that hold for every snapshot;
//! * [`linked`]: programs that are linked with the library, as programs of users are;
//! * [`machine`]: the machine under test: this one, or another in an emulator;
//! * [`memory`]: how much memory a process occupies;
//! * [`profile_reports`]: what jeprof and pprof report of a profile;
//! * [`profiled`]: programs with their heap profiles, and the command that shows these;
//! * [`resident`]: how the resident memory of a process may change under a steady load;
//! * [`serving`]: programs that are preloaded with the exporter, and requests to them;
//! * [`storm`]: storms of allocations under options and refused system calls;
//! * [`template`]: exact messages with addresses and numbers left open;
//! * [`tidy`]: the rules that the sources themselves obey.
//!
//! Two variables replace the library under test, so that the tests can be tried on another
//! allocator: `LUMALLOC_TEST_LIBRARY` (a shared object) and `LUMALLOC_TEST_ARCHIVE` (a static
//! library). `LUMALLOC_TEST_TARGET` replaces the machine.

pub mod build;
mod directories;
pub mod identities;
pub mod linked;
pub mod machine;
pub mod memory;
mod not_tried;
pub mod profiled;
pub mod resident;
pub mod run;
pub mod profile_reports;
pub mod serving;
pub mod storm;
pub mod template;
pub mod tidy;

pub use build::{
    cargo, cc, compile, liblumalloc, liblumalloc_archive, liblumalloc_exporter, lumalloc, pprof,
    scratch,
};
pub use directories::{root, target_dir};
pub use run::{Run, run_plain, run_preloaded};

/// Says what a test does not try on this machine, and why. `tests/run` repeats it at its end.
pub fn not_tried(what: &str, why: &str) {
    not_tried::not_tried(what, why);
}
