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
    /// As [`Memory::Any`], and most of the run will be written soon.
    Filled,
    /// As [`Memory::Filled`], but little of the huge page in which the run ends will be written.
    Begun,
    /// As [`Memory::Filled`], and more such runs will follow.
    Followed,
}

impl Memory {
    /// This memory, but [`Memory::Filled`] for [`Memory::Any`] if the caller soon writes most of
    /// it.
    pub(crate) fn filled_if(self, filled: bool) -> Memory {
        if filled && self == Memory::Any { Memory::Filled } else { self }
    }

    /// This memory, but [`Memory::Followed`] for [`Memory::Any`] if the caller wrote many such
    /// runs.
    pub(crate) fn followed_if(self, followed: bool) -> Memory {
        if followed && self == Memory::Any { Memory::Followed } else { self }
    }
}

/// A request for a run of new memory.
#[derive(Clone, Copy)]
pub(in crate::back) struct Request {
    pub(in crate::back) pages: usize,
    pub(in crate::back) align: usize,
    pub(in crate::back) memory: Memory,
}

/// Pages in use from which on chunks are taken: four chunks. All arenas count together, because
/// that of a thread is small where there are many. An arena that the program made counts alone.
pub(in crate::back) const LARGE_HEAP: usize = (8 << 20) / PAGE;
/// As [`LARGE_HEAP`], but where more such runs will follow, so that the rest is soon used.
const SMALL_HEAP: usize = (3 << 20) / PAGE;

impl Request {
    /// Whether most of the run will be written soon.
    pub(in crate::back) fn is_filled(&self) -> bool {
        !matches!(self.memory, Memory::Resident | Memory::Any)
    }

    /// The pages that the run takes over huge pages. Other runs use what it does not need.
    pub(in crate::back) fn whole(&self) -> usize {
        if self.memory == Memory::Filled { huge_end::backed(self.pages) } else { self.pages }
    }

    /// Pages in use from which on a heap may take a chunk for this run.
    pub(in crate::back) fn least_heap(&self) -> usize {
        if self.memory == Memory::Followed { SMALL_HEAP } else { LARGE_HEAP }
    }
}
