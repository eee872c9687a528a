//! Heap profiles of lumalloc: their formats, and the files that they are written to.
//!
//! The allocator takes the samples ([`lumalloc::observe::profile`]). This crate writes them as
//! [`heap_v2`], which jeprof reads, or as [`pprof`], to a [`sink::Sink`] or to a file ([`dump`]).
//! It allocates nothing, so a profile can be written when memory has run out.
#![no_std]

#[cfg(test)]
extern crate std;

pub(crate) mod decimal;
pub mod sink;
pub mod reason;
pub(crate) mod messages;
#[allow(unsafe_code)]
pub(crate) mod scratch;
pub(crate) mod table;
#[allow(unsafe_code)]
pub(crate) mod live_table;
pub mod unbias;
pub(crate) mod gzip;
pub(crate) mod varints;
pub(crate) mod protobuf;
#[allow(unsafe_code)]
pub(crate) mod process;
pub mod path;
#[allow(unsafe_code)]
pub(crate) mod kept_file;
#[allow(unsafe_code)]
pub mod file;
pub mod output_file;
pub mod ranges;
pub(crate) mod maps_line;
pub(crate) mod moved_text;
pub(crate) mod mappings;
pub(crate) mod notes;
pub(crate) mod resets;
#[allow(unsafe_code)]
pub(crate) mod threads;
pub mod heap_v2;
pub mod pprof;
pub mod dump;
pub(crate) mod json;
pub mod recent;
pub mod log;
#[allow(unsafe_code)]
pub mod mprof;
pub(crate) mod event_file;
pub(crate) mod event_output;
#[allow(unsafe_code)]
pub(crate) mod old_blocks;
#[allow(unsafe_code)]
pub mod monitor;
pub mod leaks;
#[allow(unsafe_code)]
pub(crate) mod standard_streams;
#[allow(unsafe_code)]
pub mod actions;
