//! What memory a run may be made of.

use crate::back::runs::huge;
use crate::ground::units::LG_PAGE;

/// Which memory an allocation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Unused pages that still have memory.
    Resident,
    /// As [`Memory::Resident`], where a block that has grown can grow in place.
    Roomy {
        /// Of the pages in use, those of blocks that the system can move.
        movable: usize,
    },
    /// Addresses without memory as well.
    Any,
    /// As [`Memory::Any`], and most of the run will be written soon, unless the arena has seen that
    /// such runs are not.
    Filled,
    /// As [`Memory::Any`], and most of the run will be written soon. Pages that are not are
    /// counted, and bounded by that.
    Counted,
    /// As [`Memory::Filled`], but little of the huge page in which the run ends will be written.
    Begun,
    /// As [`Memory::Filled`], and more such runs will follow.
    Followed,
    /// As [`Memory::Any`], at low addresses: see [`crate::ground::low`].
    Low,
}

impl Memory {
    /// This memory, but [`Memory::Filled`] for [`Memory::Any`] if the caller soon writes most of
    /// it.
    pub(crate) fn filled_if(self, filled: bool) -> Memory {
        if filled && self == Memory::Any { Memory::Filled } else { self }
    }

    /// This memory, but [`Memory::Counted`] for [`Memory::Any`] if untouched pages are within their
    /// bound.
    pub(crate) fn counted_if(self, within_bound: bool) -> Memory {
        if within_bound && self == Memory::Any { Memory::Counted } else { self }
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

impl Request {
    /// Whether most of the run will be written soon.
    pub(in crate::back) fn is_written(&self) -> bool {
        use Memory::{Any, Low, Resident, Roomy};
        !matches!(self.memory, Resident | Roomy { .. } | Any | Low)
    }

    /// Whether the run is expected to be written because of its length alone.
    pub(in crate::back) fn is_expected(&self) -> bool {
        matches!(self.memory, Memory::Filled | Memory::Begun) && !self.is_long()
    }

    /// Whether the run is as long as those that have huge pages of their own.
    pub(in crate::back) fn is_long(&self) -> bool {
        self.pages << LG_PAGE >= huge::SHORTEST
    }
}
