//! `stats.arenas.<i>.*`, from the published snapshot.
//!
//! The keys of an arena that was made after the snapshot read zeros until the next one.
use crate::row::{Index, Spec, index_at};
use crate::row_macros::{mutex_rows, ro};
use crate::rows::arena;
use crate::{Error, snapshot};
use core::ffi::CStr;
use lumalloc::control::{self, arenas};
use lumalloc::observe::{ArenaStats, BINS, LEXTENTS, MutexStats, PAGE_RUN_CLASSES};

/// A row of one number of an arena.
macro_rules! of_arena {
    ($name:literal, $kind:ident, $unit:ident, $($field:ident).+, $help:literal) => {
        ro!(
            concat!("stats.arenas.<i>.", $name),
            $kind,
            $unit,
            |mib| arena_of(mib, |arena| arena.$($field).+),
            $help
        )
    };
}

/// A row of one element of an array in an arena's statistics.
macro_rules! of_class {
    ($array:ident, $name:literal, $kind:ident, $unit:ident, $field:ident, $help:literal) => {
        ro!(
            concat!("stats.arenas.<i>.", $name, ".", stringify!($field)),
            $kind,
            $unit,
            |mib| class_of(mib, |arena, class| arena.$array.get(class).map(|one| one.$field)),
            $help
        )
    };
}

/// The rows of `stats.arenas.<i>.*`, but for its locks.
pub static ROWS: &[Spec] = &[
    of_arena!("nthreads", Unsigned, Count, space.nthreads, "threads whose home the arena is"),
    of_arena!("uptime", U64, Nanoseconds, uptime, "since the arena was made"),
    ro!("stats.arenas.<i>.dss", Str, None, dss, "its use of the data segment"),
    of_arena!("dirty_decay_ms", Ssize, Milliseconds, dirty_decay_ms, "how long dirty pages stay"),
    of_arena!("muzzy_decay_ms", Ssize, Milliseconds, muzzy_decay_ms, "how long muzzy pages stay"),
    of_arena!("pactive", Size, Count, space.pactive, "pages in slabs and large blocks"),
    of_arena!("pdirty", Size, Count, space.pdirty, "unused pages that have memory"),
    of_arena!("pmuzzy", Size, Count, space.pmuzzy, "unused pages that the system may have taken"),
    of_arena!("mapped", Size, Bytes, space.mapped, "in mapped extents and records"),
    of_arena!("retained", Size, Bytes, space.retained, "of addresses kept without memory"),
    of_arena!("extent_avail", Size, Count, space.extent_avail, "spare records of runs"),
    of_arena!("dirty_npurge", U64, Count, dirty.npurge, "batches of dirty pages given back"),
    of_arena!("dirty_nmadvise", U64, Count, dirty.nmadvise, "system calls that gave them back"),
    of_arena!("dirty_purged", U64, Count, dirty.purged, "dirty pages given back"),
    of_arena!("muzzy_npurge", U64, Count, muzzy.npurge, "batches of muzzy pages given back"),
    of_arena!("muzzy_nmadvise", U64, Count, muzzy.nmadvise, "system calls that gave them back"),
    of_arena!("muzzy_purged", U64, Count, muzzy.purged, "muzzy pages given back"),
    of_arena!("base", Size, Bytes, space.base, "of records; those of no arena are arena 0's"),
    ro!(
        "stats.arenas.<i>.internal",
        Size,
        Bytes,
        |mib| arena_of(mib, |_| 0),
        "of blocks that the allocator allocates for itself: none"
    ),
    of_arena!("metadata_edata", Size, Bytes, space.metadata_edata, "of records of runs"),
    of_arena!("metadata_rtree", Size, Bytes, space.metadata_rtree, "of the map of addresses"),
    of_arena!("metadata_thp", Size, Count, space.metadata_thp, "huge pages under records"),
    of_arena!("tcache_bytes", Size, Bytes, space.tcache_bytes, "in thread caches"),
    of_arena!(
        "tcache_stashed_bytes",
        Size,
        Bytes,
        space.tcache_stashed_bytes,
        "in thread caches, of blocks in quarantine"
    ),
    of_arena!("kept_bytes", Size, Bytes, space.kept_bytes, "in large blocks that threads keep"),
    of_arena!("slab_bytes", Size, Bytes, space.slab_bytes, "in slabs of blocks"),
    of_arena!("slab_used_bytes", Size, Bytes, space.slab_used_bytes, "in blocks out of slabs"),
    of_arena!("resident", Size, Bytes, space.resident, "in physical memory, at most"),
    of_arena!(
        "abandoned_vm",
        Size,
        Bytes,
        space.abandoned_vm,
        "of addresses that the system did not take back"
    ),
    of_arena!("small.allocated", Size, Bytes, small.allocated, "in small blocks of the program"),
    of_arena!("small.nmalloc", U64, Count, small.nmalloc, "small blocks that left slabs"),
    of_arena!("small.ndalloc", U64, Count, small.ndalloc, "small blocks that came home"),
    of_arena!("small.nrequests", U64, Count, small.nrequests, "requests for small blocks"),
    of_arena!("small.nfills", U64, Count, small.nfills, "refills of thread caches"),
    of_arena!("small.nflushes", U64, Count, small.nflushes, "batches that thread caches returned"),
    of_arena!("large.allocated", Size, Bytes, large.allocated, "in large blocks of the program"),
    of_arena!("large.nmalloc", U64, Count, large.nmalloc, "large blocks that left the arena"),
    of_arena!("large.ndalloc", U64, Count, large.ndalloc, "large blocks that came back"),
    of_arena!("large.nrequests", U64, Count, large.nrequests, "requests for large blocks"),
    of_arena!("large.nfills", U64, Count, large.nfills, "refills of thread caches"),
    of_arena!("large.nflushes", U64, Count, large.nflushes, "batches that thread caches returned"),
    of_class!(bins, "bins.<j>", U64, Count, nmalloc, "blocks of the class that left slabs"),
    of_class!(bins, "bins.<j>", U64, Count, ndalloc, "blocks of the class that came home"),
    of_class!(bins, "bins.<j>", U64, Count, nrequests, "requests, those of thread caches too"),
    of_class!(bins, "bins.<j>", Size, Count, curregs, "blocks out of slabs, those in caches too"),
    of_class!(bins, "bins.<j>", Size, Count, cached, "blocks of the class in thread caches"),
    of_class!(bins, "bins.<j>", U64, Count, nfills, "refills of thread caches"),
    of_class!(bins, "bins.<j>", U64, Count, nflushes, "batches that thread caches returned"),
    of_class!(bins, "bins.<j>", U64, Count, nslabs, "slabs of the class ever made"),
    of_class!(bins, "bins.<j>", U64, Count, nreslabs, "slabs that caches took over"),
    of_class!(bins, "bins.<j>", Size, Count, curslabs, "slabs of the class now"),
    of_class!(
        bins,
        "bins.<j>",
        Size,
        Count,
        nonfull_slabs,
        "slabs with free blocks, also those that blocks are taken from"
    ),
    of_class!(lextents, "lextents.<j>", U64, Count, nmalloc, "blocks that left the arena"),
    of_class!(lextents, "lextents.<j>", U64, Count, ndalloc, "blocks that came back"),
    of_class!(lextents, "lextents.<j>", U64, Count, nrequests, "requests, those kept too"),
    of_class!(lextents, "lextents.<j>", Size, Count, curlextents, "blocks out now"),
    of_class!(extents, "extents.<j>", Size, Count, ndirty, "unused runs that have memory"),
    of_class!(extents, "extents.<j>", Size, Count, nmuzzy, "unused runs, memory perhaps gone"),
    of_class!(extents, "extents.<j>", Size, Count, nretained, "unused runs without memory"),
    of_class!(extents, "extents.<j>", Size, Bytes, dirty_bytes, "in unused runs that have memory"),
    of_class!(extents, "extents.<j>", Size, Bytes, muzzy_bytes, "in runs, memory perhaps gone"),
    of_class!(extents, "extents.<j>", Size, Bytes, retained_bytes, "in runs without memory"),
];

mutex_rows!(BIN, "stats.arenas.<i>.bins.<j>.mutex", "the bin", |mib| class_of(
    mib,
    |arena, class| arena.bin_mutexes.get(class).copied()
));
mutex_rows!(
    EXTENTS_DIRTY,
    "stats.arenas.<i>.mutexes.extents_dirty",
    "the arena's runs of pages in every state",
    |mib| arena_of(mib, |arena| arena.pages_mutex)
);
mutex_rows!(
    BASE,
    "stats.arenas.<i>.mutexes.base",
    "the allocator's records, shown by arena 0",
    |mib| arena_of(mib, |arena| arena.base_mutex)
);
mutex_rows!(
    TCACHE_LIST,
    "stats.arenas.<i>.mutexes.tcache_list",
    "the thread caches whose home the arena is",
    |mib| arena_of(mib, |arena| arena.caches_mutex)
);

/// The rows of a lock that jemalloc has and this allocator has not: the lock that is shown under
/// `extents_dirty` guards its data too.
macro_rules! shared_rows {
    ($rows:ident, $name:literal) => {
        mutex_rows!($rows, $name, "0: shown under extents_dirty", |mib| arena_of(mib, |_| {
            MutexStats::default()
        }));
    };
}

shared_rows!(LARGE, "stats.arenas.<i>.mutexes.large");
shared_rows!(EXTENT_AVAIL, "stats.arenas.<i>.mutexes.extent_avail");
shared_rows!(EXTENTS_MUZZY, "stats.arenas.<i>.mutexes.extents_muzzy");
shared_rows!(EXTENTS_RETAINED, "stats.arenas.<i>.mutexes.extents_retained");
shared_rows!(DECAY_DIRTY, "stats.arenas.<i>.mutexes.decay_dirty");
shared_rows!(DECAY_MUZZY, "stats.arenas.<i>.mutexes.decay_muzzy");

/// The indices that `stats.arenas.<i>` and its arrays take.
pub static INDICES: &[Index] = &[
    Index { path: "stats.arenas.<i>", valid: |mib| exists(mib.get(2)) },
    Index { path: "stats.arenas.<i>.bins.<j>", valid: |mib| is_below(mib.get(4), BINS) },
    Index { path: "stats.arenas.<i>.lextents.<j>", valid: |mib| is_below(mib.get(4), LEXTENTS) },
    Index {
        path: "stats.arenas.<i>.extents.<j>",
        valid: |mib| is_below(mib.get(4), PAGE_RUN_CLASSES),
    },
];

/// Whether an index has statistics: it is that of an arena, or stands for several.
fn exists(index: Option<&usize>) -> bool {
    let several = [snapshot::ALL, snapshot::DESTROYED, control::narenas() as usize];
    index.is_some_and(|index| {
        several.contains(index)
            || arena::is_index(Some(index)) && arenas::is_initialized(*index as u32)
    })
}

fn is_below(index: Option<&usize>, end: usize) -> bool {
    index.is_some_and(|index| *index < end)
}

/// The index of a MIB. The old way to say "all" becomes [`snapshot::ALL`].
fn arena_index(mib: &[usize]) -> Result<usize, Error> {
    let index = index_at(mib, 2)?;
    Ok(if index == control::narenas() as usize { snapshot::ALL } else { index })
}

fn arena_of<R: Default>(mib: &[usize], read: fn(&ArenaStats) -> R) -> Result<R, Error> {
    let index = arena_index(mib)?;
    Ok(snapshot::read(|published| published.arena(index).map(read)).unwrap_or_default())
}

fn class_of<R: Default>(
    mib: &[usize],
    read: fn(&ArenaStats, usize) -> Option<R>,
) -> Result<R, Error> {
    let (index, class) = (arena_index(mib)?, index_at(mib, 4)?);
    let value =
        snapshot::read(|published| published.arena(index).and_then(|arena| read(arena, class)));
    Ok(value.unwrap_or_default())
}

/// As `arena.<i>.dss`; for several arenas, the setting that new arenas begin with.
fn dss(mib: &[usize]) -> Result<&'static CStr, Error> {
    let one = u32::try_from(arena_index(mib)?).ok().and_then(arenas::dss);
    Ok(arena::dss_name(one.unwrap_or(lumalloc::options::current().dss)))
}
