//! The options in force. They are read once at the start, and never change after. Defaults are
//! those of jemalloc(3) 5.0, except `muzzy_decay_ms` 0 (lazily freed pages look like a leak in
//! RSS). Of the options of 5.3, `calloc_madvise_threshold` has another default (see decisions.md).

use super::cache_limits::CacheLimits;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

/// What `realloc(p, 0)` does. Source: jemalloc(3) 5.3, `opt.zero_realloc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroRealloc {
    /// Returns a block of the smallest size.
    Alloc,
    /// Frees the block and returns null, as glibc does. This is the default.
    Free,
    /// Aborts the process.
    Abort,
}

/// How profiles are written that have no name of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProfFormat {
    /// Text for jeprof.
    HeapV2,
    /// A gzipped message for pprof.
    Pprof,
}

/// When arenas take addresses from the data segment. Source: jemalloc(3), `opt.dss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dss {
    /// Never.
    Disabled,
    /// Before other addresses are requested.
    Primary,
    /// After other addresses were refused.
    Secondary,
}

/// Where huge pages are requested. Source: jemalloc(3) 5.3, `opt.thp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thp {
    /// Under long blocks only.
    Default,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Where huge pages are requested under the allocator's records. Source: jemalloc(3) 5.3,
/// `opt.metadata_thp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataThp {
    /// Nowhere.
    Disabled,
    /// Under all records but the first few MiB, unless `thp:never` is set.
    Auto,
    /// Under all records.
    Always,
}

/// What `dlopen` of `liblumalloc.so` does with the flag `RTLD_DEEPBIND`. With the flag, the opened
/// file would use the C library's `malloc` and `free`, while the program uses lumalloc's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DlopenDeepbind {
    /// Removes the flag.
    Drop,
    /// Removes the flag, with a message the first time.
    Warn,
    /// Passes the flag on.
    Keep,
}

/// Which memory is filled with junk bytes. Source: jemalloc(3), `opt.junk`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Junk {
    /// Allocated memory, with 0xa5.
    pub alloc: bool,
    /// Freed memory, with 0x5a.
    pub free: bool,
}

/// How a thread's arena is chosen. Source: jemalloc(3), `opt.percpu_arena`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PercpuArena {
    /// A thread stays with one arena, and moves to another when it meets other threads there.
    Disabled,
    /// There is an arena for each CPU. A thread uses that of the CPU it runs on.
    Percpu,
    /// There is an arena for each two CPUs, so two hyper-threads share one.
    Phycpu,
}

/// Letters for `malloc_stats_print`, each at most once. Source: jemalloc(3), `stats_print_opts`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Letters([u8; Letters::KNOWN.len() + 1]);

impl Letters {
    /// No letter.
    pub const NONE: Letters = Letters([0; Letters::KNOWN.len() + 1]);
    /// All letters that have a meaning: those of jemalloc 5.3, `w` and `s`.
    pub const KNOWN: &'static [u8] = b"Jgmdablxehws";

    /// Returns the letters of a text that have a meaning, in the order of the text.
    ///
    /// ```
    /// use lumalloc::options::Letters;
    /// assert_eq!(Letters::from_text(b"gJ?g").as_c_str(), c"gJ");
    /// ```
    #[must_use]
    pub fn from_text(text: &[u8]) -> Letters {
        let mut letters = Letters::NONE;
        let mut used = 0;
        for letter in text.iter().filter(|letter| Letters::KNOWN.contains(letter)) {
            if !letters.0.contains(letter)
                && let Some(place) = letters.0.get_mut(used)
            {
                *place = *letter;
                used += 1;
            }
        }
        letters
    }

    /// Returns the letters as a C string.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl core::fmt::Debug for Letters {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_c_str().fmt(f)
    }
}

/// All options that have an effect. Names, units and defaults: jemalloc(3), `opt.*`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether a warning is fatal, if it is not about an option.
    pub abort: bool,
    /// Whether a bad option is fatal.
    pub abort_conf: bool,
    /// Whether each option source, and each option set, is printed at the start.
    pub confirm_conf: bool,
    /// Whether running out of memory is fatal.
    pub xmalloc: bool,
    /// Whether the statistics are printed when the program exits.
    pub stats_print: bool,
    /// The letters of the printing at exit.
    pub stats_print_opts: Letters,
    /// Bytes allocated between two printings of the statistics. Negative means no printings.
    pub stats_interval: i64,
    /// The letters of the printings at intervals.
    pub stats_interval_opts: Letters,
    /// Whether threads have caches.
    pub tcache: bool,
    /// The largest size in bytes that threads cache: that of a size class, at most 32768, or 0.
    pub tcache_max: usize,
    /// How many blocks of some classes caches hold. Source: jemalloc 5.3.1.
    pub tcache_ncached_max: CacheLimits,
    /// Bytes allocated between two steps of a cache's collection.
    pub tcache_gc_incr_bytes: usize,
    /// Whether the number that `thread.allocatedp` points at changes with every operation of a
    /// thread that asked for it.
    pub allocatedp_live: bool,
    /// Milliseconds until unused dirty pages are purged. -1 means never, 0 at once.
    pub dirty_decay_ms: isize,
    /// Milliseconds until unused muzzy pages are purged. -1 means never, 0 at once.
    pub muzzy_decay_ms: isize,
    /// Whether a background thread of the library purges, instead of the threads that allocate.
    pub background_thread: bool,
    /// Whether that thread is started for a time when much memory is unused, and a process with one
    /// thread gives memory back at once.
    pub background_thread_auto: bool,
    /// The most background threads that may run. There is never more than one.
    pub max_background_threads: usize,
    /// How a thread's arena is chosen.
    pub percpu_arena: PercpuArena,
    /// The largest number of automatic arenas. 0 means the default, four per CPU of the quota.
    pub narenas: u32,
    /// Arenas per CPU in the default of [`Options::narenas`], as a 16.16 fraction.
    pub narenas_ratio: u32,
    /// log2 of how many times larger than a request a reused run of pages may be, unless all are
    /// larger.
    pub lg_extent_max_active_fit: u32,
    /// The size in bytes from which `calloc` always gives dirty pages back instead of zeroing them.
    /// Below it, `calloc` decides by how many dirty pages there are.
    pub calloc_madvise_threshold: usize,
    /// Whether addresses are kept for later use when their memory is given back.
    pub retain: bool,
    /// When arenas take addresses from the data segment.
    pub dss: Dss,
    /// Where huge pages are requested.
    pub thp: Thp,
    /// Where huge pages are requested under the allocator's records.
    pub metadata_thp: MetadataThp,
    /// The soft bound in bytes at the start. 0 means none, -1 the bound of the process's container.
    pub limit_soft: isize,
    /// The hard bound in bytes at the start. 0 means none.
    pub limit_hard: usize,
    /// What `realloc(p, 0)` does.
    pub zero_realloc: ZeroRealloc,
    /// Which memory is filled with junk.
    pub junk: Junk,
    /// Whether allocated memory reads zero.
    pub zero: bool,
    /// Whether each call looks for misuse: overwritten canaries, double frees, wrong sizes. Freed
    /// memory is zeroed, and waits before its reuse.
    pub hardened: bool,
    /// Whether C++'s `delete` with a size uses the size. If not, it frees as the one without, and a
    /// program may tell a wrong one.
    pub sized_delete: bool,
    /// How many requests of up to 4 KiB there are on average between two guarded samples, which get
    /// a page of their own between guard pages. 0 means no samples.
    pub guarded_sample: usize,
    /// What `dlopen` does with `RTLD_DEEPBIND`.
    pub dlopen_deepbind: DlopenDeepbind,
    /// Whether the heap profiler may take samples of allocations.
    pub prof: bool,
    /// Whether sampling starts active.
    pub prof_active: bool,
    /// Whether profiles tell what was allocated since the start, beside what is in use.
    pub prof_accum: bool,
    /// How profiles are written that have no name of their own.
    pub prof_format: ProfFormat,
    /// Whether a profile is written when the program exits.
    pub prof_final: bool,
    /// Whether a profile is written each time that more memory is held than ever before.
    pub prof_gdump: bool,
    /// Whether `prof.stats.*` tells the samples by size class.
    pub prof_stats: bool,
    /// Whether samples have the names that the system has for their threads.
    pub prof_sys_thread_name: bool,
    /// log2 of the bytes allocated between two profiles. Negative means none are written.
    pub lg_prof_interval: i32,
    /// Whether what is still allocated when the program exits is reported. Turns `prof` on.
    pub prof_leak: bool,
    /// Whether the program fails if anything is. Turns `prof_leak` on.
    pub prof_leak_error: bool,
    /// Whether each allocation is counted, and written to `mprof.data` when the program exits.
    /// Turns `prof` on, and sets `lg_prof_sample` to 0. Source: mprof(1).
    pub mprof: bool,
    /// Whether each allocation and each free is written to a file, from the start to the exit.
    pub monitor: bool,
    /// Whether new threads are sampled.
    pub prof_thread_active_init: bool,
    /// log2 of the bytes between two samples on average.
    pub lg_prof_sample: u32,
    /// The most return addresses of a sample's stack.
    pub prof_bt_max: u32,
    /// How many of the last samples are kept. Negative: all.
    pub prof_recent_alloc_max: isize,
    /// Whether a log of the samples that are freed is kept from the start to the exit.
    pub prof_log: bool,
    /// Whether stacks are those that libgcc's unwinder finds.
    pub prof_libgcc: bool,
    /// Whether names of profiles have the namespace of the process.
    pub prof_pid_namespace: bool,
    /// Whether `prof_time_resolution` is `high`. Times in profiles have nanoseconds either way.
    pub prof_time_high: bool,
    /// Whether heap_v2 has numbers that readers turn into right estimates of stacks with several
    /// sizes. Else it has the numbers of the samples.
    pub prof_unbias: bool,
    /// The first state of the random numbers that choose samples. 0: another one in each process.
    pub prof_seed: u64,
}

impl Options {
    /// Turns on what other options need.
    pub(crate) fn complete(&mut self) {
        self.prof_leak |= self.prof_leak_error;
        self.prof |= self.prof_leak | self.mprof;
        if self.mprof {
            self.lg_prof_sample = 0;
        }
    }

    /// Returns the bytes allocated between two profiles. `None`: none are written at intervals.
    #[must_use]
    pub fn prof_interval(&self) -> Option<u64> {
        let lg = u32::try_from(self.lg_prof_interval).ok().filter(|_| self.prof)?;
        1u64.checked_shl(lg)
    }

    /// Whether each allocation and free must be observed from the start on. Threads then have
    /// façades.
    pub(crate) fn is_watching(&self) -> bool {
        self.zero || self.junk.alloc || self.junk.free || self.always_watches()
    }

    /// Whether the free of a sample must be noticed at once, because it is told who freed it.
    pub(crate) fn tells_who_frees(&self) -> bool {
        self.prof && (self.prof_log || self.prof_recent_alloc_max != 0)
    }

    /// Whether each allocation and free must be observed, whatever is switched at run time.
    pub(crate) fn always_watches(&self) -> bool {
        self.hardened || (self.prof && self.lg_prof_sample == 0)
    }
}

/// The options before any source is read.
pub(crate) const DEFAULTS: Options = Options {
    abort: false,
    abort_conf: false,
    confirm_conf: false,
    xmalloc: false,
    stats_print: false,
    stats_print_opts: Letters::NONE,
    stats_interval: -1,
    stats_interval_opts: Letters::NONE,
    tcache: true,
    tcache_max: super::size_class::MAX_CACHED,
    tcache_ncached_max: CacheLimits::NONE,
    tcache_gc_incr_bytes: 64 << 10,
    allocatedp_live: true,
    dirty_decay_ms: 10_000,
    muzzy_decay_ms: 0,
    background_thread: false,
    background_thread_auto: true,
    max_background_threads: 4,
    percpu_arena: PercpuArena::Disabled,
    narenas: 0,
    narenas_ratio: 4 << 16,
    lg_extent_max_active_fit: 6,
    calloc_madvise_threshold: 1 << 47,
    retain: true,
    dss: Dss::Secondary,
    thp: Thp::Default,
    metadata_thp: MetadataThp::Auto,
    zero_realloc: ZeroRealloc::Free,
    junk: Junk { alloc: false, free: false },
    zero: false,
    hardened: false,
    sized_delete: true,
    guarded_sample: 0,
    limit_soft: -1,
    limit_hard: 0,
    dlopen_deepbind: DlopenDeepbind::Drop,
    prof: false,
    prof_active: true,
    prof_accum: false,
    prof_format: ProfFormat::HeapV2,
    prof_final: false,
    prof_gdump: false,
    prof_stats: false,
    prof_sys_thread_name: false,
    lg_prof_interval: -1,
    prof_leak: false,
    prof_leak_error: false,
    mprof: false,
    prof_recent_alloc_max: 0,
    prof_log: false,
    prof_libgcc: false,
    prof_pid_namespace: false,
    prof_time_high: false,
    prof_unbias: true,
    monitor: false,
    prof_thread_active_init: true,
    lg_prof_sample: 19,
    prof_bt_max: 128,
    prof_seed: 0,
};

struct Frozen(UnsafeCell<Options>);

// SAFETY: written by `freeze` only, before `READY` is set, and read only after.
unsafe impl Sync for Frozen {}

static DEFAULT: Options = DEFAULTS;
static CURRENT: Frozen = Frozen(UnsafeCell::new(DEFAULTS));
static READY: AtomicBool = AtomicBool::new(false);

/// Returns the options in force, or the defaults before the process's start.
#[inline]
pub(crate) fn current() -> &'static Options {
    // Acquire: pairs with the Release in `freeze`.
    if READY.load(Ordering::Acquire) {
        // SAFETY: no thread writes after READY.
        unsafe { &*CURRENT.0.get() }
    } else {
        &DEFAULT
    }
}

/// Sets the options in force, once.
///
/// # Safety
/// Called once, by the thread that runs the process's start.
pub(crate) unsafe fn freeze(options: Options) {
    // SAFETY: no thread reads before READY, and no other thread writes (the caller's promise).
    unsafe { *CURRENT.0.get() = options };
    // Release: pairs with the Acquire in `current`.
    READY.store(true, Ordering::Release);
}
