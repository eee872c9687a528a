//! `opt.*`: the options, which do not change after the start.
use crate::option_text;
use crate::row::Spec;
use crate::row_macros::ro;
use core::ffi::CStr;
use lumalloc::control;
use lumalloc::options::{self, DlopenDeepbind, Dss, Junk, MetadataThp, ProfFormat};
use lumalloc::options::{PercpuArena, Thp, ZeroRealloc};

/// A row of an option that is shown as it was read.
macro_rules! opt {
    ($field:ident, $kind:ident, $unit:ident, $help:literal) => {
        ro!(concat!("opt.", stringify!($field)), $kind, $unit, |_| options::current().$field, $help)
    };
}

/// The rows of `opt.*` for options with an effect.
pub static ROWS: &[Spec] = &[
    opt!(abort, Bool, None, "warnings are fatal, those about options excepted"),
    opt!(abort_conf, Bool, None, "bad option strings are fatal"),
    opt!(confirm_conf, Bool, None, "say at start where options came from and which were set"),
    ro!("opt.narenas", Unsigned, Count, |_| automatic_arenas(), "most automatic arenas"),
    ro!(
        "opt.narenas_ratio",
        Str,
        None,
        |_| option_text::narenas_ratio(),
        "automatic arenas for each CPU of the quota, where narenas does not say; a fraction"
    ),
    ro!(
        "opt.percpu_arena",
        Str,
        None,
        |_| percpu_arena(),
        "whether threads find their arena by CPU: disabled, percpu or phycpu"
    ),
    opt!(
        background_thread,
        Bool,
        None,
        "start a background thread when there is something to purge"
    ),
    opt!(
        background_thread_auto,
        Bool,
        None,
        "run a temporary background thread when much memory is unused"
    ),
    opt!(max_background_threads, Size, Count, "most background threads"),
    ro!(
        "opt.dss",
        Str,
        None,
        |_| dss(),
        "when addresses come from the data segment: disabled, primary or secondary"
    ),
    ro!(
        "opt.thp",
        Str,
        None,
        |_| thp(),
        "where huge pages are asked for: default (under long blocks), always or never"
    ),
    ro!(
        "opt.metadata_thp",
        Str,
        None,
        |_| metadata_thp(),
        "where huge pages are asked for under records: disabled, auto or always"
    ),
    opt!(retain, Bool, None, "addresses whose memory was given back are kept for later"),
    opt!(dirty_decay_ms, Ssize, Milliseconds, "how long unused dirty pages are kept"),
    opt!(muzzy_decay_ms, Ssize, Milliseconds, "how long lazily freed pages are kept"),
    opt!(
        limit_soft,
        Ssize,
        Bytes,
        "limit.soft at the start; 0: none; -1: 95 per cent of what the container may have"
    ),
    opt!(limit_hard, Size, Bytes, "limit.hard at the start; 0: none"),
    ro!(
        "opt.zero_realloc",
        Str,
        None,
        |_| zero_realloc(),
        "what realloc(p, 0) does: alloc, free or abort"
    ),
    ro!("opt.junk", Str, None, |_| junk(), "fill with junk: true, false, alloc or free"),
    opt!(zero, Bool, None, "fresh memory reads zero"),
    opt!(
        guarded_sample,
        Size,
        Count,
        "one small request in so many is a guarded sample, on average; 1: each; 0: none"
    ),
    opt!(hardened, Bool, None, "look for misuse at each call, and make its use harder"),
    opt!(sized_delete, Bool, None, "C++'s delete with a size uses the size, and compares it"),
    opt!(prof, Bool, None, "the heap profiler may take samples"),
    ro!(
        "opt.prof_prefix",
        Str,
        None,
        |_| control::profile::prefix_option(),
        "what names of profiles begin with; empty: none is written without a name"
    ),
    opt!(prof_active, Bool, None, "sampling starts active"),
    opt!(prof_thread_active_init, Bool, None, "new threads are sampled"),
    opt!(prof_bt_max, Unsigned, Count, "most return addresses of a sample"),
    ro!(
        "opt.lg_prof_sample",
        Size,
        Log2,
        |_| options::current().lg_prof_sample as usize,
        "bytes between two samples, on average"
    ),
    ro!(
        "opt.lg_prof_interval",
        Ssize,
        Log2,
        |_| options::current().lg_prof_interval as isize,
        "bytes allocated between two profiles; -1: none are written at intervals"
    ),
    opt!(prof_seed, U64, None, "first state of the random numbers that choose samples; 0: any"),
    opt!(prof_final, Bool, None, "write a profile at exit"),
    opt!(prof_gdump, Bool, None, "write a profile at each new maximum of the memory held"),
    ro!(
        "opt.prof_format",
        Str,
        None,
        |_| prof_format(),
        "how profiles without a name of their own are written: heap_v2 or pprof"
    ),
    opt!(mprof, Bool, None, "count each allocation, and write mprof.data at exit"),
    opt!(prof_log, Bool, None, "keep a log of the samples that are freed, and write it at exit"),
    opt!(prof_libgcc, Bool, None, "stacks are those that libgcc's unwinder finds"),
    opt!(
        prof_pid_namespace,
        Bool,
        None,
        "names of profiles have the namespace of the process's number"
    ),
    opt!(prof_unbias, Bool, None, "the format heap_v2 has unbiased numbers"),
    opt!(prof_recent_alloc_max, Ssize, Count, "how many of the last samples are kept; -1: all"),
    ro!(
        "opt.prof_time_resolution",
        Str,
        None,
        |_| if options::current().prof_time_high { c"high" } else { c"default" },
        "clock of the times in profiles, which have nanoseconds either way"
    ),
    opt!(monitor, Bool, None, "write each allocation and each free to a file"),
    opt!(prof_stats, Bool, None, "prof.stats.* tells the samples by size class"),
    opt!(prof_sys_thread_name, Bool, None, "samples have the system's names of their threads"),
    opt!(prof_leak, Bool, None, "report at exit what is still allocated"),
    opt!(prof_leak_error, Bool, None, "fail at exit if anything is still allocated"),
    opt!(prof_accum, Bool, None, "profiles tell what was allocated since the start too"),
    ro!(
        "opt.dlopen_deepbind",
        Str,
        None,
        |_| dlopen_deepbind(),
        "what dlopen does with RTLD_DEEPBIND: drop, warn (drop with a message) or keep"
    ),
    opt!(stats_print, Bool, None, "print the statistics at exit"),
    ro!(
        "opt.stats_print_opts",
        Str,
        None,
        |_| options::current().stats_print_opts.as_c_str(),
        "letters of that printing"
    ),
    opt!(stats_interval, I64, Bytes, "allocated between two printings of the statistics; -1: none"),
    ro!(
        "opt.stats_interval_opts",
        Str,
        None,
        |_| options::current().stats_interval_opts.as_c_str(),
        "letters of those printings"
    ),
    opt!(xmalloc, Bool, None, "die with a message instead of answering NULL"),
    opt!(tcache, Bool, None, "threads cache blocks"),
    opt!(tcache_max, Size, Bytes, "largest size that threads cache, rounded up to a class"),
    ro!(
        "opt.tcache_ncached_max",
        Str,
        None,
        |_| option_text::tcache_ncached_max(),
        "blocks of some classes that a cache holds: low-high:most|...; empty: by class"
    ),
    opt!(tcache_gc_incr_bytes, Size, Bytes, "allocated between two steps of a cache's collection"),
    opt!(
        allocatedp_live,
        Bool,
        None,
        "what thread.allocatedp points at moves with every operation, not on slow paths only"
    ),
    ro!(
        "opt.lg_extent_max_active_fit",
        Size,
        Log2,
        |_| options::current().lg_extent_max_active_fit as usize,
        "how many times larger than a request a reused run of pages may be, unless all are larger"
    ),
    opt!(
        calloc_madvise_threshold,
        Size,
        Bytes,
        "from this size on calloc gives dirty pages back instead of zeroing them"
    ),
];

/// The limit from the option, or the computed one if the option was not given or there is an arena
/// for each CPU.
fn automatic_arenas() -> u32 {
    let options = options::current();
    match options.narenas {
        asked_for if asked_for != 0 && options.percpu_arena == PercpuArena::Disabled => asked_for,
        _ => control::automatic_narenas(),
    }
}

/// The option as jemalloc spells it.
fn percpu_arena() -> &'static CStr {
    match options::current().percpu_arena {
        PercpuArena::Disabled => c"disabled",
        PercpuArena::Percpu => c"percpu",
        PercpuArena::Phycpu => c"phycpu",
    }
}

/// The option as jemalloc spells it.
fn zero_realloc() -> &'static CStr {
    match options::current().zero_realloc {
        ZeroRealloc::Alloc => c"alloc",
        ZeroRealloc::Free => c"free",
        ZeroRealloc::Abort => c"abort",
    }
}

fn prof_format() -> &'static CStr {
    match options::current().prof_format {
        ProfFormat::HeapV2 => c"heap_v2",
        ProfFormat::Pprof => c"pprof",
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

fn dlopen_deepbind() -> &'static CStr {
    match options::current().dlopen_deepbind {
        DlopenDeepbind::Drop => c"drop",
        DlopenDeepbind::Warn => c"warn",
        DlopenDeepbind::Keep => c"keep",
    }
}

/// The option as jemalloc spells it.
fn junk() -> &'static CStr {
    match options::current().junk {
        Junk { alloc: true, free: true } => c"true",
        Junk { alloc: true, free: false } => c"alloc",
        Junk { alloc: false, free: true } => c"free",
        Junk { alloc: false, free: false } => c"false",
    }
}
