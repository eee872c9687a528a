//! The options by name, one row each. Names and ranges: jemalloc(3) and its later versions.
//!
//! An option of jemalloc that has no effect here (yet) also has a row. Its value is checked only
//! for its shape, and it is reported as having no effect.

use super::cache_limits::CacheLimits;
use super::options::{
    DlopenDeepbind, Dss, Junk, Letters, MetadataThp, Options, PercpuArena, ProfFormat, Thp,
    ZeroRealloc,
};
use super::prof_prefix;
use super::size_class::{MAX_CACHED, class_round};

/// How an option's value is read, and how it is stored.
pub(crate) enum Kind {
    /// Exactly `true` or `false`.
    Bool(fn(&mut Options, bool)),
    /// A number. Out of range, it becomes the nearest bound with `clip`, and a line says so. It is
    /// an error without.
    Unsigned { min: u64, max: u64, clip: bool, set: fn(&mut Options, u64) },
    /// A number, or `default`, which sets 0. Below its range it is an error. Above it becomes the
    /// greatest one, and a line says so.
    UnsignedOrDefault { min: u64, max: u64, set: fn(&mut Options, u64) },
    /// A number that may be negative. A number out of range is an error.
    Signed { min: i64, max: i64, set: fn(&mut Options, i64) },
    /// A decimal fraction, passed on in 16.16 fixed point.
    Fraction(fn(&mut Options, u32)),
    /// One of a few words, passed on as its index in the list.
    Word(&'static [&'static str], fn(&mut Options, usize)),
    /// Letters for `malloc_stats_print`. Unknown letters are left out.
    Letters(fn(&mut Options, Letters)),
    /// Any text, which is stored elsewhere.
    Text(fn(&[u8])),
    /// How many blocks of some classes caches hold. Several such options add up.
    CacheLimits(fn(&mut Options) -> &mut CacheLimits),
    /// The value is checked for its shape, and the option is reported as having no effect.
    NoEffect(Shape),
}

/// The shape of the values of an option without effect.
pub(crate) enum Shape {
    /// `true` or `false`.
    Bool,
    /// A number, perhaps negative.
    Number,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Any text.
    Any,
}

/// One option.
pub(crate) struct OptionRow {
    /// The option's name, as written in an option string.
    pub(crate) name: &'static str,
    /// How the option's value is read and stored.
    pub(crate) kind: Kind,
}

const fn row(name: &'static str, kind: Kind) -> OptionRow {
    OptionRow { name, kind }
}

const fn none(name: &'static str, shape: Shape) -> OptionRow {
    OptionRow { name, kind: Kind::NoEffect(shape) }
}

const DECAY_MAX: i64 = i64::MAX / 1_000_000;

/// All known options.
pub(crate) static TABLE: &[OptionRow] = &[
    row("abort", Kind::Bool(|o, on| o.abort = on)),
    row("abort_conf", Kind::Bool(|o, on| o.abort_conf = on)),
    row("confirm_conf", Kind::Bool(|o, on| o.confirm_conf = on)),
    row("xmalloc", Kind::Bool(|o, on| o.xmalloc = on)),
    row("stats_print", Kind::Bool(|o, on| o.stats_print = on)),
    row("stats_print_opts", Kind::Letters(|o, letters| o.stats_print_opts = letters)),
    row(
        "stats_interval",
        Kind::Signed { min: -1, max: i64::MAX, set: |o, n| o.stats_interval = n },
    ),
    row("stats_interval_opts", Kind::Letters(|o, letters| o.stats_interval_opts = letters)),
    row("tcache", Kind::Bool(|o, on| o.tcache = on)),
    row(
        "tcache_max",
        Kind::Unsigned {
            min: 0,
            max: MAX_CACHED as u64,
            clip: true,
            set: |o, n| o.tcache_max = cached_class(n as usize),
        },
    ),
    row("tcache_ncached_max", Kind::CacheLimits(|o| &mut o.tcache_ncached_max)),
    row(
        "lg_tcache_max",
        Kind::Unsigned {
            min: 0,
            max: 15,
            clip: true,
            set: |o, n| o.tcache_max = cached_class(1 << n),
        },
    ),
    row(
        "tcache_gc_incr_bytes",
        Kind::Unsigned {
            min: 1024,
            max: 1 << 40,
            clip: true,
            set: |o, n| o.tcache_gc_incr_bytes = n as usize,
        },
    ),
    row("allocatedp_live", Kind::Bool(|o, on| o.allocatedp_live = on)),
    row(
        "dirty_decay_ms",
        Kind::Signed { min: -1, max: DECAY_MAX, set: |o, n| o.dirty_decay_ms = n as isize },
    ),
    row(
        "muzzy_decay_ms",
        Kind::Signed { min: -1, max: DECAY_MAX, set: |o, n| o.muzzy_decay_ms = n as isize },
    ),
    row(
        "limit_soft",
        Kind::Signed { min: -1, max: i64::MAX, set: |o, n| o.limit_soft = n as isize },
    ),
    row(
        "limit_hard",
        Kind::Unsigned {
            min: 0,
            max: i64::MAX as u64,
            clip: false,
            set: |o, n| o.limit_hard = n as usize,
        },
    ),
    row("percpu_arena", Kind::Word(&["disabled", "percpu", "phycpu"], set_percpu_arena)),
    row("background_thread", Kind::Bool(set_background_thread)),
    row("background_thread_auto", Kind::Bool(|o, on| o.background_thread_auto = on)),
    row(
        "max_background_threads",
        Kind::Unsigned {
            min: 1,
            max: 4095,
            clip: true,
            set: |o, n| o.max_background_threads = n as usize,
        },
    ),
    row("narenas", Kind::UnsignedOrDefault { min: 1, max: 4094, set: |o, n| o.narenas = n as u32 }),
    row("narenas_ratio", Kind::Fraction(|o, ratio| o.narenas_ratio = ratio)),
    row(
        "lg_extent_max_active_fit",
        Kind::Unsigned {
            min: 0,
            max: 64,
            clip: false,
            set: |o, n| o.lg_extent_max_active_fit = n as u32,
        },
    ),
    row(
        "calloc_madvise_threshold",
        Kind::Unsigned {
            min: 0,
            max: 1 << 47,
            clip: false,
            set: |o, n| o.calloc_madvise_threshold = n as usize,
        },
    ),
    row("zero_realloc", Kind::Word(&["alloc", "free", "abort"], set_zero_realloc)),
    row("junk", Kind::Word(&["false", "alloc", "free", "true"], set_junk)),
    row("zero", Kind::Bool(|o, on| o.zero = on)),
    row(
        "guarded_sample",
        Kind::Unsigned {
            min: 0,
            max: 1 << 32,
            clip: false,
            set: |o, n| o.guarded_sample = n as usize,
        },
    ),
    row("hardened", Kind::Bool(|o, on| o.hardened = on)),
    row("sized_delete", Kind::Bool(|o, on| o.sized_delete = on)),
    none("cache_oblivious", Shape::Bool),
    none("trust_madvise", Shape::Bool),
    none("huge_arena_pac_thp", Shape::Bool),
    row("metadata_thp", Kind::Word(&["disabled", "auto", "always"], set_metadata_thp)),
    row("retain", Kind::Bool(|o, on| o.retain = on)),
    row("dss", Kind::Word(&["disabled", "primary", "secondary"], set_dss)),
    none("bin_shards", Shape::Any),
    none("mutex_max_spin", Shape::Number),
    none("process_madvise_max_batch", Shape::Number),
    none("utrace", Shape::Bool),
    none("experimental_infallible_new", Shape::Bool),
    none("experimental_tcache_gc", Shape::Bool),
    none("lg_tcache_nslots_mul", Shape::Number),
    none("tcache_nslots_small_min", Shape::Number),
    none("tcache_nslots_small_max", Shape::Number),
    none("tcache_nslots_large", Shape::Number),
    none("tcache_gc_delay_bytes", Shape::Number),
    none("lg_tcache_flush_small_div", Shape::Number),
    none("lg_tcache_flush_large_div", Shape::Number),
    none("debug_double_free_max_scan", Shape::Number),
    none("oversize_threshold", Shape::Number),
    none("hpa", Shape::Bool),
    none("hpa_slab_max_alloc", Shape::Number),
    none("hpa_hugification_threshold", Shape::Number),
    none("hpa_hugification_threshold_ratio", Shape::Any),
    none("hpa_hugify_delay_ms", Shape::Number),
    none("hpa_hugify_sync", Shape::Bool),
    none("hpa_min_purge_interval_ms", Shape::Number),
    none("experimental_hpa_max_purge_nhp", Shape::Number),
    none("experimental_hpa_start_huge_if_thp_always", Shape::Bool),
    none("experimental_hpa_enforce_hugify", Shape::Bool),
    none("hpa_purge_threshold", Shape::Number),
    none("hpa_purge_threshold_ratio", Shape::Any),
    none("hpa_min_purge_delay_ms", Shape::Number),
    none("hpa_hugify_style", Shape::Words(&["auto", "none", "eager", "lazy"])),
    none("hpa_dirty_mult", Shape::Any),
    none("hpa_sec_nshards", Shape::Number),
    none("hpa_sec_max_alloc", Shape::Number),
    none("hpa_sec_max_bytes", Shape::Number),
    none("slab_sizes", Shape::Any),
    row("prof", Kind::Bool(|o, on| o.prof = on)),
    row("prof_prefix", Kind::Text(prof_prefix::set_option)),
    row("prof_active", Kind::Bool(|o, on| o.prof_active = on)),
    row("prof_thread_active_init", Kind::Bool(|o, on| o.prof_thread_active_init = on)),
    row(
        "lg_prof_sample",
        Kind::Unsigned { min: 0, max: 63, clip: true, set: |o, n| o.lg_prof_sample = n as u32 },
    ),
    row(
        "prof_seed",
        Kind::Unsigned { min: 0, max: u64::MAX, clip: false, set: |o, n| o.prof_seed = n },
    ),
    row("prof_accum", Kind::Bool(|o, on| o.prof_accum = on)),
    row(
        "prof_bt_max",
        Kind::Unsigned { min: 1, max: 256, clip: true, set: |o, n| o.prof_bt_max = n as u32 },
    ),
    row(
        "lg_prof_interval",
        Kind::Signed { min: -1, max: 63, set: |o, n| o.lg_prof_interval = n as i32 },
    ),
    row("prof_gdump", Kind::Bool(|o, on| o.prof_gdump = on)),
    row("prof_sys_thread_name", Kind::Bool(|o, on| o.prof_sys_thread_name = on)),
    row("prof_stats", Kind::Bool(|o, on| o.prof_stats = on)),
    row("prof_final", Kind::Bool(|o, on| o.prof_final = on)),
    row("prof_format", Kind::Word(&["heap_v2", "pprof"], set_prof_format)),
    row("mprof", Kind::Bool(|o, on| o.mprof = on)),
    row("monitor", Kind::Bool(|o, on| o.monitor = on)),
    row("prof_leak", Kind::Bool(|o, on| o.prof_leak = on)),
    row("prof_leak_error", Kind::Bool(|o, on| o.prof_leak_error = on)),
    row("prof_libgcc", Kind::Bool(|o, on| o.prof_libgcc = on)),
    row("prof_log", Kind::Bool(|o, on| o.prof_log = on)),
    row("prof_pid_namespace", Kind::Bool(|o, on| o.prof_pid_namespace = on)),
    row(
        "prof_recent_alloc_max",
        Kind::Signed { min: -1, max: i64::MAX, set: |o, n| o.prof_recent_alloc_max = n as isize },
    ),
    row(
        "prof_time_resolution",
        Kind::Word(&["default", "high"], |o, index| o.prof_time_high = index == 1),
    ),
    row("prof_unbias", Kind::Bool(|o, on| o.prof_unbias = on)),
    none("log", Shape::Any),
    row("dlopen_deepbind", Kind::Word(&["drop", "warn", "keep"], set_dlopen_deepbind)),
    row("thp", Kind::Word(&["default", "always", "never"], set_thp)),
    none("lg_san_uaf_align", Shape::Number),
    none("san_guard_small", Shape::Number),
    none("san_guard_large", Shape::Number),
    none("disable_large_size_classes", Shape::Bool),
];

/// Returns a size of at most [`MAX_CACHED`] rounded up to a size class; 0 stays.
fn cached_class(size: usize) -> usize {
    if size == 0 { 0 } else { class_round(size).unwrap_or(size) }
}

/// Sets the option, of which `false` also forbids the temporary background thread.
fn set_background_thread(options: &mut Options, on: bool) {
    options.background_thread = on;
    options.background_thread_auto &= on;
}

fn set_percpu_arena(options: &mut Options, word: usize) {
    options.percpu_arena = match word {
        0 => PercpuArena::Disabled,
        1 => PercpuArena::Percpu,
        _ => PercpuArena::Phycpu,
    };
}

fn set_zero_realloc(options: &mut Options, word: usize) {
    options.zero_realloc = match word {
        0 => ZeroRealloc::Alloc,
        1 => ZeroRealloc::Free,
        _ => ZeroRealloc::Abort,
    };
}

fn set_prof_format(options: &mut Options, word: usize) {
    options.prof_format = if word == 0 { ProfFormat::HeapV2 } else { ProfFormat::Pprof };
}

fn set_dss(options: &mut Options, word: usize) {
    options.dss = match word {
        0 => Dss::Disabled,
        1 => Dss::Primary,
        _ => Dss::Secondary,
    };
}

fn set_thp(options: &mut Options, word: usize) {
    options.thp = match word {
        0 => Thp::Default,
        1 => Thp::Always,
        _ => Thp::Never,
    };
}

fn set_metadata_thp(options: &mut Options, word: usize) {
    options.metadata_thp = match word {
        0 => MetadataThp::Disabled,
        1 => MetadataThp::Auto,
        _ => MetadataThp::Always,
    };
}

fn set_dlopen_deepbind(options: &mut Options, word: usize) {
    options.dlopen_deepbind = match word {
        0 => DlopenDeepbind::Drop,
        1 => DlopenDeepbind::Warn,
        _ => DlopenDeepbind::Keep,
    };
}

fn set_junk(options: &mut Options, word: usize) {
    options.junk = Junk { alloc: word & 1 != 0, free: word & 2 != 0 };
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn every_option_of_the_specification_has_exactly_one_row() {
        let mut names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(before, names.len());
        // The 90 rows of jemalloc's own table (5.0 to 5.3.1), and the rows of this allocator.
        let ours = [
            "allocatedp_live",
            "background_thread_auto",
            "dlopen_deepbind",
            "guarded_sample",
            "hardened",
            "limit_hard",
            "limit_soft",
            "monitor",
            "mprof",
            "prof_format",
            "prof_libgcc",
            "prof_seed",
            "sized_delete",
        ];
        assert_eq!(names.len(), 90 + ours.len());
        assert!(ours.iter().all(|name| names.contains(name)));
    }
}
