//! Every key is in a family, or has a reason not to be in one.
use crate::metrics::families;
use lumalloc_namespace::facts;

/// Patterns of names (`*` is anything), with the reason why no family has these keys.
const EXCUSES: &[(&str, &str)] = &[
    ("approximate_stats.active", "lumalloc_active_bytes says it exactly"),
    ("arena.<i>.decay", "an action"),
    ("arena.<i>.destroy", "an action"),
    ("arena.<i>.purge", "an action"),
    ("arena.<i>.reserve", "a setting that nobody watches"),
    ("arena.<i>.reset", "an action"),
    ("arena.<i>.dirty_decay_ms", "as stats.arenas.<i>.dirty_decay_ms"),
    ("arena.<i>.muzzy_decay_ms", "as stats.arenas.<i>.muzzy_decay_ms"),
    ("arena.<i>.dss", "as stats.arenas.<i>.dss"),
    ("arena.<i>.extent_hooks", "a pointer"),
    ("arena.<i>.initialized", "only arenas that are there are shown"),
    ("arena.<i>.oversize_threshold", "a setting that nobody watches"),
    ("arena.<i>.limit_exempt", "a setting that nobody watches"),
    ("arena.<i>.profiled", "a setting that nobody watches"),
    ("arena.<i>.retain_grow_limit", "a setting that nobody watches"),
    ("arenas.bin.<i>.nshards", "always 1"),
    ("arenas.create", "an action"),
    ("arenas.lookup", "a question about a pointer"),
    ("arenas.nhbins", "a fact of the build"),
    ("arenas.tcache_max", "as opt.tcache_max"),
    ("config.cache_oblivious", "a fact of the build"),
    ("background_thread_auto", "a setting that nobody watches"),
    ("config.effective", "too long for a label: the info has the options that differ"),
    ("config.fill", "always true"),
    ("config.lazy_lock", "always false"),
    ("config.malloc_conf", "always empty"),
    ("config.opt_safety_checks", "always true"),
    ("config.prof_*", "always false: stacks are found by unwind tables"),
    ("config.stats", "always true"),
    ("config.thp", "deprecated"),
    ("config.utrace", "always false"),
    ("config.xmalloc", "always true"),
    ("ctl.*", "the namespace describes itself"),
    ("experimental.*", "may change or go"),
    ("limit.callback", "a pointer"),
    ("limit.hard_forced", "written only: read as limit.hard"),
    ("max_background_threads", "one is all there ever is"),
    ("opt.*", "a setting of the start: the info has those that differ between programs"),
    ("monitor.recordings", "tells one recording from another; monitor.active is watched"),
    ("monitor.start", "an action"),
    ("monitor.stop", "an action"),
    ("mprof.autosave", "a setting that nobody watches"),
    ("mprof.restart", "an action"),
    ("mprof.stop", "an action"),
    ("prof.dump", "an action"),
    ("prof.gdump", "a setting that nobody watches"),
    ("prof.interval", "a setting that nobody watches"),
    ("prof.lg_sample", "a setting that nobody watches"),
    ("prof.log_*", "an action"),
    ("prof.prefix", "written only"),
    ("prof.reset", "an action"),
    ("prof.stats.*", "with opt.prof_stats only: the profile has the same samples"),
    ("prof.write_*", "an action"),
    ("prof.thread_active_init", "a setting that nobody watches"),
    ("stats.arenas.<i>.bins.<j>.mutex.max_num_thds", "of bins, waits in all are enough"),
    ("stats.arenas.<i>.bins.<j>.mutex.max_wait_time", "of bins, waits in all are enough"),
    ("stats.arenas.<i>.bins.<j>.mutex.num_owner_switch", "of bins, waits in all are enough"),
    ("stats.arenas.<i>.internal", "always 0"),
    ("stats.arenas.<i>.kept_bytes", "stats.thread_caches.kept_bytes, of all arenas"),
    ("stats.arenas.<i>.slab_bytes", "of bins, under collect[]=bins"),
    ("stats.arenas.<i>.slab_used_bytes", "of bins, under collect[]=bins"),
    ("stats.holes", "a part of stats.retained"),
    ("stats.arenas.<i>.metadata_rtree", "stats.metadata_rtree: the first arena's alone"),
    ("stats.arenas.<i>.metadata_thp", "stats.metadata_thp: the first arena's alone"),
    ("stats.arenas.<i>.mutexes.decay_*", "0: shown under extents_dirty"),
    ("stats.arenas.<i>.mutexes.extent_avail.*", "0: shown under extents_dirty"),
    ("stats.arenas.<i>.mutexes.extents_muzzy.*", "0: shown under extents_dirty"),
    ("stats.arenas.<i>.mutexes.extents_retained.*", "0: shown under extents_dirty"),
    ("stats.arenas.<i>.mutexes.large.*", "0: shown under extents_dirty"),
    ("stats.mutexes.prof.*", "always 0: the profiler has no lock that allocations wait for"),
    ("stats.mutexes.reset", "an action"),
    ("stats.remote.pending_bytes", "stats.rss.remote: no more than is free in slabs"),
    ("stats.rss.allocated", "as stats.allocated"),
    ("stats.rss.metadata", "as stats.metadata"),
    ("stats.rss.process", "read from the system at the scrape"),
    ("stats.rss.thread_caches", "as stats.thread_caches.bytes"),
    ("stats.rss.untouched", "the difference of resident and heap resident"),
    ("tcache.*", "actions"),
    ("thread.*", "of the calling thread"),
    ("vm.lookup", "a question about a pointer"),
    ("vm.nregions", "numbers of regions, not regions"),
    ("vm.region.<i>.address", "an address"),
    ("vm.region.<i>.check", "an action"),
    ("vm.region.<i>.compact", "an action"),
    ("vm.region.<i>.discipline", "a fact of one region"),
    ("vm.region.<i>.file", "a fact of one region"),
    ("vm.region.<i>.flags", "a fact of one region"),
    ("vm.region.<i>.m_busy", "regions of one name have no largest block together"),
    ("vm.region.<i>.m_free", "regions of one name have no largest block together"),
    ("vm.region.<i>.method", "a fact of one region"),
    ("vm.stat.extent", "stats.mapped and stats.retained"),
    ("vm.stat.m_busy", "of vmalloc(3): sizes are in lumalloc_allocation_size_bytes"),
    ("vm.stat.m_free", "of vmalloc(3): sizes are under collect[]=extents"),
    ("vm.stat.mode", "of vmalloc(3): a setting of regions"),
    ("vm.stat.n_free", "of vmalloc(3): unused runs are under collect[]=extents"),
    ("vm.stat.n_seg", "of vmalloc(3): addresses are in lumalloc_mapped_bytes"),
    ("vm.stat.s_busy", "as stats.allocated"),
    ("vm.stat.s_free", "what stats.allocated leaves of vm.stat.extent"),
];

/// Whether a name fits a pattern.
fn is_of(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

#[test]
fn every_key_is_in_a_family_or_excused() {
    let shown = |name: &str| families().iter().any(|family| family.keys.contains(&name));
    let excused = |name: &str| EXCUSES.iter().any(|(pattern, _)| is_of(pattern, name));
    let forgotten: Vec<&str> =
        facts().iter().map(|row| row.name).filter(|name| !shown(name) && !excused(name)).collect();
    assert_eq!(forgotten, [""; 0], "neither in a family nor excused");
    for (pattern, reason) in EXCUSES {
        let mut names = facts().iter().map(|row| row.name).filter(|name| is_of(pattern, name));
        assert!(names.any(|name| !shown(name)), "nothing needs the excuse {pattern}");
        assert!(reason.len() > 5, "{pattern}");
        let exact = !pattern.ends_with('*');
        assert!(!exact || !shown(pattern), "{pattern} is shown");
    }
}

#[test]
fn families_name_keys_that_there_are() {
    for family in families() {
        for key in &family.keys {
            let row = facts().iter().find(|row| row.name == *key);
            assert!(row.is_some(), "{}: {key}", family.name);
        }
        let made_here = family.keys.is_empty();
        assert!(made_here || family.help.len() > 10, "{}: {}", family.name, family.help);
    }
}
