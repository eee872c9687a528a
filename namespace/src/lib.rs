//! The dotted namespace of lumalloc: what `mallctl` reads, writes and triggers.
//!
//! **One row per key.** The files under [`rows`] hold for each name its type, unit, access, help
//! and the functions that read and write it. Everything else is derived from them:
//!
//! ```text
//!                    rows (one row per key, in files by branch)
//!                          │
//!          ┌───────────────┼──────────────────────┐
//!    tree: name ⇄ MIB   entry: typed read/write   print: text and JSON
//!          └───────┬───────┘
//!           access: the oldp/oldlenp/newp/newlen rules of mallctl(3)
//! ```
//!
//! A new key is one more row; `docs/new-key.md` says what else it takes. The tree is made at
//! compile time.
//!
//! **Statistics are a published snapshot.** All `stats.*` rows read the snapshot taken at the last
//! write to `epoch` (see [`snapshot`]). The first use of the namespace takes the first snapshot.
//!
//! The crate is `no_std`, allocates nothing, takes no lock of the standard library and never
//! panics, because it is linked into the C library, where its callers may be anywhere, even inside
//! their own allocation hooks. Rust programs use `lumalloc-ctl`, which is built on it.
#![no_std]

#[cfg(test)]
extern crate std;

#[allow(unsafe_code, reason = "passes on the caller's promise about its buffers")]
pub mod access;
#[allow(unsafe_code, reason = "reads and writes the caller's untyped buffers")]
pub mod buffers;
pub mod entry;
pub mod error;
pub mod facts;
pub mod print;
pub mod row;
#[allow(unused_macros, unused_imports, reason = "not every branch needs every macro")]
pub(crate) mod row_macros;
#[allow(unsafe_code, reason = "a text that is written once and read after")]
pub(crate) mod once_text;
pub(crate) mod option_text;
pub mod rows;
pub mod self_description;
#[cfg_attr(test, allow(unsafe_code, reason = "a test forks"))]
pub mod snapshot;
pub(crate) mod tree_draft;
pub mod key_table;
pub(crate) mod node;
pub mod tree;
pub mod value;
#[allow(unsafe_code, reason = "hands NUL-terminated text to a C callback")]
pub mod writer;

#[cfg_attr(test, allow(unsafe_code, reason = "the tests free what they allocated"))]
pub mod heap_map;

pub use access::{access, by_name};
pub use buffers::Buffers;
pub use entry::Entry;
pub use error::Error;
pub use facts::{Door, Fact, facts};
pub use key_table::Row;
pub use row::{Access, Stability};
pub use tree::{MAX_DEPTH, Mib, name_to_mib};
pub use value::{Type, Unit, Value};

/// The version of the library as `mallctl("version")` and the statistics show it.
pub const VERSION: &core::ffi::CStr =
    match core::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes())
    {
        Ok(version) => version,
        Err(_) => c"",
    };
