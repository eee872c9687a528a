//! The identities that the soak checks hold for a real snapshot, and each of them can fail.

use lumalloc_tests::Run;
use lumalloc_tests::identities::Watch;
use serde_json::{Value as Json, json};

/// The statistics of a small process.
fn printed() -> Json {
    let run =
        Run::preloaded("/bin/bash").args(["-c", ":"]).conf("stats_print:true,stats_print_opts:J");
    serde_json::from_slice(&run.output().stderr).expect("JSON")
}

#[test]
fn a_real_snapshot_has_them_all() {
    let (real, mut watch) = (printed().to_string(), Watch::default());
    watch.check(&real).unwrap_or_else(|wrong| panic!("{wrong}"));
    let once = watch.checked();
    assert!(once > 200, "{once}");
    watch.check(&real).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(watch.checked() > 2 * once, "the counts are compared too");
}

/// Each fact fails when one of its numbers changes.
#[test]
fn a_wrong_number_is_found() {
    let real = printed();
    let wrong = |path: &str, value: Json| {
        let mut changed = real.clone();
        *changed.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
        Watch::default().check(&changed.to_string()).expect_err(path)
    };
    for (path, fact) in [
        ("allocated", "process: allocated of the sum of all arenas is "),
        ("active", "process: active of all arenas merged is "),
        ("resident", "process: resident = active + dirty + muzzy + metadata: "),
        ("mapped", "process: mapped = active + dirty + muzzy + metadata: "),
        ("metadata", "process: metadata of the sum of all arenas is "),
        ("retained", "process: retained of all arenas merged is "),
        ("holes", "process: unused runs without memory + holes = retained: "),
        ("rss/slab_free", "process: the lines of rss add up to ours: "),
        ("rss/not_ours", "process: ours + not_ours = process: "),
        ("thread_caches/bytes", "process: thread_caches.bytes = rss.thread_caches: "),
    ] {
        let found = wrong(&format!("/jemalloc/stats/{path}"), json!(123_456_789));
        assert!(found.contains(fact), "{path}: {found}");
    }
    for (path, fact) in [
        ("small/nmalloc", "arena 0: small.nmalloc = sum of bins: "),
        ("large/ndalloc", "arena 0: large.ndalloc = sum of classes: "),
        ("bins/3/curregs", "arena 0, bin 3: nmalloc - ndalloc = curregs: "),
        ("bins/3/cached", "arena 0, bin 3: cached <= curregs: "),
        ("bins/3/nonfull_slabs", "arena 0, bin 3: nonfull_slabs <= curslabs: "),
        ("lextents/3/curlextents", "arena 0, large 3: nmalloc - ndalloc = curlextents: "),
        ("pdirty", "process: dirty of the sum of all arenas is "),
    ] {
        let found = wrong(&format!("/jemalloc/stats.arenas/0/{path}"), json!(123_456_789));
        assert!(found.contains(fact), "{path}: {found}");
    }
    assert!(wrong("/jemalloc/stats", json!({})).contains("process: "));
}

#[test]
fn a_count_that_goes_back_is_found() {
    let real = printed();
    let mut later = real.clone();
    let bins = later["jemalloc"]["stats.arenas"]["0"]["bins"].as_array_mut().expect("bins");
    let used = bins.iter().position(|bin| bin["nrequests"].as_u64() > Some(0)).expect("requests");
    bins[used]["nrequests"] = json!(0);
    let mut watch = Watch::default();
    assert_eq!(watch.check(&real.to_string()), Ok(()));
    let wrong = watch.check(&later.to_string()).expect_err("it went back");
    let expected = format!("class {used} of all: nrequests went from ");
    assert!(wrong.starts_with(&expected), "{wrong}");
}
