//! Regions of vmalloc(3), by name.
use crate::metrics::family::Source::{Made, Sum};
use crate::metrics::family::{Def, Make, gauge};
use crate::metrics::group::Group::Regions;
use crate::metrics::kinds::Unit;
use crate::metrics::regions;

/// Returns a gauge by name.
const fn named(name: &'static str, unit: Unit, make: Make, keys: &'static [&'static str]) -> Def {
    gauge(name, unit, Regions, Made(&["region"], make, keys))
}

pub(super) static REGIONS: &[Def] = &[
    gauge("lumalloc_regions", Unit::None, Regions, Sum(&["vm.regions"])),
    named("lumalloc_region_open", Unit::None, regions::open, &["vm.region.<i>.name"])
        .says("Regions that are open, by name."),
    named(
        "lumalloc_region_busy_blocks",
        Unit::None,
        regions::busy_blocks,
        &["vm.region.<i>.n_busy"],
    )
    .says("Blocks that the program has of regions."),
    named(
        "lumalloc_region_busy_bytes",
        Unit::Bytes,
        regions::busy_bytes,
        &["vm.region.<i>.s_busy"],
    )
    .says("Bytes in blocks that the program has of regions."),
    named(
        "lumalloc_region_free_blocks",
        Unit::None,
        regions::free_blocks,
        &["vm.region.<i>.n_free"],
    )
    .says("Free blocks in regions."),
    named(
        "lumalloc_region_free_bytes",
        Unit::Bytes,
        regions::free_bytes,
        &["vm.region.<i>.s_free"],
    )
    .says("Bytes in free blocks of regions."),
    named(
        "lumalloc_region_extent_bytes",
        Unit::Bytes,
        regions::extent_bytes,
        &["vm.region.<i>.extent"],
    )
    .says("Bytes in segments of regions, their own words among them."),
    named("lumalloc_region_segments", Unit::None, regions::segments, &["vm.region.<i>.n_seg"])
        .says("Segments of regions."),
    named(
        "lumalloc_region_dead_holders",
        Unit::None,
        regions::dead_holders,
        &["vm.region.<i>.holder", "vm.region.<i>.holder_alive"],
    )
    .says("Regions of several processes whose lock a process has that ended."),
];
