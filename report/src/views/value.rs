//! The four numbers that a view can be made of.

use crate::profile::{Counts, Profile};

/// A number of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Bytes that are not freed.
    #[default]
    LiveBytes,
    /// Blocks that are not freed.
    LiveBlocks,
    /// Bytes allocated since the start.
    AllocatedBytes,
    /// Allocations since the start.
    Allocations,
}

impl Value {
    /// The number of this kind.
    pub(crate) fn of(self, counts: &Counts) -> i64 {
        match self {
            Value::LiveBytes => counts.live_bytes,
            Value::LiveBlocks => counts.live,
            Value::AllocatedBytes => counts.alloc_bytes,
            Value::Allocations => counts.allocs,
        }
    }

    /// Whether a profile has it.
    pub fn is_in(self, profile: &Profile) -> bool {
        (self.is_live() || profile.has_allocs) && (self.is_bytes() || !profile.lacks_blocks)
    }

    /// Its name in a heading.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Value::LiveBytes => "live bytes",
            Value::LiveBlocks => "live blocks",
            Value::AllocatedBytes => "allocated bytes",
            Value::Allocations => "allocations",
        }
    }

    /// Whether it is a number of bytes.
    pub(crate) fn is_bytes(self) -> bool {
        matches!(self, Value::LiveBytes | Value::AllocatedBytes)
    }

    /// Whether it is about blocks that are not freed.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Value::LiveBytes | Value::LiveBlocks)
    }
}
