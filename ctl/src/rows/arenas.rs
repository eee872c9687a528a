//! `arenas.*`: what all arenas share.
use crate::row::Row;
use crate::row_macros::ro;
use lumalloc::control;

/// These keys.
pub static ROWS: &[Row] = &[
    ro!("arenas.narenas", Unsigned, Count, |_| control::narenas(), "limit on the number of arenas"),
    ro!("arenas.page", Size, Bytes, |_| lumalloc::PAGE, "size of the allocator's page"),
];
