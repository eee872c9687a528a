//! Reads the heap profiles of the allocator and shows them.
//!
//! Nothing here runs in the profiled process. A profile is a file with counts of allocations and
//! their stacks as bare addresses; names and lines come from the program and its libraries.
//!
//! Reading order: [`profile`] (what a file says), [`read_file`] (pprof and heap_v2),
//! [`symbols`] (names), [`Report`] (both together), [`mprof`],
//! [`views`], [`flame_graph`].
#![forbid(unsafe_code)]

#[cfg(test)]
mod testing;
mod error;
pub mod profile;
mod read;
pub mod symbols;
mod block_type;
mod report;
pub mod mprof;
pub mod views;
mod flame;

pub use error::{Error, Result};
pub use flame::flame_graph;
pub use read::{is_profile, read_file};
pub use report::Report;
