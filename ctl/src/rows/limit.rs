//! `limit.*`: bounds on what is taken from the system.
use crate::row::Row;

/// These keys.
pub static ROWS: &[Row] = &[];
