//! The long documents. Links in them must resolve, or the build of the documentation fails.

#[doc = include_str!("memory_orders.md")]
pub(crate) mod memory_orders {}
#[doc = include_str!("lock_order.md")]
pub(crate) mod lock_order {}
#[doc = include_str!("decisions.md")]
pub(crate) mod decisions {}

/// A page for each mechanism: what it does, why, and what was measured.
pub(crate) mod mechanisms {
    #[doc = include_str!("mechanisms/size_classes_and_slabs.md")]
    pub(crate) mod size_classes_and_slabs {}
    #[doc = include_str!("mechanisms/slab_owners.md")]
    pub(crate) mod slab_owners {}
    #[doc = include_str!("mechanisms/empty_slabs.md")]
    pub(crate) mod empty_slabs {}
    #[doc = include_str!("mechanisms/page_and_class_maps.md")]
    pub(crate) mod page_and_class_maps {}
    #[doc = include_str!("mechanisms/thread_cache_bins.md")]
    pub(crate) mod thread_cache_bins {}
    #[doc = include_str!("mechanisms/bin_sizes_and_collection.md")]
    pub(crate) mod bin_sizes_and_collection {}
    #[doc = include_str!("mechanisms/thread_start.md")]
    pub(crate) mod thread_start {}
    #[doc = include_str!("mechanisms/overflow_stacks.md")]
    pub(crate) mod overflow_stacks {}
    #[doc = include_str!("mechanisms/transfer_queue.md")]
    pub(crate) mod transfer_queue {}
    #[doc = include_str!("mechanisms/remote_frees.md")]
    pub(crate) mod remote_frees {}
    #[doc = include_str!("mechanisms/kept_runs.md")]
    pub(crate) mod kept_runs {}
    #[doc = include_str!("mechanisms/huge_pages.md")]
    pub(crate) mod huge_pages {}
    #[doc = include_str!("mechanisms/dense_chunks.md")]
    pub(crate) mod dense_chunks {}
    #[doc = include_str!("mechanisms/chunk_thresholds.md")]
    pub(crate) mod chunk_thresholds {}
    #[doc = include_str!("mechanisms/block_ends.md")]
    pub(crate) mod block_ends {}
    #[doc = include_str!("mechanisms/run_assembly.md")]
    pub(crate) mod run_assembly {}
    #[doc = include_str!("mechanisms/realloc_growth.md")]
    pub(crate) mod realloc_growth {}
    #[doc = include_str!("mechanisms/calloc_and_zeroing.md")]
    pub(crate) mod calloc_and_zeroing {}
    #[doc = include_str!("mechanisms/page_aging.md")]
    pub(crate) mod page_aging {}
    #[doc = include_str!("mechanisms/trimming.md")]
    pub(crate) mod trimming {}
    #[doc = include_str!("mechanisms/slab_holes.md")]
    pub(crate) mod slab_holes {}
    #[doc = include_str!("mechanisms/arenas_and_contention.md")]
    pub(crate) mod arenas_and_contention {}
    #[doc = include_str!("mechanisms/extent_hooks.md")]
    pub(crate) mod extent_hooks {}
    #[doc = include_str!("mechanisms/modes_and_facades.md")]
    pub(crate) mod modes_and_facades {}
    #[doc = include_str!("mechanisms/idle_caches.md")]
    pub(crate) mod idle_caches {}
    #[doc = include_str!("mechanisms/early_finds.md")]
    pub(crate) mod early_finds {}
    #[doc = include_str!("mechanisms/hardened.md")]
    pub(crate) mod hardened {}
    #[doc = include_str!("mechanisms/hardened_access.md")]
    pub(crate) mod hardened_access {}
    #[doc = include_str!("mechanisms/hardened_calls.md")]
    pub(crate) mod hardened_calls {}
    #[doc = include_str!("mechanisms/hardened_wiping.md")]
    pub(crate) mod hardened_wiping {}
    #[doc = include_str!("mechanisms/guarded_samples.md")]
    pub(crate) mod guarded_samples {}
    #[doc = include_str!("mechanisms/heap_samples.md")]
    pub(crate) mod heap_samples {}
    #[doc = include_str!("mechanisms/heap_monitor.md")]
    pub(crate) mod heap_monitor {}
    #[doc = include_str!("mechanisms/counts_and_snapshots.md")]
    pub(crate) mod counts_and_snapshots {}
    #[doc = include_str!("mechanisms/heap_walks.md")]
    pub(crate) mod heap_walks {}
    #[doc = include_str!("mechanisms/exporter.md")]
    pub(crate) mod exporter {}
    #[doc = include_str!("mechanisms/linking.md")]
    pub(crate) mod linking {}
}
