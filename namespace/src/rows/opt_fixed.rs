//! `opt.*` that cannot be set: the choices of jemalloc that are fixed here, and features that are
//! not built in. The latter return `ENOENT`, as in a jemalloc without the feature.
use crate::row::Spec;
use crate::row_macros::{absent, ro};
use lumalloc::options;

/// A row of a fixed option.
macro_rules! fixed {
    ($name:literal, $kind:ident, $unit:ident, $value:expr, $help:literal) => {
        ro!(concat!("opt.", $name), $kind, $unit, |_| $value, $help)
    };
}

/// A row of an option whose feature is not built in.
macro_rules! none {
    ($name:literal, $kind:ident, $unit:ident, $help:literal) => {
        absent!(concat!("opt.", $name), $kind, $unit, c"r-", $help)
    };
}

/// The rows of `opt.*` for options without an effect.
pub static ROWS: &[Spec] = &[
    fixed!(
        "lg_tcache_max",
        Size,
        Log2,
        options::current().tcache_max.next_power_of_two().trailing_zeros() as usize,
        "largest size that threads cache, rounded up; opt.tcache_max is exact"
    )
    .deprecated(),
    fixed!(
        "cache_oblivious",
        Bool,
        None,
        false,
        "large blocks begin at a random line: they do not"
    ),
    fixed!("trust_madvise", Bool, None, false, "MADV_DONTNEED is trusted unseen on any system"),
    fixed!("hpa", Bool, None, false, "jemalloc's huge page allocator: another way is taken here"),
    fixed!(
        "disable_large_size_classes",
        Bool,
        None,
        false,
        "sizes above 32 KiB are rounded to pages only: they have four classes per doubling"
    ),
    fixed!(
        "debug_double_free_max_scan",
        Unsigned,
        Count,
        0,
        "cached blocks searched at a free: a bit for each block tells it without a search"
    ),
    none!("utrace", Bool, None, "trace calls with utrace(2), which Linux has not"),
    none!("lg_san_uaf_align", Ssize, Log2, "alignment of what is checked for use after free"),
];
