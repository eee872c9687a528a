//! The namespace for Rust programs: typed keys, values by name as JSON, whole snapshots, option
//! strings, and a doctor.
//!
//! ```
//! use lumalloc_ctl::keys;
//!
//! # fn main() -> Result<(), lumalloc_ctl::CtlError> {
//! keys::EPOCH.write(0)?;
//! println!("{} bytes are allocated", keys::stats::ALLOCATED.read()?);
//!
//! let purge = keys::arena::PURGE.at([0])?;
//! purge.act()?;
//! # Ok(())
//! # }
//! ```
//!
//! The MIB of a key is known at compile time, so no name is looked up at run time. The rows behind
//! the keys are those of [`lumalloc_namespace`], which C programs reach by `mallctl`.

pub mod doctor;
pub mod error;
pub mod json;
pub mod key;
pub mod keys;
pub mod numbers;
pub mod option_string;
pub mod regions;
pub mod snapshot;
pub(crate) mod tree_walk;
pub mod typed;

pub use doctor::{Finding, examine};
pub use error::CtlError;
pub use json::{read_json, write_json};
pub use key::{
    Act, Ask, Bytes, Key, Read, ReadWrite, UnsafeAct, UnsafeCreate, UnsafeReadWrite, Write,
};
pub use lumalloc_namespace::{Access, Buffers, Error, Row, Stability, Type, Unit, Value};
pub use option_string::{OptionError, Options};
pub use snapshot::Snapshot;
