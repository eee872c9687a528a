//! `stats.arenas.<i>.*`, from the published snapshot.
use crate::row::{Index, Row};
use crate::rows::arena;

/// These keys.
pub static ROWS: &[Row] = &[];

/// Their indices.
pub static INDICES: &[Index] =
    &[Index { path: "stats.arenas.<i>", valid: |mib| arena::is_index(mib.get(2)) }];
