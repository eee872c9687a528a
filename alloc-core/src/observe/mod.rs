//! What the allocator knows of itself, as plain numbers.

pub(crate) mod classes;
pub(crate) mod collect;
pub(crate) mod snapshot;
pub(crate) mod work;

pub use classes::{Bin, bin, lextent, nbins, nhbins, nlextents};
pub use collect::totals;
pub use snapshot::Totals;
pub use work::Work;
