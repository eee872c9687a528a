//! What the allocator knows of itself, as plain numbers.

pub(crate) mod arena_stats;
pub(crate) mod classes;
pub(crate) mod collect;
#[allow(unsafe_code)]
pub(crate) mod detail;
pub(crate) mod mutex_reset;
pub(crate) mod mutex_stats;
pub(crate) mod snapshot;
pub(crate) mod work;

pub use arena_stats::{
    ArenaSpace, ArenaStats, BINS, BinStats, ClassesStats, ExtentStats, LEXTENTS, LargeStats,
    PAGE_RUN_CLASSES, PurgeStats, SLAB_CLASSES, lextent_size, slab_class_size,
};
pub use classes::{Bin, bin, lextent, nbins, nhbins, nlextents};
pub use collect::totals;
pub use detail::{Detail, ProcessMutexes};
pub use mutex_reset::reset_mutexes;
pub use mutex_stats::MutexStats;
pub use snapshot::Totals;
pub use work::Work;
