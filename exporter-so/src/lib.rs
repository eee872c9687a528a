//! `liblumalloc_exporter.so`: the exporter for programs that are started on `liblumalloc.so`.
//!
//! ```sh
//! export LUMALLOC_EXPORTER=127.0.0.1:9464
//! LD_PRELOAD="liblumalloc.so liblumalloc_exporter.so" redis-server
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`start_main`] | runs before `main`, if `LUMALLOC_EXPORTER` is set |
//! | [`start`] | starts the exporter as the variable says, or says in one line why it cannot |
//! | [`family`] | whether an ancestor serves already |
//! | [`survival`] | no panic here ends the program, nor does a lack of memory while it serves |
//!
//! The library holds no allocator. Its memory is the program's, and it reads and changes the
//! allocator by the C interface of `liblumalloc.so`. Without the variable nothing is started.
//! Nothing runs while the library is loaded. A child of `fork` serves nothing.

pub mod family;
#[allow(unsafe_code, reason = "writes to standard error by system call")]
pub mod start;
#[allow(unsafe_code, reason = "takes the place of a function of the C library")]
pub mod start_main;
#[allow(unsafe_code, reason = "an allocator in front of malloc")]
pub mod survival;
