//! Statistics of the allocator, as plain numbers.

pub(crate) mod active;
pub(crate) mod mutex_stats;
pub(crate) mod arena_stats;
pub(crate) mod classes;
pub(crate) mod samples;
pub(crate) mod profile;
pub(crate) mod profile_classes;
pub(crate) mod history;
pub(crate) mod work;
pub(crate) mod class_counts;
pub(crate) mod snapshot;
pub(crate) mod process;
#[allow(unsafe_code)]
pub(crate) mod takeover_mutex;
pub(crate) mod callers;
#[allow(unsafe_code)]
pub(crate) mod records;
pub(crate) mod collect;
#[allow(unsafe_code)]
pub(crate) mod destroyed;
#[allow(unsafe_code)]
pub(crate) mod detail;
pub(crate) mod mutex_reset;
pub(crate) mod residence;
pub(crate) mod utilization;
pub(crate) mod heap_cursor;
pub(crate) mod heap_map;
pub(crate) mod live_blocks;
pub(crate) mod region_lock;
pub(crate) mod region_name;
pub(crate) mod region_table;
#[allow(unsafe_code)]
pub mod regions;

pub use active::{active_pages_place, approximate_active};
pub use arena_stats::{
    ArenaSpace, ArenaStats, BINS, BinStats, ClassesStats, ExtentStats, LEXTENTS, LargeStats,
    PAGE_RUN_CLASSES, PurgeStats, lextent_size, slab_class_size, slab_class_slab,
};
pub use callers::{CodePlace, callers, code_place};
pub use class_counts::ClassCount;
pub use classes::{Bin, bin, lextent, nbins, nhbins, nlextents};
pub use collect::{class_counts, totals};
pub use detail::Detail;
pub use heap_map::{HeapMap, Run, RunState, heap_map, heap_map_from};
pub use history::{PastSample, SampleLog, SampleMoment, recent_samples};
pub use live_blocks::{Block, Blocks, block_around, blocks, blocks_without_bytes, for_each_block};
pub use mutex_reset::reset_mutexes;
pub use mutex_stats::MutexStats;
pub use process::{fork_generation, note_zero_realloc, thread_number, zero_reallocs};
pub use profile::{
    LiveSample, ProfileCounts, ProfileEntry, lg_profile_sample, live_samples, profile,
    profile_counts,
};
pub use profile_classes::{ProfileClass, ProfileSum, profile_bin, profile_lextent};
pub use records::ProcessMutexes;
pub use residence::{for_each_segment, heap_resident, process_resident, segments};
pub use samples::{GuardedSamples, guarded_samples};
pub use snapshot::Totals;
pub use takeover_mutex::TakeoverMutex;
pub use utilization::{BinUtilization, Utilization, bin_utilization, utilization};
pub use work::Work;
