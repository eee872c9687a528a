//! The table: one [`Spec`] per key, in files by branch.
//!
//! A new key is one more row in the file of its branch: see `docs/new-key.md`. Rows may stand in
//! any order; keys are printed in the order in which their components are first seen. If
//! jemalloc(3) has a name, the key has its type and meaning.
use crate::row::{Index, Spec};

#[allow(unsafe_code, reason = "the caller answers for its pointers")]
pub mod arena;
#[allow(unsafe_code, reason = "the caller answers for its hooks")]
pub mod arenas;
pub mod background_thread;
pub mod config;
pub mod experimental;
pub mod fill;
#[allow(unsafe_code, reason = "the caller answers for its function")]
pub mod limit;
pub mod monitor;
pub mod opt;
pub mod opt_conf;
pub mod opt_fixed;
pub mod prof;
#[allow(unsafe_code, reason = "the caller answers for its functions")]
pub mod prof_hooks;
#[allow(unsafe_code, reason = "the caller answers for its function")]
pub mod prof_recent;
#[allow(unsafe_code, reason = "the caller answers for its pointers")]
pub mod prof_stats;
pub mod root;
pub mod self_description;
pub mod stats;
pub mod stats_arenas;
pub mod stats_rss;
pub mod stats_work;
pub mod tcache;
pub mod thread;
pub mod vm;
#[allow(unsafe_code, reason = "the caller answers for its pointers")]
pub mod vm_region;

/// Every key, by file.
pub static ROWS: &[&[Spec]] = &[
    root::ROWS,
    background_thread::ROWS,
    thread::ROWS,
    tcache::ROWS,
    config::ROWS,
    opt::ROWS,
    opt_fixed::ROWS,
    opt_conf::ROWS,
    arena::ROWS,
    arenas::ROWS,
    fill::ROWS,
    limit::ROWS,
    prof::ROWS,
    monitor::ROWS,
    prof_hooks::ROWS,
    prof_recent::ROWS,
    prof_stats::ROWS,
    prof_stats::LEXTENT_ROWS,
    stats::ROWS,
    stats::BACKGROUND_THREAD,
    stats::MAX_PER_BG_THD,
    stats::CTL,
    stats::PROF,
    stats::REGISTRY,
    stats::ARENAS,
    stats_rss::ROWS,
    stats_work::ROWS,
    stats_arenas::ROWS,
    stats_arenas::BIN,
    stats_arenas::EXTENTS_DIRTY,
    stats_arenas::BASE,
    stats_arenas::TCACHE_LIST,
    stats_arenas::LARGE,
    stats_arenas::EXTENT_AVAIL,
    stats_arenas::EXTENTS_MUZZY,
    stats_arenas::EXTENTS_RETAINED,
    stats_arenas::DECAY_DIRTY,
    stats_arenas::DECAY_MUZZY,
    vm::ROWS,
    vm_region::ROWS,
    vm_region::REGION,
    experimental::ROWS,
    self_description::ROWS,
];

/// Which indices may stand in names: a rule for each path that ends in `<…>`.
pub static INDICES: &[&[Index]] = &[
    arena::INDICES,
    arenas::INDICES,
    prof_stats::INDICES,
    stats_arenas::INDICES,
    experimental::INDICES,
    vm_region::INDICES,
];

#[cfg(test)]
mod tests {
    use crate::key_table::rows;
    use crate::tree;
    use crate::{Access, Type, Unit, VERSION};

    #[test]
    fn each_row_reads_a_value_of_its_type() {
        for row in rows() {
            if let Some(read) = row.access.reader()
                && let Ok(value) = read(&[0; tree::MAX_DEPTH])
            {
                assert!(row.kind.holds(value), "{}: {value:?}", row.name());
            }
            if matches!(row.access, Access::Trigger(_) | Access::UnsafeTrigger(_)) {
                assert_eq!((row.kind, row.unit), (Type::Void, Unit::None), "{}", row.name());
            } else if !matches!(row.access, Access::Absent(_)) {
                assert_ne!(row.kind, Type::Void, "{}", row.name());
            }
        }
    }

    #[test]
    fn each_row_explains_itself_in_one_line() {
        for row in rows() {
            let help = row.help().to_str().unwrap();
            assert!(help.len() > 10 && !help.contains('\n'), "{}", row.name());
        }
    }

    #[test]
    fn the_version_is_the_core_s() {
        assert_eq!(VERSION.to_str().unwrap(), lumalloc::VERSION);
    }
}
