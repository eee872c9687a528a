//! What the allocator knows of itself, as plain numbers.

pub(crate) mod collect;
pub(crate) mod snapshot;
pub(crate) mod work;

pub use collect::totals;
pub use snapshot::Totals;
pub use work::Work;
