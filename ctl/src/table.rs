//! The table: one [`Row`] per key, in tree order (keys that share a prefix are neighbours; a test
//! holds it).
//!
//! Names, types and meanings are those of jemalloc(3) wherever it has the name.
use crate::VERSION;
use crate::row::Access::{Read, ReadWrite, Trigger, WriteThenRead};
use crate::row::{Error, Row, Type, Unit, Value};
use crate::snapshot;
use core::ffi::CStr;
use lumalloc::control;
use lumalloc::options::{self, Dss, Junk, MetadataThp, PercpuArena, Thp, ZeroRealloc};

/// The number of rows.
pub const ROW_COUNT: usize = ROWS.len();

/// An index that can stand in `arena.<i>`: an arena below the limit, the limit itself (the old way
/// to say "all", which Redis uses), or [`control::ARENAS_ALL`].
fn arena_index(index: usize) -> bool {
    u32::try_from(index)
        .is_ok_and(|index| index == control::ARENAS_ALL || index <= control::narenas())
}

/// For names without an index component.
fn no_index(_: usize) -> bool {
    false
}

/// A row without an index.
const fn row(
    name: &'static str,
    kind: Type,
    unit: Unit,
    access: crate::row::Access,
    help: &'static str,
) -> Row {
    Row { name, kind, unit, index: no_index, access, help }
}

/// A `stats.*` row: bytes, read from the published snapshot.
macro_rules! stat {
    ($field:ident, $help:literal) => {
        row(
            concat!("stats.", stringify!($field)),
            Type::Size,
            Unit::Bytes,
            Read(|_| Ok(Value::Size(snapshot::current().totals.$field))),
            $help,
        )
    };
}

/// A `stats.work.*` row: how often the slow paths did something, read from the published snapshot.
macro_rules! work {
    ($field:ident, $help:literal) => {
        row(
            concat!("stats.work.", stringify!($field)),
            Type::U64,
            Unit::Count,
            Read(|_| Ok(Value::U64(snapshot::current().totals.work.$field))),
            $help,
        )
    };
}

/// An `opt.*` row: an option as it was frozen at start.
macro_rules! opt {
    ($field:ident, $kind:ident, $unit:ident, $help:literal) => {
        row(
            concat!("opt.", stringify!($field)),
            Type::$kind,
            Unit::$unit,
            Read(|_| Ok(Value::$kind(options::current().$field))),
            $help,
        )
    };
}

/// Every key.
pub static ROWS: [Row; 71] = [
    row(
        "version",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(VERSION))),
        "version of the library",
    ),
    row(
        "epoch",
        Type::U64,
        Unit::Count,
        WriteThenRead(|_| Ok(Value::U64(snapshot::current().epoch)), |_, _| refresh()),
        "any write takes a new snapshot of the statistics and counts up; reads give the count",
    ),
    row(
        "background_thread",
        Type::Bool,
        Unit::None,
        ReadWrite(
            |_| Ok(Value::Bool(control::background_thread())),
            |_, value| write_background_thread(value),
        ),
        "whether a thread of the library purges unused pages; false in a forked child",
    ),
    row(
        "max_background_threads",
        Type::Size,
        Unit::Count,
        ReadWrite(
            |_| Ok(Value::Size(control::max_background_threads())),
            |_, value| write_max_background_threads(value),
        ),
        "most background threads: 1 to opt.max_background_threads; one is all there ever is",
    ),
    row(
        "thread.tcache.flush",
        Type::Void,
        Unit::None,
        Trigger(|_| flush_thread_cache()),
        "gives this thread's cached blocks back",
    ),
    row(
        "thread.idle",
        Type::Void,
        Unit::None,
        Trigger(|_| idle_thread()),
        "says that this thread will do nothing for long: its cache keeps nothing",
    ),
    opt!(abort, Bool, None, "warnings are fatal"),
    opt!(abort_conf, Bool, None, "bad option strings are fatal"),
    row(
        "opt.narenas",
        Type::Unsigned,
        Unit::Count,
        Read(|_| Ok(Value::Unsigned(automatic_arenas()))),
        "most automatic arenas",
    ),
    row(
        "opt.percpu_arena",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(percpu_arena()))),
        "whether threads find their arena by CPU: disabled, percpu or phycpu",
    ),
    opt!(
        background_thread,
        Bool,
        None,
        "start a background thread when there is something to purge"
    ),
    opt!(max_background_threads, Size, Count, "most background threads"),
    row(
        "opt.dss",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(dss()))),
        "when addresses come from the data segment: disabled, primary or secondary",
    ),
    row(
        "opt.thp",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(thp()))),
        "where huge pages are asked for: default (under long blocks), always or never",
    ),
    row(
        "opt.metadata_thp",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(metadata_thp()))),
        "where huge pages are asked for under records: disabled, auto or always",
    ),
    opt!(retain, Bool, None, "addresses whose memory was given back are kept for later"),
    opt!(dirty_decay_ms, Ssize, Milliseconds, "how long unused dirty pages are kept"),
    opt!(muzzy_decay_ms, Ssize, Milliseconds, "how long lazily freed pages are kept"),
    row(
        "opt.zero_realloc",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(zero_realloc()))),
        "what realloc(p, 0) does: alloc, free or abort",
    ),
    row(
        "opt.junk",
        Type::Str,
        Unit::None,
        Read(|_| Ok(Value::Str(junk()))),
        "fill with junk: true, false, alloc or free",
    ),
    opt!(zero, Bool, None, "fresh memory reads zero"),
    opt!(guarded_sample, Size, Count, "requests between two guarded samples, on average; 0: none"),
    opt!(hardened, Bool, None, "look for misuse at each call, and make its use harder"),
    opt!(stats_print, Bool, None, "print the statistics at exit"),
    opt!(xmalloc, Bool, None, "die with a message instead of answering NULL"),
    opt!(tcache, Bool, None, "threads cache blocks"),
    opt!(tcache_max, Size, Bytes, "largest size that threads cache"),
    Row {
        name: "arena.<i>.purge",
        kind: Type::Void,
        unit: Unit::None,
        index: arena_index,
        access: Trigger(purge_arena),
        help: "gives all unused pages of the arena back to the system; index 4096 means all arenas",
    },
    row(
        "arenas.narenas",
        Type::Unsigned,
        Unit::Count,
        Read(|_| Ok(Value::Unsigned(control::narenas()))),
        "limit on the number of arenas",
    ),
    row(
        "arenas.page",
        Type::Size,
        Unit::Bytes,
        Read(|_| Ok(Value::Size(lumalloc::PAGE))),
        "size of the allocator's page",
    ),
    stat!(allocated, "in blocks that the program holds"),
    stat!(active, "in pages that hold at least one such block"),
    stat!(metadata, "of the allocator's own records"),
    stat!(resident, "in pages that are physically there, at most"),
    stat!(mapped, "in mapped extents"),
    stat!(retained, "of address space kept for later without physical pages"),
    work!(refills_owned, "refills from slabs that the cache owned"),
    work!(refills_shared, "refills from slabs that the threads of an arena share"),
    work!(slabs_adopted, "slabs that caches took over from an arena"),
    work!(slabs_fresh, "slabs made of pages"),
    work!(flushes, "batches of blocks that caches sent home"),
    work!(flush_groups, "groups in those batches: of one slab, or of one word of somebody else's"),
    work!(remote_words, "atomic ORs into slabs that somebody else guards"),
    work!(remote_pushes, "slabs pushed on the stack of their guard"),
    work!(remote_drains, "slabs whose remote frees were taken in"),
    work!(cas_retries, "compare-exchanges of remote frees repeated because of others"),
    work!(runs_kept, "large blocks that the thread freeing them kept"),
    work!(runs_reused, "large blocks served from those"),
    work!(holes_given, "free pages inside slabs in use that were given back"),
    work!(runs_taken, "runs of pages that left an arena for a slab or a large block"),
    work!(runs_given, "runs of pages that came back"),
    work!(lock_cache, "locks of thread caches taken"),
    work!(wait_cache, "locks of thread caches found taken"),
    work!(lock_bin, "locks of arenas' bins taken"),
    work!(wait_bin, "locks of arenas' bins found taken"),
    work!(lock_pages, "locks of arenas' pages taken"),
    work!(wait_pages, "locks of arenas' pages found taken"),
    work!(lock_registry, "locks of the list of caches taken"),
    work!(wait_registry, "locks of the list of caches found taken"),
    work!(lock_metadata, "locks of the allocator's own records taken"),
    work!(wait_metadata, "locks of the allocator's own records found taken"),
    work!(call_mmap, "system calls mmap"),
    work!(call_munmap, "system calls munmap"),
    work!(call_madvise, "system calls madvise"),
    work!(call_mprotect, "system calls mprotect"),
    work!(call_mremap, "system calls mremap"),
    work!(call_futex_wait, "system calls futex to wait"),
    work!(call_futex_wake, "system calls futex to wake"),
    row(
        "stats.background_thread.num_threads",
        Type::Size,
        Unit::Count,
        Read(|_| Ok(Value::Size(snapshot::current().totals.background_threads))),
        "background threads that run",
    ),
    row(
        "stats.background_thread.num_runs",
        Type::U64,
        Unit::Count,
        Read(|_| Ok(Value::U64(snapshot::current().totals.background_runs))),
        "passes that background threads made",
    ),
    row(
        "stats.background_thread.run_interval",
        Type::U64,
        Unit::Nanoseconds,
        Read(|_| Ok(Value::U64(snapshot::current().totals.background_interval))),
        "mean time between two of those passes",
    ),
];

/// The limit that was asked for, or the one that was computed when none was.
fn automatic_arenas() -> u32 {
    match options::current().narenas {
        0 => control::narenas(),
        asked_for => asked_for,
    }
}

/// How jemalloc spells the option.
fn percpu_arena() -> &'static CStr {
    match options::current().percpu_arena {
        PercpuArena::Disabled => c"disabled",
        PercpuArena::Percpu => c"percpu",
        PercpuArena::Phycpu => c"phycpu",
    }
}

/// How jemalloc spells the option.
fn zero_realloc() -> &'static CStr {
    match options::current().zero_realloc {
        ZeroRealloc::Alloc => c"alloc",
        ZeroRealloc::Free => c"free",
        ZeroRealloc::Abort => c"abort",
    }
}

fn dss() -> &'static CStr {
    match options::current().dss {
        Dss::Disabled => c"disabled",
        Dss::Primary => c"primary",
        Dss::Secondary => c"secondary",
    }
}

fn thp() -> &'static CStr {
    match options::current().thp {
        Thp::Default => c"default",
        Thp::Always => c"always",
        Thp::Never => c"never",
    }
}

fn metadata_thp() -> &'static CStr {
    match options::current().metadata_thp {
        MetadataThp::Disabled => c"disabled",
        MetadataThp::Auto => c"auto",
        MetadataThp::Always => c"always",
    }
}

/// How jemalloc spells the option.
fn junk() -> &'static CStr {
    match options::current().junk {
        Junk { alloc: true, free: true } => c"true",
        Junk { alloc: true, free: false } => c"alloc",
        Junk { alloc: false, free: true } => c"free",
        Junk { alloc: false, free: false } => c"false",
    }
}

fn refresh() -> Result<(), Error> {
    snapshot::refresh();
    Ok(())
}

fn write_background_thread(value: Value) -> Result<(), Error> {
    match value {
        Value::Bool(on) if control::set_background_thread(on) => Ok(()),
        _ => Err(Error::Again),
    }
}

fn write_max_background_threads(value: Value) -> Result<(), Error> {
    match value {
        Value::Size(most) if control::set_max_background_threads(most) => Ok(()),
        _ => Err(Error::Invalid),
    }
}

fn flush_thread_cache() -> Result<(), Error> {
    if control::flush_thread_cache() { Ok(()) } else { Err(Error::Fault) }
}

/// A thread without a cache has nothing to give: that is no failure.
fn idle_thread() -> Result<(), Error> {
    control::thread_idle();
    Ok(())
}

fn purge_arena(mib: &[usize]) -> Result<(), Error> {
    let index = mib.get(1).and_then(|&index| u32::try_from(index).ok()).ok_or(Error::NoEntry)?;
    let all = index == control::narenas();
    if control::purge(if all { control::ARENAS_ALL } else { index }) {
        Ok(())
    } else {
        Err(Error::NoEntry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_reads_a_value_of_its_type() {
        for row in &ROWS {
            match row.access.reader() {
                Some(read) => assert_eq!(
                    read(&[0; crate::MAX_DEPTH]).unwrap().kind(),
                    row.kind,
                    "{}",
                    row.name
                ),
                None => assert_eq!(row.kind, Type::Void, "{}", row.name),
            }
        }
    }

    #[test]
    fn each_row_explains_itself_in_one_line() {
        for row in &ROWS {
            assert!(row.help.len() > 10 && !row.help.contains('\n'), "{}", row.name);
        }
    }

    #[test]
    fn the_version_is_the_core_s() {
        assert_eq!(VERSION.to_str().unwrap(), lumalloc::VERSION);
    }
}
