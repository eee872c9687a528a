//! What the pages of an arena are doing, as plain numbers.

/// What the pages of an arena are doing, in pages, and what was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageCounts {
    pub(crate) active: usize,
    pub(crate) dirty: usize,
    pub(crate) muzzy: usize,
    pub(crate) retained: usize,
    /// Pages in purge batches that are under way.
    pub(crate) purging: usize,
    pub(crate) mapped: usize,
    /// Runs that left for a slab or a large block, and that came back.
    pub(crate) taken: u64,
    pub(crate) given: u64,
    /// Purging system calls, and pages given back by them.
    pub(crate) purges: u64,
    pub(crate) purged: u64,
}
