//! What memory a run may be made of.

/// Which memory an allocation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Unused pages that still have memory.
    Resident,
    /// Addresses without memory as well.
    Any,
    /// The same, and most of it will be written soon.
    Filled,
}

impl Memory {
    /// The same memory, by who will write most of it soon.
    pub(crate) fn filled_if(self, filled: bool) -> Memory {
        if filled && self == Memory::Any { Memory::Filled } else { self }
    }
}
