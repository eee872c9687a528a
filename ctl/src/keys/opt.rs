//! `opt.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};
use crate::typed::Text;

/// `opt.abort`: warnings are fatal, those about options excepted.
pub const ABORT: Key<Read<bool>> = Key::new("opt.abort");

/// `opt.abort_conf`: bad option strings are fatal.
pub const ABORT_CONF: Key<Read<bool>> = Key::new("opt.abort_conf");

/// `opt.allocatedp_live`: what thread.allocatedp points at moves with every operation, not on slow
/// paths only.
pub const ALLOCATEDP_LIVE: Key<Read<bool>> = Key::new("opt.allocatedp_live");

/// `opt.background_thread`: start a background thread when there is something to purge.
pub const BACKGROUND_THREAD: Key<Read<bool>> = Key::new("opt.background_thread");

/// `opt.background_thread_auto`: run a temporary background thread when much memory is unused.
pub const BACKGROUND_THREAD_AUTO: Key<Read<bool>> = Key::new("opt.background_thread_auto");

/// `opt.cache_oblivious`: large blocks begin at a random line: they do not.
pub const CACHE_OBLIVIOUS: Key<Read<bool>> = Key::new("opt.cache_oblivious");

/// `opt.calloc_madvise_threshold` (bytes): from this size on calloc gives dirty pages back instead
/// of zeroing them.
pub const CALLOC_MADVISE_THRESHOLD: Key<Read<usize>> = Key::new("opt.calloc_madvise_threshold");

/// `opt.confirm_conf`: say at start where options came from and which were set.
pub const CONFIRM_CONF: Key<Read<bool>> = Key::new("opt.confirm_conf");

/// `opt.debug_double_free_max_scan` (count): cached blocks searched at a free: a bit for each block
/// tells it without a search.
pub const DEBUG_DOUBLE_FREE_MAX_SCAN: Key<Read<u32>> = Key::new("opt.debug_double_free_max_scan");

/// `opt.dirty_decay_ms` (ms): how long unused dirty pages are kept.
pub const DIRTY_DECAY_MS: Key<Read<isize>> = Key::new("opt.dirty_decay_ms");

/// `opt.disable_large_size_classes`: sizes above 32 KiB are rounded to pages only: they have four
/// classes per doubling.
pub const DISABLE_LARGE_SIZE_CLASSES: Key<Read<bool>> = Key::new("opt.disable_large_size_classes");

/// `opt.dlopen_deepbind`: what dlopen does with RTLD_DEEPBIND: drop, warn (drop with a message) or
/// keep.
pub const DLOPEN_DEEPBIND: Key<Read<Text>> = Key::new("opt.dlopen_deepbind");

/// `opt.dss`: when addresses come from the data segment: disabled, primary or secondary.
pub const DSS: Key<Read<Text>> = Key::new("opt.dss");

/// `opt.guarded_sample` (count): one small request in so many is a guarded sample, on average; 1:
/// each; 0: none.
pub const GUARDED_SAMPLE: Key<Read<usize>> = Key::new("opt.guarded_sample");

/// `opt.hardened`: look for misuse at each call, and make its use harder.
pub const HARDENED: Key<Read<bool>> = Key::new("opt.hardened");

/// `opt.hpa`: jemalloc's huge page allocator: another way is taken here.
pub const HPA: Key<Read<bool>> = Key::new("opt.hpa");

/// `opt.junk`: fill with junk: true, false, alloc or free.
pub const JUNK: Key<Read<Text>> = Key::new("opt.junk");

/// `opt.lg_extent_max_active_fit` (log2): how many times larger than a request a reused run of
/// pages may be, unless all are larger.
pub const LG_EXTENT_MAX_ACTIVE_FIT: Key<Read<usize>> = Key::new("opt.lg_extent_max_active_fit");

/// `opt.lg_prof_interval` (log2): bytes allocated between two profiles; -1: none are written at
/// intervals.
pub const LG_PROF_INTERVAL: Key<Read<isize>> = Key::new("opt.lg_prof_interval");

/// `opt.lg_prof_sample` (log2): bytes between two samples, on average.
pub const LG_PROF_SAMPLE: Key<Read<usize>> = Key::new("opt.lg_prof_sample");

/// `opt.lg_san_uaf_align` (log2): alignment of what is checked for use after free.
pub const LG_SAN_UAF_ALIGN: Key<Read<isize>> = Key::new("opt.lg_san_uaf_align");

/// `opt.lg_tcache_max` (log2): largest size that threads cache, rounded up; opt.tcache_max is
/// exact.
pub const LG_TCACHE_MAX: Key<Read<usize>> = Key::new("opt.lg_tcache_max");

/// `opt.limit_hard` (bytes): limit.hard at the start; 0: none.
pub const LIMIT_HARD: Key<Read<usize>> = Key::new("opt.limit_hard");

/// `opt.limit_soft` (bytes): limit.soft at the start; 0: none; -1: 95 per cent of what the
/// container may have.
pub const LIMIT_SOFT: Key<Read<isize>> = Key::new("opt.limit_soft");

/// `opt.max_background_threads` (count): most background threads.
pub const MAX_BACKGROUND_THREADS: Key<Read<usize>> = Key::new("opt.max_background_threads");

/// `opt.metadata_thp`: where huge pages are asked for under records: disabled, auto or always.
pub const METADATA_THP: Key<Read<Text>> = Key::new("opt.metadata_thp");

/// `opt.monitor`: write each allocation and each free to a file.
pub const MONITOR: Key<Read<bool>> = Key::new("opt.monitor");

/// `opt.mprof`: count each allocation, and write mprof.data at exit.
pub const MPROF: Key<Read<bool>> = Key::new("opt.mprof");

/// `opt.muzzy_decay_ms` (ms): how long lazily freed pages are kept.
pub const MUZZY_DECAY_MS: Key<Read<isize>> = Key::new("opt.muzzy_decay_ms");

/// `opt.narenas` (count): most automatic arenas.
pub const NARENAS: Key<Read<u32>> = Key::new("opt.narenas");

/// `opt.narenas_ratio`: automatic arenas for each CPU of the quota, where narenas does not say; a
/// fraction.
pub const NARENAS_RATIO: Key<Read<Text>> = Key::new("opt.narenas_ratio");

/// `opt.percpu_arena`: whether threads find their arena by CPU: disabled, percpu or phycpu.
pub const PERCPU_ARENA: Key<Read<Text>> = Key::new("opt.percpu_arena");

/// `opt.prof`: the heap profiler may take samples.
pub const PROF: Key<Read<bool>> = Key::new("opt.prof");

/// `opt.prof_accum`: profiles tell what was allocated since the start too.
pub const PROF_ACCUM: Key<Read<bool>> = Key::new("opt.prof_accum");

/// `opt.prof_active`: sampling starts active.
pub const PROF_ACTIVE: Key<Read<bool>> = Key::new("opt.prof_active");

/// `opt.prof_bt_max` (count): most return addresses of a sample.
pub const PROF_BT_MAX: Key<Read<u32>> = Key::new("opt.prof_bt_max");

/// `opt.prof_final`: write a profile at exit.
pub const PROF_FINAL: Key<Read<bool>> = Key::new("opt.prof_final");

/// `opt.prof_format`: how profiles without a name of their own are written: heap_v2 or pprof.
pub const PROF_FORMAT: Key<Read<Text>> = Key::new("opt.prof_format");

/// `opt.prof_gdump`: write a profile at each new maximum of the memory held.
pub const PROF_GDUMP: Key<Read<bool>> = Key::new("opt.prof_gdump");

/// `opt.prof_leak`: report at exit what is still allocated.
pub const PROF_LEAK: Key<Read<bool>> = Key::new("opt.prof_leak");

/// `opt.prof_leak_error`: fail at exit if anything is still allocated.
pub const PROF_LEAK_ERROR: Key<Read<bool>> = Key::new("opt.prof_leak_error");

/// `opt.prof_libgcc`: stacks are those that libgcc's unwinder finds.
pub const PROF_LIBGCC: Key<Read<bool>> = Key::new("opt.prof_libgcc");

/// `opt.prof_log`: keep a log of the samples that are freed, and write it at exit.
pub const PROF_LOG: Key<Read<bool>> = Key::new("opt.prof_log");

/// `opt.prof_pid_namespace`: names of profiles have the namespace of the process's number.
pub const PROF_PID_NAMESPACE: Key<Read<bool>> = Key::new("opt.prof_pid_namespace");

/// `opt.prof_prefix`: what names of profiles begin with; empty: none is written without a name.
pub const PROF_PREFIX: Key<Read<Text>> = Key::new("opt.prof_prefix");

/// `opt.prof_recent_alloc_max` (count): how many of the last samples are kept; -1: all.
pub const PROF_RECENT_ALLOC_MAX: Key<Read<isize>> = Key::new("opt.prof_recent_alloc_max");

/// `opt.prof_seed`: first state of the random numbers that choose samples; 0: any.
pub const PROF_SEED: Key<Read<u64>> = Key::new("opt.prof_seed");

/// `opt.prof_stats`: prof.stats.* tells the samples by size class.
pub const PROF_STATS: Key<Read<bool>> = Key::new("opt.prof_stats");

/// `opt.prof_sys_thread_name`: samples have the system's names of their threads.
pub const PROF_SYS_THREAD_NAME: Key<Read<bool>> = Key::new("opt.prof_sys_thread_name");

/// `opt.prof_thread_active_init`: new threads are sampled.
pub const PROF_THREAD_ACTIVE_INIT: Key<Read<bool>> = Key::new("opt.prof_thread_active_init");

/// `opt.prof_time_resolution`: clock of the times in profiles, which have nanoseconds either way.
pub const PROF_TIME_RESOLUTION: Key<Read<Text>> = Key::new("opt.prof_time_resolution");

/// `opt.prof_unbias`: the format heap_v2 has unbiased numbers.
pub const PROF_UNBIAS: Key<Read<bool>> = Key::new("opt.prof_unbias");

/// `opt.retain`: addresses whose memory was given back are kept for later.
pub const RETAIN: Key<Read<bool>> = Key::new("opt.retain");

/// `opt.sized_delete`: C++'s delete with a size uses the size, and compares it.
pub const SIZED_DELETE: Key<Read<bool>> = Key::new("opt.sized_delete");

/// `opt.stats_interval` (bytes): allocated between two printings of the statistics; -1: none.
pub const STATS_INTERVAL: Key<Read<i64>> = Key::new("opt.stats_interval");

/// `opt.stats_interval_opts`: letters of those printings.
pub const STATS_INTERVAL_OPTS: Key<Read<Text>> = Key::new("opt.stats_interval_opts");

/// `opt.stats_print`: print the statistics at exit.
pub const STATS_PRINT: Key<Read<bool>> = Key::new("opt.stats_print");

/// `opt.stats_print_opts`: letters of that printing.
pub const STATS_PRINT_OPTS: Key<Read<Text>> = Key::new("opt.stats_print_opts");

/// `opt.tcache`: threads cache blocks.
pub const TCACHE: Key<Read<bool>> = Key::new("opt.tcache");

/// `opt.tcache_gc_incr_bytes` (bytes): allocated between two steps of a cache's collection.
pub const TCACHE_GC_INCR_BYTES: Key<Read<usize>> = Key::new("opt.tcache_gc_incr_bytes");

/// `opt.tcache_max` (bytes): largest size that threads cache, rounded up to a class.
pub const TCACHE_MAX: Key<Read<usize>> = Key::new("opt.tcache_max");

/// `opt.tcache_ncached_max`: blocks of some classes that a cache holds: low-high:most|...; empty:
/// by class.
pub const TCACHE_NCACHED_MAX: Key<Read<Text>> = Key::new("opt.tcache_ncached_max");

/// `opt.thp`: where huge pages are asked for: default (under long blocks), always or never.
pub const THP: Key<Read<Text>> = Key::new("opt.thp");

/// `opt.trust_madvise`: MADV_DONTNEED is trusted unseen on any system.
pub const TRUST_MADVISE: Key<Read<bool>> = Key::new("opt.trust_madvise");

/// `opt.utrace`: trace calls with utrace(2), which Linux has not.
pub const UTRACE: Key<Read<bool>> = Key::new("opt.utrace");

/// `opt.xmalloc`: die with a message instead of answering NULL.
pub const XMALLOC: Key<Read<bool>> = Key::new("opt.xmalloc");

/// `opt.zero`: fresh memory reads zero.
pub const ZERO: Key<Read<bool>> = Key::new("opt.zero");

/// `opt.zero_realloc`: what realloc(p, 0) does: alloc, free or abort.
pub const ZERO_REALLOC: Key<Read<Text>> = Key::new("opt.zero_realloc");

/// `opt.malloc_conf.*`
pub mod malloc_conf {
    use crate::key::{Key, Read};
    use crate::typed::Text;

    /// `opt.malloc_conf.env_var`: option string in the environment variable MALLOC_CONF.
    pub const ENV_VAR: Key<Read<Text>> = Key::new("opt.malloc_conf.env_var");

    /// `opt.malloc_conf.global_var`: option string in the program's variable malloc_conf.
    pub const GLOBAL_VAR: Key<Read<Text>> = Key::new("opt.malloc_conf.global_var");

    /// `opt.malloc_conf.global_var_2_conf_harder`: option string in the program's variable
    /// malloc_conf_2_conf_harder.
    pub const GLOBAL_VAR_2_CONF_HARDER: Key<Read<Text>> =
        Key::new("opt.malloc_conf.global_var_2_conf_harder");

    /// `opt.malloc_conf.own_env_var`: option string in the variable LUMALLOC_CONF.
    pub const OWN_ENV_VAR: Key<Read<Text>> = Key::new("opt.malloc_conf.own_env_var");

    /// `opt.malloc_conf.symlink`: option string in the target of /etc/malloc.conf.
    pub const SYMLINK: Key<Read<Text>> = Key::new("opt.malloc_conf.symlink");
}
