//! The namespace for Rust programs, behind the feature `std`: typed keys, values by name as JSON,
//! and option strings.
//!
//! ```
//! use lumalloc_ctl::std_api::keys;
//!
//! # fn main() -> Result<(), lumalloc_ctl::std_api::CtlError> {
//! keys::EPOCH.write(0)?;
//! println!("{} bytes are allocated", keys::stats::ALLOCATED.read()?);
//!
//! let purge = keys::arena::PURGE.at([0])?;
//! purge.act()?;
//! # Ok(())
//! # }
//! ```
//!
//! A key knows its MIB when the program is compiled: no name is looked up at run time.

pub mod error;
pub mod json;
pub mod key;
pub mod keys;
pub mod doctor;
pub mod numbers;
pub mod option_string;
pub mod snapshot;
pub mod typed;

pub use doctor::{Finding, examine};
pub use error::CtlError;
pub use json::{read_json, write_json};
pub use key::{Act, Ask, Bytes, Key, Read, ReadWrite, Write};
pub use option_string::{OptionError, Options};
pub use snapshot::Snapshot;
