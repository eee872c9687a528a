//! What a thread, or one of its caches, allocated and freed.

/// Bytes ever allocated and freed, by usable size.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) allocated: u64,
    pub(crate) freed: u64,
}

impl Volume {
    /// Returns what was added since `before`.
    pub(super) fn since(self, before: Volume) -> Volume {
        Volume {
            allocated: self.allocated.wrapping_sub(before.allocated),
            freed: self.freed.wrapping_sub(before.freed),
        }
    }

    /// Adds the bytes of another one.
    pub(super) fn add(&mut self, more: Volume) {
        self.allocated = self.allocated.wrapping_add(more.allocated);
        self.freed = self.freed.wrapping_add(more.freed);
    }

    /// Returns the bytes allocated and not freed, negative if a thread frees what others allocated.
    pub(super) fn balance(self) -> i64 {
        self.allocated.wrapping_sub(self.freed) as i64
    }
}
