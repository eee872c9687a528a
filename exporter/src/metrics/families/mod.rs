//! The table of all families.
mod arenas;
mod detail;
mod general;
mod memory;
mod regions;
mod work;

use super::family::Def;

/// Every family, in the order in which families are served. Families of one collector are
/// neighbours.
pub(super) static TABLE: &[&[Def]] = &[
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

#[cfg(test)]
mod excuses;
