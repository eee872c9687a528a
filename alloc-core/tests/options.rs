//! Option strings, in children: messages, the order of sources, and the effects of options.
#![allow(unsafe_code)]

mod common;

use common::child::{Outcome, play, play_well, scenario, tell, without_trail};
use lumalloc::options::{ZeroRealloc, current};
use lumalloc::{control, observe, raw};

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("show") => show(),
        Some("work") => work(),
        Some("no_tcache") => no_tcache(),
        Some("small_tcache") => small_tcache(),
        Some("at_once") => at_once(),
        Some("never") => never(),
        Some("one_arena") => one_arena(),
        Some("xmalloc") => xmalloc(),
        Some("xmalloc_at_first") => assert!(raw::malloc_aligned(1 << 60, 64).is_null()),
        Some("arenas") => arenas(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Panics if there is `/etc/malloc.conf`, because it is a source too.
#[track_caller]
fn no_link() {
    let link = std::fs::symlink_metadata("/etc/malloc.conf");
    assert!(link.is_err(), "/etc/malloc.conf sets options: these tests need a machine without it");
}

// --- messages ----------------------------------------------------------------------------------

/// The messages to an option string, each without `<lumalloc>: ` and `(LUMALLOC_CONF)`.
#[track_caller]
fn messages(conf: &str) -> Vec<String> {
    let outcome = play("show", &[("LUMALLOC_CONF", conf)]);
    assert!(outcome.success, "{outcome:#?}");
    let bare = |line: &str| {
        let line = line.strip_prefix("<lumalloc>: ").expect("our name");
        let (said, taken) = line.split_once(" (LUMALLOC_CONF)").expect("the source");
        format!("{said}{taken}")
    };
    outcome.stderr.lines().map(bare).collect()
}

#[test]
fn every_kind_of_bad_option_has_its_message() {
    no_link();
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("tcache:true", &[]),
        ("nonsense:1", &["Invalid conf pair: nonsense:1"]),
        ("nonsense:", &["Invalid conf pair: nonsense:"]),
        ("tcache:yes", &["Invalid conf value: tcache:yes"]),
        ("tcache:", &["Invalid conf value: tcache:"]),
        ("tcache:True", &["Invalid conf value: tcache:True"]),
        ("narenas:many", &["Invalid conf value: narenas:many"]),
        ("narenas:0", &["Out-of-range conf value: narenas:0"]),
        ("narenas:4095", &["Out-of-range conf value: narenas:4095, 4094 is taken"]),
        ("narenas:default", &[]),
        ("guarded_sample:-1", &["Out-of-range conf value: guarded_sample:-1"]),
        (
            "narenas:99999999999999999999",
            &["Out-of-range conf value: narenas:99999999999999999999"],
        ),
        ("narenas:4K", &["Invalid conf value: narenas:4K"]),
        ("dirty_decay_ms:-2", &["Out-of-range conf value: dirty_decay_ms:-2"]),
        ("zero_realloc:maybe", &["Invalid conf value: zero_realloc:maybe"]),
        ("narenas_ratio:x", &["Invalid conf value: narenas_ratio:x"]),
        ("tcache_ncached_max:8-16", &["Invalid conf value: tcache_ncached_max:8-16"]),
        ("tcache", &["Conf string ends with key -- tcache"]),
        ("xmalloc:true,tcache", &["Conf string ends with key -- tcache"]),
        ("xmalloc:false,", &["Conf string ends with comma -- xmalloc:false,"]),
        (",", &["Malformed conf string -- ,"]),
        ("a b:1", &["Malformed conf string -- a b:1"]),
        ("tcache=true", &["Malformed conf string -- tcache=true"]),
        ("tcache:true;narenas:1", &["Invalid conf value: tcache:true;narenas:1"]),
        ("utrace:true", &["conf option has no effect: utrace:true"]),
        ("hpa:true", &["conf option has no effect: hpa:true"]),
        ("prof:maybe", &["Invalid conf value: prof:maybe"]),
        ("experimental_zzz:1", &["Invalid conf pair: experimental_zzz:1"]),
        (
            "nonsense:1,tcache:x,hpa:true",
            &[
                "Invalid conf pair: nonsense:1",
                "Invalid conf value: tcache:x",
                "conf option has no effect: hpa:true",
            ],
        ),
    ];
    for (conf, expected) in cases {
        assert_eq!(messages(conf), *expected, "{conf:?}");
    }
}

#[test]
fn each_message_names_its_source() {
    no_link();
    let outcome = play("show", &[("MALLOC_CONF", "one:1"), ("LUMALLOC_CONF", "two:2")]);
    let expected = "<lumalloc>: Invalid conf pair: one:1 (MALLOC_CONF)\n\
                    <lumalloc>: Invalid conf pair: two:2 (LUMALLOC_CONF)\n";
    assert!(outcome.success);
    assert_eq!(outcome.stderr, expected);
}

#[test]
fn confirm_conf_shows_what_was_read() {
    no_link();
    let environment = [("MALLOC_CONF", "narenas:2"), ("LUMALLOC_CONF", "confirm_conf:true,bad:1")];
    let outcome = play("show", &environment);
    let expected = "<lumalloc>: malloc_conf #1 (MALLOC_CONF): \"narenas:2\"\n\
                    <lumalloc>: -- Set conf value: narenas:2 (MALLOC_CONF)\n\
                    <lumalloc>: malloc_conf #2 (LUMALLOC_CONF): \"confirm_conf:true,bad:1\"\n\
                    <lumalloc>: -- Set conf value: confirm_conf:true (LUMALLOC_CONF)\n\
                    <lumalloc>: Invalid conf pair: bad:1 (LUMALLOC_CONF)\n";
    assert_eq!(outcome.stderr, expected);
}

// --- values and their order --------------------------------------------------------------------

/// Tells the parent every option in force.
fn show() {
    let options = current();
    let tell_one = |name: &str, value: &dyn std::fmt::Debug| tell(&format!("{name}={value:?}"));
    tell_one("abort", &options.abort);
    tell_one("xmalloc", &options.xmalloc);
    tell_one("stats_print", &(options.stats_print, &options.stats_print_opts));
    tell_one("stats_interval", &(options.stats_interval, &options.stats_interval_opts));
    tell_one("tcache_max", &options.tcache_max);
    tell_one("tcache_gc_incr_bytes", &options.tcache_gc_incr_bytes);
    tell_one("decay_ms", &(options.dirty_decay_ms, options.muzzy_decay_ms));
    tell_one("narenas", &options.narenas);
    tell_one("narenas_ratio", &options.narenas_ratio);
    tell_one("lg_extent_max_active_fit", &options.lg_extent_max_active_fit);
    tell_one("calloc_madvise_threshold", &options.calloc_madvise_threshold);
    tell_one("retain", &(options.retain, options.dss, options.thp, options.metadata_thp));
    assert!(options.zero_realloc != ZeroRealloc::Abort || !raw::malloc(1).is_null());
    tell_one("zero_realloc", &options.zero_realloc);
}

#[track_caller]
fn shown<'a>(outcome: &'a Outcome, name: &str) -> &'a str {
    let value = |line: &'a String| line.strip_prefix(name)?.strip_prefix('=');
    outcome.told.iter().find_map(value).unwrap_or_else(|| panic!("no {name}: {outcome:#?}"))
}

#[test]
fn values_arrive() {
    no_link();
    let cases = [
        ("", "narenas", "0"),
        ("", "tcache_max", "32768"),
        ("", "decay_ms", "(10000, 0)"),
        ("narenas:7", "narenas", "7"),
        ("narenas:0x10", "narenas", "16"),
        ("narenas:010", "narenas", "8"),
        ("narenas:7,narenas:8", "narenas", "8"),
        ("narenas:7,narenas:x", "narenas", "7"),
        ("nonsense:1,narenas:7", "narenas", "7"),
        ("narenas:7,", "narenas", "7"),
        ("dirty_decay_ms:-1", "decay_ms", "(-1, 0)"),
        ("tcache_max:0", "tcache_max", "0"),
        ("tcache_max:1000000", "tcache_max", "32768"),
        ("tcache_max:1000", "tcache_max", "1024"),
        ("tcache_max:1", "tcache_max", "8"),
        ("lg_tcache_max:0", "tcache_max", "8"),
        ("lg_tcache_max:12", "tcache_max", "4096"),
        ("narenas_ratio:0.5", "narenas_ratio", "32768"),
        ("zero_realloc:alloc", "zero_realloc", "Alloc"),
        ("zero_realloc:abort", "zero_realloc", "Abort"),
        ("abort:true", "abort", "true"),
        ("stats_print:true", "stats_print", "(true, \"\")"),
        ("stats_print_opts:?JgJmdablxehws!", "stats_print", "(false, \"Jgmdablxehws\")"),
        ("stats_interval:0,stats_interval_opts:J", "stats_interval", "(0, \"J\")"),
        ("tcache_gc_incr_bytes:1", "tcache_gc_incr_bytes", "1024"),
        ("lg_extent_max_active_fit:0", "lg_extent_max_active_fit", "0"),
        ("calloc_madvise_threshold:0", "calloc_madvise_threshold", "0"),
        ("", "retain", "(true, Secondary, Default, Auto)"),
        ("retain:false,thp:never,metadata_thp:auto", "retain", "(false, Secondary, Never, Auto)"),
        ("thp:always,metadata_thp:always", "retain", "(true, Secondary, Always, Always)"),
    ];
    for (conf, name, expected) in cases {
        let outcome = play("show", &[("MALLOC_CONF", conf)]);
        assert!(outcome.success);
        assert_eq!(shown(&outcome, name), expected, "{conf:?}");
    }
}

#[test]
fn the_last_source_wins() {
    let both = [("LUMALLOC_CONF", "narenas:3"), ("MALLOC_CONF", "narenas:2,xmalloc:true")];
    let outcome = play("show", &both);
    assert_eq!((shown(&outcome, "narenas"), shown(&outcome, "xmalloc")), ("3", "true"));
}

// --- deaths ------------------------------------------------------------------------------------

#[test]
fn abort_conf_dies_of_a_bad_option() {
    for conf in ["abort_conf:true,nonsense:1", "nonsense:1,abort_conf:true"] {
        let outcome = play("show", &[("LUMALLOC_CONF", conf)]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
        let expected = "<lumalloc>: Invalid conf pair: nonsense:1 (LUMALLOC_CONF)\n\
                        <lumalloc>: Abort (abort_conf:true) on invalid conf value (see above).\n";
        assert_eq!(outcome.stderr, expected);
    }
}

/// The source that is read after the bad option may be the one that makes it fatal.
#[test]
fn abort_conf_dies_of_a_bad_option_of_an_earlier_source() {
    let both = [("MALLOC_CONF", "nonsense:1"), ("LUMALLOC_CONF", "abort_conf:true")];
    let outcome = play("show", &both);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
    let expected = "<lumalloc>: Invalid conf pair: nonsense:1 (MALLOC_CONF)\n\
                    <lumalloc>: Abort (abort_conf:true) on invalid conf value (see above).\n";
    assert_eq!(outcome.stderr, expected);
    let both = [("MALLOC_CONF", "abort_conf:true"), ("LUMALLOC_CONF", "abort_conf:false,bad:1")];
    assert!(play("show", &both).success);
}

#[test]
fn abort_conf_lives_with_what_has_no_effect_and_with_retired_options() {
    for conf in [
        "xmalloc:false",
        "hpa:true",
        "experimental_z:1",
        "hpa_sec_bytes_after_flush:1",
        "hpa_sec_batch_fill_extra:1",
    ] {
        let outcome = play("show", &[("LUMALLOC_CONF", &format!("abort_conf:true,{conf}"))]);
        assert!(outcome.success, "{outcome:#?}");
        let is_told = outcome.stderr.starts_with("<lumalloc>: ");
        assert_eq!(is_told, conf != "xmalloc:false", "{outcome:#?}");
    }
}

fn xmalloc() {
    assert!(!raw::malloc(1000).is_null());
    let _null = raw::malloc(1 << 60);
}

#[test]
fn xmalloc_dies_without_memory() {
    for name in ["xmalloc", "xmalloc_at_first"] {
        let outcome = play(name, &[("LUMALLOC_CONF", "xmalloc:true")]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:#?}");
        let expected = "<lumalloc>: out of memory: 1152921504606846976 bytes (xmalloc:true)\n";
        assert_eq!(without_trail(&outcome.stderr), expected);
    }
    assert!(play("xmalloc", &[("LUMALLOC_CONF", "xmalloc:false")]).success);
}

// --- effects -----------------------------------------------------------------------------------

/// Every size works, over threads, and all memory is free in the end.
fn work() {
    let round = || {
        let blocks: Vec<usize> =
            (0..3000).map(|n| raw::malloc(n * 17).expose_provenance()).collect();
        for (n, block) in blocks.into_iter().enumerate() {
            assert_ne!(block, 0);
            let block = std::ptr::with_exposed_provenance_mut::<u8>(block);
            // SAFETY: a live block of this length.
            unsafe { block.write_bytes(n as u8, n * 17) };
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::free(block) };
        }
    };
    round();
    std::thread::spawn(round).join().expect("a thread");
    common::assert_empty();
}

#[test]
fn everything_works_under_odd_options() {
    for conf in [
        "tcache:false",
        "tcache_max:0",
        "tcache_max:100",
        "tcache_max:8",
        "lg_tcache_max:3",
        "narenas:1",
        "narenas:4094",
        "narenas_ratio:0.1",
        "dirty_decay_ms:0",
        "dirty_decay_ms:-1",
        "dirty_decay_ms:0,muzzy_decay_ms:1000",
        "muzzy_decay_ms:-1,dirty_decay_ms:10",
        "tcache_gc_incr_bytes:1024",
        "lg_extent_max_active_fit:0",
        "lg_extent_max_active_fit:64",
        "calloc_madvise_threshold:0",
    ] {
        play_well("work", conf);
    }
}

fn no_tcache() {
    let ptr = raw::malloc(100);
    // SAFETY: a live block, freed once.
    unsafe { raw::free(ptr) };
    let totals = observe::totals();
    assert!(!control::flush_thread_cache());
    assert_eq!((totals.cached, totals.requests, totals.allocated), (0, 0, 0));
}

#[test]
fn without_tcache_nothing_is_cached() {
    play_well("no_tcache", "tcache:false");
}

fn small_tcache() {
    for size in [64, 96, 112, 1024, 32 << 10] {
        let ptr = raw::malloc(size);
        // SAFETY: a live block, freed once.
        unsafe { raw::free_sized(ptr, size) };
        assert_eq!(observe::totals().cached != 0, size <= 112, "{size}");
        control::flush_thread_cache();
        assert_eq!(observe::totals().cached, 0);
    }
}

#[test]
fn beyond_tcache_max_nothing_is_cached() {
    play_well("small_tcache", "tcache_max:100");
}

fn large_and_free() -> observe::Totals {
    let ptr = raw::malloc(10 << 20);
    // SAFETY: a live block, this long.
    unsafe { ptr.write_bytes(1, 10 << 20) };
    // SAFETY: a live block, freed once.
    unsafe { raw::free(ptr) };
    observe::totals()
}

fn at_once() {
    let totals = large_and_free();
    assert_eq!((totals.dirty, totals.muzzy), (0, 0));
    assert!(totals.purged_pages >= 10 << 8 && totals.retained >= 10 << 20);
}

fn never() {
    let totals = large_and_free();
    assert_eq!(totals.purged_pages, 0);
    assert!(totals.dirty >= 10 << 20);
    assert!(control::purge(0));
    let totals = observe::totals();
    assert_eq!(totals.dirty, 0, "arena.<i>.purge knows no age");
    assert!(totals.purged_pages >= 10 << 8);
}

#[test]
fn decay_times_of_nothing_and_of_ever() {
    play_well("at_once", "dirty_decay_ms:0");
    play_well("never", "dirty_decay_ms:-1");
}

fn from_many_threads() {
    let thread = || {
        (0..300).for_each(|n| {
            let ptr = raw::malloc(40_000 + n * 1000);
            // SAFETY: a live block, freed once.
            unsafe { raw::free(ptr) };
        });
    };
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(thread)).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
}

fn one_arena() {
    from_many_threads();
    assert_eq!((observe::totals().arenas_open, control::narenas()), (1, 1));
    assert!(raw::allocate(10, raw::Flags::NONE.arena(1)).is_null());
}

fn arenas() {
    // This is the first call of the process, and the options must have been read.
    assert_eq!(control::narenas(), 16);
    from_many_threads();
    let ptr = raw::allocate(10, raw::Flags::NONE.arena(15));
    assert!(!ptr.is_null());
    assert_eq!(observe::totals().arenas_open, 16);
    assert!(raw::allocate(10, raw::Flags::NONE.arena(16)).is_null());
    assert!(control::purge(15) && !control::purge(16));
    // SAFETY: a live block, freed once.
    unsafe { raw::deallocate(ptr, raw::Flags::NONE.uncached()) };
}

#[test]
fn narenas_is_the_limit() {
    play_well("one_arena", "narenas:1");
    play_well("arenas", "narenas:16");
}
