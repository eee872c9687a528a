//! What memory a run may be made of.

use super::huge_end;
use crate::ground::units::PAGE;

/// Which memory an allocation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Unused pages that still have memory.
    Resident,
    /// Addresses without memory as well.
    Any,
    /// As `Any`, and most of it will be written soon.
    Filled,
    /// As `Filled`, but little of the huge page in which it ends will be.
    Begun,
    /// As `Filled`, and more such runs will follow.
    Followed,
}

impl Memory {
    /// The same memory, for a caller that writes most of it soon if `filled`.
    pub(crate) fn filled_if(self, filled: bool) -> Memory {
        if filled && self == Memory::Any { Memory::Filled } else { self }
    }

    /// The same memory, for a caller that has written many such runs already if `followed`.
    pub(crate) fn followed_if(self, followed: bool) -> Memory {
        if followed && self == Memory::Any { Memory::Followed } else { self }
    }
}

/// A run of new memory that is asked for.
#[derive(Clone, Copy)]
pub(in crate::back) struct Request {
    pub(in crate::back) pages: usize,
    pub(in crate::back) align: usize,
    pub(in crate::back) memory: Memory,
}

/// Pages in use from which on chunks are taken, of which one is a quarter then: of all arenas
/// together, as a thread's is small where there are many; of a program's own arena by itself.
pub(in crate::back) const LARGE_HEAP: usize = (8 << 20) / PAGE;
/// The same of all arenas where more such runs will follow: what is left is soon used.
const SMALL_HEAP: usize = (3 << 20) / PAGE;

impl Request {
    /// Whether most of it will be written soon.
    pub(in crate::back) fn is_filled(&self) -> bool {
        !matches!(self.memory, Memory::Resident | Memory::Any)
    }

    /// The pages that it takes where huge pages lie under it. What it does not need of them is left
    /// to others.
    pub(in crate::back) fn whole(&self) -> usize {
        if self.memory == Memory::Filled { huge_end::backed(self.pages) } else { self.pages }
    }

    /// Pages in use from which on a heap is large enough to take a chunk for it.
    pub(in crate::back) fn least_heap(&self) -> usize {
        if self.memory == Memory::Followed { SMALL_HEAP } else { LARGE_HEAP }
    }
}
