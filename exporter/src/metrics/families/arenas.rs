//! Arenas: always by name, and each by its index when that is asked for.
use crate::metrics::family::Source::{Arena, Made};
use crate::metrics::family::{Def, counter, gauge, info};
use crate::metrics::group::Group::{Arenas, NamedArenas};
use crate::metrics::kinds::Unit;
use crate::metrics::made;

/// Returns a gauge by name.
const fn named(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    gauge(name, unit, NamedArenas, Arena(keys))
}

/// Returns a gauge by index.
const fn each(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    gauge(name, unit, Arenas, Arena(keys))
}

/// Returns a counter by index.
const fn counts(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    counter(name, unit, Arenas, Arena(keys))
}

/// The families by name. Their sums over all arenas equal the families without `arena` in their
/// name.
pub(super) static NAMED: &[Def] = &[
    named(
        "lumalloc_arena_allocated_bytes",
        Unit::Bytes,
        &["stats.arenas.<i>.small.allocated", "stats.arenas.<i>.large.allocated"],
    )
    .says("Bytes in blocks of the arena that the program holds."),
    named("lumalloc_arena_active_bytes", Unit::Bytes, &["stats.arenas.<i>.pactive"])
        .says("Bytes in pages of the arena that hold at least one block."),
    named("lumalloc_arena_dirty_bytes", Unit::Bytes, &["stats.arenas.<i>.pdirty"])
        .says("Bytes in the arena's unused pages with memory."),
    named("lumalloc_arena_muzzy_bytes", Unit::Bytes, &["stats.arenas.<i>.pmuzzy"])
        .says("Bytes in the arena's unused pages, memory perhaps gone."),
    named("lumalloc_arena_resident_bytes", Unit::Bytes, &["stats.arenas.<i>.resident"])
        .says("Bytes of the arena in physical memory, at most."),
    named("lumalloc_arena_mapped_bytes", Unit::Bytes, &["stats.arenas.<i>.mapped"])
        .says("Bytes in the arena's mapped extents and records."),
    named("lumalloc_arena_retained_bytes", Unit::Bytes, &["stats.arenas.<i>.retained"])
        .says("Bytes of addresses that the arena keeps without memory."),
    named("lumalloc_arena_metadata_bytes", Unit::Bytes, &["stats.arenas.<i>.base"])
        .says("Bytes of the arena's records; those of no arena are the first one's."),
    named("lumalloc_arena_thread_cache_bytes", Unit::Bytes, &["stats.arenas.<i>.tcache_bytes"])
        .says("Bytes of the arena's blocks that are in thread caches."),
    named("lumalloc_arena_threads", Unit::None, &["stats.arenas.<i>.nthreads"])
        .says("Threads whose home the arena is."),
    named("lumalloc_arena_limit_bytes", Unit::Bytes, &["arena.<i>.limit"])
        .says("Bytes with memory that the arena may hold; +Inf: any."),
    counter(
        "lumalloc_arena_allocations_total",
        Unit::None,
        NamedArenas,
        Arena(&["stats.arenas.<i>.small.nrequests", "stats.arenas.<i>.large.nrequests"]),
    )
    .says("Blocks that the program asked the arena for and got."),
    counter(
        "lumalloc_arena_purged_bytes_total",
        Unit::Bytes,
        NamedArenas,
        Arena(&["stats.arenas.<i>.dirty_purged", "stats.arenas.<i>.muzzy_purged"]),
    )
    .says("Bytes of unused pages that the arena gave back."),
];

pub(super) static EACH: &[Def] = &[
    info(
        "lumalloc_each_arena_info",
        Arenas,
        Made(
            &["index", "arena", "dss"],
            made::arena_infos,
            &["arena.<i>.name", "stats.arenas.<i>.dss"],
        ),
    )
    .says("The name of each arena, and its use of the data segment."),
    each("lumalloc_each_arena_age_seconds", Unit::Seconds, &["stats.arenas.<i>.uptime"])
        .says("How long ago the arena was made."),
    each(
        "lumalloc_each_arena_dirty_decay_seconds",
        Unit::Seconds,
        &["stats.arenas.<i>.dirty_decay_ms"],
    )
    .says("How long unused dirty pages of the arena stay; +Inf: for ever."),
    each(
        "lumalloc_each_arena_muzzy_decay_seconds",
        Unit::Seconds,
        &["stats.arenas.<i>.muzzy_decay_ms"],
    )
    .says("How long unused muzzy pages of the arena stay; +Inf: for ever."),
    each(
        "lumalloc_each_arena_small_allocated_bytes",
        Unit::Bytes,
        &["stats.arenas.<i>.small.allocated"],
    ),
    each(
        "lumalloc_each_arena_large_allocated_bytes",
        Unit::Bytes,
        &["stats.arenas.<i>.large.allocated"],
    ),
    each("lumalloc_each_arena_active_bytes", Unit::Bytes, &["stats.arenas.<i>.pactive"])
        .says("Bytes in slabs and large blocks."),
    each("lumalloc_each_arena_dirty_bytes", Unit::Bytes, &["stats.arenas.<i>.pdirty"])
        .says("Bytes in unused pages that have memory."),
    each("lumalloc_each_arena_muzzy_bytes", Unit::Bytes, &["stats.arenas.<i>.pmuzzy"])
        .says("Bytes in unused pages that the system may have taken."),
    each("lumalloc_each_arena_resident_bytes", Unit::Bytes, &["stats.arenas.<i>.resident"]),
    each("lumalloc_each_arena_mapped_bytes", Unit::Bytes, &["stats.arenas.<i>.mapped"]),
    each("lumalloc_each_arena_retained_bytes", Unit::Bytes, &["stats.arenas.<i>.retained"]),
    each("lumalloc_each_arena_metadata_bytes", Unit::Bytes, &["stats.arenas.<i>.base"]),
    each(
        "lumalloc_each_arena_metadata_extent_bytes",
        Unit::Bytes,
        &["stats.arenas.<i>.metadata_edata"],
    ),
    each("lumalloc_each_arena_spare_extents", Unit::None, &["stats.arenas.<i>.extent_avail"]),
    each("lumalloc_each_arena_abandoned_bytes", Unit::Bytes, &["stats.arenas.<i>.abandoned_vm"]),
    each("lumalloc_each_arena_thread_cache_bytes", Unit::Bytes, &["stats.arenas.<i>.tcache_bytes"]),
    each(
        "lumalloc_each_arena_thread_cache_stashed_bytes",
        Unit::Bytes,
        &["stats.arenas.<i>.tcache_stashed_bytes"],
    )
    .says("Bytes in quarantine, among those in thread caches."),
    each("lumalloc_each_arena_threads", Unit::None, &["stats.arenas.<i>.nthreads"]),
    counts(
        "lumalloc_each_arena_small_allocations_total",
        Unit::None,
        &["stats.arenas.<i>.small.nrequests"],
    ),
    counts(
        "lumalloc_each_arena_large_allocations_total",
        Unit::None,
        &["stats.arenas.<i>.large.nrequests"],
    ),
    counts(
        "lumalloc_each_arena_small_taken_total",
        Unit::None,
        &["stats.arenas.<i>.small.nmalloc"],
    ),
    counts(
        "lumalloc_each_arena_small_returned_total",
        Unit::None,
        &["stats.arenas.<i>.small.ndalloc"],
    ),
    counts(
        "lumalloc_each_arena_large_taken_total",
        Unit::None,
        &["stats.arenas.<i>.large.nmalloc"],
    ),
    counts(
        "lumalloc_each_arena_large_returned_total",
        Unit::None,
        &["stats.arenas.<i>.large.ndalloc"],
    ),
    counts(
        "lumalloc_each_arena_refills_total",
        Unit::None,
        &["stats.arenas.<i>.small.nfills", "stats.arenas.<i>.large.nfills"],
    ),
    counts(
        "lumalloc_each_arena_flushes_total",
        Unit::None,
        &["stats.arenas.<i>.small.nflushes", "stats.arenas.<i>.large.nflushes"],
    ),
    counts(
        "lumalloc_each_arena_purges_total",
        Unit::None,
        &["stats.arenas.<i>.dirty_npurge", "stats.arenas.<i>.muzzy_npurge"],
    )
    .says("Batches of unused pages given back."),
    counts(
        "lumalloc_each_arena_purged_bytes_total",
        Unit::Bytes,
        &["stats.arenas.<i>.dirty_purged", "stats.arenas.<i>.muzzy_purged"],
    )
    .says("Bytes of unused pages given back."),
];
