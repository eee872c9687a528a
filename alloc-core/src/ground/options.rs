//! The options in force: read once at start, frozen after. Defaults are those of jemalloc(3) 5.0,
//! except `muzzy_decay_ms` 0 (lazily freed pages make RSS look leaked), and, of 5.3,
//! `calloc_madvise_threshold` (see decisions.md).

use super::cache_limits::CacheLimits;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

/// What `realloc(p, 0)` does. Source: jemalloc(3) 5.3, `opt.zero_realloc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroRealloc {
    /// Answers a smallest block.
    Alloc,
    /// Frees and answers null: glibc's way, and the default.
    Free,
    /// Dies.
    Abort,
}

/// When addresses come from the data segment. Source: jemalloc(3), `opt.dss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dss {
    /// Never.
    Disabled,
    /// Before others are asked for.
    Primary,
    /// After others were refused.
    Secondary,
}

/// Where huge pages are asked for. Source: jemalloc(3) 5.3, `opt.thp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thp {
    /// Under long blocks, and nowhere else.
    Default,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Where huge pages are asked for under the allocator's records. Source: jemalloc(3) 5.3,
/// `opt.metadata_thp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataThp {
    /// Nowhere.
    Disabled,
    /// Under all but the first few MiB, unless `thp:never`.
    Auto,
    /// Under all.
    Always,
}

/// What `dlopen` of `liblumalloc.so` does with the flag `RTLD_DEEPBIND`: the file that
/// is opened would use the C library's `malloc` and `free`, and the program uses lumalloc's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DlopenDeepbind {
    /// Removes it.
    Drop,
    /// Removes it, with a message the first time.
    Warn,
    /// Passes it on.
    Keep,
}

/// What is filled with junk bytes. Source: jemalloc(3), `opt.junk`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Junk {
    /// What is allocated, with 0xa5.
    pub alloc: bool,
    /// What is freed, with 0x5a.
    pub free: bool,
}

/// How threads find their arena. Source: jemalloc(3), `opt.percpu_arena`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PercpuArena {
    /// They keep to one, and leave it for another when they meet others there.
    Disabled,
    /// One for each CPU: that of the CPU they run on.
    Percpu,
    /// One for each two CPUs: two hyper-threads share one.
    Phycpu,
}

/// Letters for `malloc_stats_print`, each at most once. Source: jemalloc(3), `stats_print_opts`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Letters([u8; Letters::KNOWN.len() + 1]);

impl Letters {
    /// No letter.
    pub const NONE: Letters = Letters([0; Letters::KNOWN.len() + 1]);
    /// All that have a meaning: those of jemalloc 5.3, and `w`.
    pub const KNOWN: &'static [u8] = b"Jgmdablxehw";

    /// Those of a text that have a meaning, in its order.
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

    /// As a C string.
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

/// Options that have a meaning so far. Names, units and defaults: jemalloc(3), `opt.*`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Warnings are fatal.
    pub abort: bool,
    /// A bad option is fatal.
    pub abort_conf: bool,
    /// Each option source, and each option set, is printed at start.
    pub confirm_conf: bool,
    /// Out of memory is fatal.
    pub xmalloc: bool,
    /// The statistics are printed when the program exits.
    pub stats_print: bool,
    /// The letters of that printing.
    pub stats_print_opts: Letters,
    /// Bytes allocated between two printings of the statistics; negative: none.
    pub stats_interval: i64,
    /// The letters of those printings.
    pub stats_interval_opts: Letters,
    /// Threads have caches.
    pub tcache: bool,
    /// The largest size in bytes that threads cache; at most 32768.
    pub tcache_max: usize,
    /// How many blocks of some classes caches hold. Source: jemalloc 5.3.1.
    pub tcache_ncached_max: CacheLimits,
    /// Bytes allocated between two steps of a cache's collection.
    pub tcache_gc_incr_bytes: usize,
    /// What `thread.allocatedp` points at moves with every operation of a thread that asked.
    pub allocatedp_live: bool,
    /// Milliseconds until unused dirty pages are purged; -1 never, 0 at once.
    pub dirty_decay_ms: isize,
    /// Milliseconds until unused muzzy pages are purged; -1 never, 0 at once.
    pub muzzy_decay_ms: isize,
    /// A thread of the library's own purges, not those that allocate.
    pub background_thread: bool,
    /// The most of such threads; one is all there ever is.
    pub max_background_threads: usize,
    /// How threads find their arena.
    pub percpu_arena: PercpuArena,
    /// The largest number of automatic arenas; 0 for the default, four per CPU of the quota.
    pub narenas: u32,
    /// Arenas per CPU for the default, as a 16.16 fraction.
    pub narenas_ratio: u32,
    /// log2 of how many times larger than a request a reused run may be.
    pub lg_extent_max_active_fit: u32,
    /// From this size on, `calloc` always gives dirty pages back instead of zeroing them; below, it
    /// looks at how many there are.
    pub calloc_madvise_threshold: usize,
    /// Addresses whose memory was given back are kept for later use.
    pub retain: bool,
    /// When addresses come from the data segment.
    pub dss: Dss,
    /// Where huge pages are asked for.
    pub thp: Thp,
    /// The same, under records.
    pub metadata_thp: MetadataThp,
    /// What `realloc(p, 0)` does.
    pub zero_realloc: ZeroRealloc,
    /// What is filled with junk.
    pub junk: Junk,
    /// What is allocated reads zero.
    pub zero: bool,
    /// Misuse is looked for at each call: canaries, double frees, sizes; what is freed is zeroed
    /// and waits before its reuse.
    pub hardened: bool,
    /// Requests of up to 4 KiB between two that get a page of their own between guard pages, on
    /// average; 0: none does.
    pub guarded_sample: usize,
    /// What `dlopen` does with `RTLD_DEEPBIND`.
    pub dlopen_deepbind: DlopenDeepbind,
}

impl Options {
    /// Whether each allocation and free must be seen, so that threads have façades.
    pub(crate) fn is_watching(&self) -> bool {
        self.hardened || self.zero || self.junk.alloc || self.junk.free
    }
}

/// What holds before anything is read.
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
    guarded_sample: 0,
    dlopen_deepbind: DlopenDeepbind::Drop,
};

struct Frozen(UnsafeCell<Options>);

// SAFETY: written by `freeze` only, before `READY` is set; read only after.
unsafe impl Sync for Frozen {}

static DEFAULT: Options = DEFAULTS;
static CURRENT: Frozen = Frozen(UnsafeCell::new(DEFAULTS));
static READY: AtomicBool = AtomicBool::new(false);

/// The options in force; before the start was made, the defaults.
#[inline]
pub(crate) fn current() -> &'static Options {
    // Acquire: pairs with the Release in `freeze`.
    if READY.load(Ordering::Acquire) {
        // SAFETY: after READY nobody writes.
        unsafe { &*CURRENT.0.get() }
    } else {
        &DEFAULT
    }
}

/// Puts options in force, once.
///
/// # Safety
/// Called once, by the thread that makes the process's start.
pub(crate) unsafe fn freeze(options: Options) {
    // SAFETY: nobody reads before READY, and nobody else writes (the caller's promise).
    unsafe { *CURRENT.0.get() = options };
    // Release: pairs with the Acquire in `current`.
    READY.store(true, Ordering::Release);
}
