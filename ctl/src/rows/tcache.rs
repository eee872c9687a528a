//! `tcache.*`: caches that belong to no thread.
use crate::row::Row;

/// These keys.
pub static ROWS: &[Row] = &[];
