//! Heap profiles of lumalloc: their formats, and the files that they are written to.
//!
//! The allocator takes the samples ([`lumalloc::observe::profile`]). This crate writes them as
//! [`heap_v2`], which jeprof reads, to a [`sink::Sink`] or to a file ([`dump`]). It allocates
//! nothing, so a profile can be written when memory has run out.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod sink;
pub mod unbias;
pub mod heap_v2;
#[allow(unsafe_code)]
pub mod output_file;
pub mod dump;
pub mod leaks;
