//! What may be wrong with a block that comes back to its slab.

/// What may be wrong with a block that comes back.
pub(crate) enum Misuse {
    /// This address is not where a block begins.
    Interior(usize),
    /// The block at this address is free already.
    Twice(usize),
}
