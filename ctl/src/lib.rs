//! The dotted namespace of lumalloc: what `mallctl` reads, writes and triggers.
//!
//! **One row per key.** [`table::ROWS`] holds for each name its type, unit, access, help and the
//! functions that read and write it. Everything else is derived from that table:
//!
//! ```text
//!                    table::ROWS (one row per key)
//!                          │
//!          ┌───────────────┼──────────────────────┐
//!    tree: name ⇄ MIB   entry: typed read/write   print: text and JSON
//!          └───────┬───────┘
//!           access: the oldp/oldlenp/newp/newlen rules of mallctl(3)
//! ```
//!
//! A new key is one more row; nothing else changes.
//!
//! **Statistics are a published snapshot.** All `stats.*` rows answer from the snapshot taken at
//! the last write to `epoch` (see [`snapshot`]); the first use of the namespace takes the first
//! one.
//!
//! The crate is `no_std`, allocates nothing, takes no lock of the standard library and never
//! panics: it is linked into the C library, where its callers may be anywhere, even inside their
//! own allocation hooks.
#![no_std]

#[cfg(test)]
extern crate std;

#[allow(unsafe_code, reason = "reads and writes the caller's untyped buffers")]
pub mod access;
pub mod entry;
pub mod print;
pub mod row;
#[allow(unsafe_code, reason = "a lock around the published snapshot")]
pub mod snapshot;
pub mod table;
pub mod tree;
#[allow(unsafe_code, reason = "hands NUL-terminated text to a C callback")]
pub mod writer;

pub use access::{access, by_name};
pub use entry::Entry;
pub use row::{Access, Error, Row, Type, Unit, Value};
pub use tree::{MAX_DEPTH, name_to_mib};

/// The version of the library as `mallctl("version")` and the statistics show it.
pub const VERSION: &core::ffi::CStr =
    match core::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes())
    {
        Ok(version) => version,
        Err(_) => c"",
    };
