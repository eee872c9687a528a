//! The table of all families.
mod arenas;
mod detail;
mod general;
mod memory;
mod regions;
mod work;

use super::family::{Def, Family};
use std::sync::LazyLock;

/// Every family, in the order in which families are served. Families of one collector are
/// neighbours.
static TABLE: &[&[Def]] = &[
    general::BUILD,
    general::SETTINGS,
    memory::MEMORY,
    memory::PROCESS,
    work::TRAFFIC,
    work::WORK,
    work::LOCKS,
    work::PURGING,
    arenas::NAMED,
    regions::REGIONS,
    arenas::EACH,
    detail::BINS,
    detail::LEXTENTS,
    detail::EXTENTS,
    detail::MUTEXES,
    detail::ENGINE,
    general::EXPORTER,
];

static ALL: LazyLock<Vec<Family>> =
    LazyLock::new(|| TABLE.iter().copied().flatten().map(Def::family).collect());

/// Returns every family, in the order in which families are served.
#[must_use]
pub fn families() -> &'static [Family] {
    &ALL
}

#[cfg(test)]
mod excuses;
