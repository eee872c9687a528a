//! `liblumalloc_exporter.so`: the exporter for programs that are started on `liblumalloc.so`.
//!
//! ```sh
//! export LUMALLOC_EXPORTER=127.0.0.1:9464
//! LD_PRELOAD="liblumalloc.so liblumalloc_exporter.so" redis-server
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`start_main`] | stands before `main`, if `LUMALLOC_EXPORTER` is set |
//! | [`wish`] | what that variable says |
//! | [`start`] | starts the exporter, or says in one line why not |
//! | [`family`] | whether an ancestor serves already |
//! | [`survival`] | no panic here, and no lack of memory, ends the program |
//!
//! It holds no allocator: its memory is the program's, and what it tells and changes goes by the C
//! interface of `liblumalloc.so`. Without the variable nothing is started; nothing runs while it is
//! loaded; a child of `fork` serves nothing.

pub mod family;
#[allow(unsafe_code, reason = "writes to standard error by system call")]
pub mod start;
#[allow(unsafe_code, reason = "takes the place of a function of the C library")]
pub mod start_main;
#[allow(unsafe_code, reason = "an allocator in front of malloc")]
pub mod survival;
pub mod wish;
