//! What may be wrong with a block that is returned to its slab.

/// What may be wrong with a block that is returned to its slab.
pub(crate) enum Misuse {
    /// No block begins at this address.
    Interior(usize),
    /// The block at this address is free already.
    Twice(usize),
}
