//! Facts of the build, settings, and the exporter itself.
use crate::metrics::family::Source::{Made, Own, Sum, Texts};
use crate::metrics::family::{Def, counter, gauge, info};
use crate::metrics::group::Group::{Build, Exporter, Settings};
use crate::metrics::kinds::Unit;
use crate::metrics::made;

pub(super) static BUILD: &[Def] = &[
    info(
        "lumalloc_build_info",
        Build,
        Texts(&[
            ("version", "version"),
            ("debug", "config.debug"),
            ("prof", "config.prof"),
            ("page", "arenas.page"),
            ("quantum", "arenas.quantum"),
            ("hugepage", "arenas.hugepage"),
        ]),
    )
    .says("The allocator that is there, and how it was built."),
    info(
        "lumalloc_config_info",
        Build,
        Texts(&[
            ("source", "config.source"),
            ("narenas", "opt.narenas"),
            ("percpu_arena", "opt.percpu_arena"),
            ("tcache", "opt.tcache"),
            ("tcache_max", "opt.tcache_max"),
            ("hardened", "opt.hardened"),
            ("guarded_sample", "opt.guarded_sample"),
            ("retain", "opt.retain"),
            ("thp", "opt.thp"),
            ("metadata_thp", "opt.metadata_thp"),
            ("dss", "opt.dss"),
            ("junk", "opt.junk"),
            ("zero", "opt.zero"),
            ("xmalloc", "opt.xmalloc"),
        ]),
    )
    .says("What was set at the start, and in which option strings (config.source)."),
    gauge(
        "lumalloc_config_has_ignored",
        Unit::None,
        Build,
        Made(&[], made::has_ignored, &["config.ignored"]),
    )
    .says("1 if something in the option strings was ignored: config.ignored says what."),
    gauge(
        "lumalloc_start_time_seconds",
        Unit::Seconds,
        Build,
        Made(&[], made::start_time, &["stats.arenas.0.uptime"]),
    )
    .says("When the allocator started, in seconds since 1970."),
];

pub(super) static SETTINGS: &[Def] = &[
    gauge(
        "lumalloc_soft_limit_bytes",
        Unit::Bytes,
        Settings,
        Made(&[], made::soft_limit, &["limit.soft"]),
    )
    .says("Bytes with memory at which unused pages are purged; +Inf: no limit."),
    gauge(
        "lumalloc_hard_limit_bytes",
        Unit::Bytes,
        Settings,
        Made(&[], made::hard_limit, &["limit.hard"]),
    )
    .says("Bytes held beyond which allocations fail; +Inf: no limit."),
    gauge("lumalloc_held_bytes", Unit::Bytes, Settings, Sum(&["limit.held"]))
        .says("Bytes held, as limit.hard counts them: with free pages inside slabs."),
    gauge("lumalloc_dirty_decay_seconds", Unit::Seconds, Settings, Sum(&["arenas.dirty_decay_ms"]))
        .says("How long new arenas keep unused dirty pages; +Inf: for ever."),
    gauge("lumalloc_muzzy_decay_seconds", Unit::Seconds, Settings, Sum(&["arenas.muzzy_decay_ms"]))
        .says("How long new arenas keep unused muzzy pages; +Inf: for ever."),
    gauge("lumalloc_background_thread_enabled", Unit::None, Settings, Sum(&["background_thread"]))
        .says("1 if a background thread is kept; a temporary one does not count."),
    gauge("lumalloc_profile_active", Unit::None, Settings, Sum(&["prof.active"]))
        .says("1 if the heap profiler samples the process."),
    counter("lumalloc_profile_samples_total", Unit::None, Settings, Sum(&["prof.samples.taken"]))
        .says("Allocations that became samples of the heap profiler."),
    counter(
        "lumalloc_profile_missed_samples_total",
        Unit::None,
        Settings,
        Sum(&["prof.samples.missed"]),
    )
    .says("Allocations that were to become samples and did not, for lack of memory."),
    gauge("lumalloc_profile_live_samples", Unit::None, Settings, Sum(&["prof.samples.live"]))
        .says("Samples of the heap profiler that are in use."),
    gauge("lumalloc_profile_stacks", Unit::None, Settings, Sum(&["prof.samples.stacks"]))
        .says("Different stacks of samples."),
    gauge("lumalloc_profile_bytes", Unit::Bytes, Settings, Sum(&["prof.samples.bytes"]))
        .says("Bytes of the stored stacks, a part of the metadata."),
    gauge("lumalloc_monitor_active", Unit::None, Settings, Sum(&["monitor.active"]))
        .says("1 if the heap monitor writes each allocation and each free to a file."),
    gauge("lumalloc_monitor_events", Unit::None, Settings, Sum(&["monitor.events"]))
        .says("Events that the heap monitor wrote, in the present recording or the last one."),
    gauge("lumalloc_monitor_dropped_events", Unit::None, Settings, Sum(&["monitor.dropped"]))
        .says("Events that the heap monitor could not write, because the file refused them."),
    gauge("lumalloc_arenas_limit", Unit::None, Settings, Sum(&["arenas.narenas"])).says(
        "Indices that arenas may have: automatic ones below their limit, created ones above.",
    ),
    gauge("lumalloc_automatic_arenas_limit", Unit::None, Settings, Sum(&["vm.regmax"]))
        .says("Most automatic arenas beside the first."),
    gauge(
        "lumalloc_fill_enabled",
        Unit::None,
        Settings,
        Made(&["fill"], made::fills, &["fill.junk_allocated", "fill.junk_freed", "fill.zero"]),
    )
    .says("1 if blocks are filled: with junk when allocated or freed, or with zeros."),
];

pub(super) static EXPORTER: &[Def] = &[
    gauge("lumalloc_collector_success", Unit::None, Exporter, Own(&["collector"]))
        .says("1 if all families of the collector could be read."),
    gauge("lumalloc_collector_duration_seconds", Unit::Seconds, Exporter, Own(&["collector"]))
        .says("How long reading the families of the collector took."),
    gauge("lumalloc_snapshot_duration_seconds", Unit::Seconds, Exporter, Own(&[]))
        .says("How long the snapshot took that all other numbers are of."),
    gauge("lumalloc_snapshot_consistent", Unit::None, Exporter, Own(&[]))
        .says("1 if all numbers are of one snapshot; 0 if others took new ones, or arenas ended."),
    counter("lumalloc_snapshots_total", Unit::None, Exporter, Sum(&["epoch"]))
        .says("Snapshots that were taken, by anybody."),
    counter("lumalloc_exporter_scrapes_total", Unit::None, Exporter, Own(&[]))
        .says("Times that metrics were read."),
    counter("lumalloc_exporter_cpu_seconds_total", Unit::Seconds, Exporter, Own(&[]))
        .says("CPU time that reading metrics took, encoding aside, up to the scrape before."),
    counter(
        "lumalloc_exporter_requests_total",
        Unit::None,
        Exporter,
        Own(&["path", "method", "status"]),
    )
    .says("Answers of the exporter."),
    counter("lumalloc_exporter_connections_total", Unit::None, Exporter, Own(&[]))
        .says("Connections that the exporter took."),
    counter("lumalloc_exporter_connections_ended_total", Unit::None, Exporter, Own(&["reason"]))
        .says("Connections that the exporter ended of itself."),
    counter("lumalloc_exporter_received_bytes_total", Unit::Bytes, Exporter, Own(&[]))
        .says("Bytes that the exporter read from clients."),
    counter("lumalloc_exporter_sent_bytes_total", Unit::Bytes, Exporter, Own(&[]))
        .says("Bytes that the exporter wrote to clients."),
    gauge("lumalloc_arenas_in_overflow", Unit::None, Exporter, Own(&[]))
        .says("Named arenas that are counted as overflow, for want of label values."),
];
