//! Exact profiles have each allocation: beside a recording of the heap monitor, which has each one
//! too, in one process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, scratch};
use serde_json::Value;

/// How many live blocks there are of each requested size.
type Live = BTreeMap<u64, u64>;

/// Runs the program, which says nothing. Returns its directory.
fn run(what: &str, name: &str, conf: &str) -> PathBuf {
    let directory = scratch(&format!("exact-{name}"));
    let program = cc("profile_exact.c", &["-O1", "-fno-builtin", "-pthread"]);
    let output = Run::preloaded(&program).args([what]).dir(&directory).conf(conf).output();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((ending(output.status).as_str(), errors.as_ref()), ("exit 0", ""), "{what} {conf}");
    directory
}

/// Returns the one file there whose name ends so.
fn file(directory: &Path, end: &str) -> String {
    let files = std::fs::read_dir(directory).expect("the directory");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("text"));
    let names: Vec<String> = names.filter(|name| name.ends_with(end)).collect();
    let [name] = names.as_slice() else { panic!("{names:?}") };
    name.clone()
}

fn json(directory: &Path, args: &[&str]) -> Value {
    let (status, text, errors) = command(directory, args);
    assert_eq!(status, "exit 0", "{args:?}: {errors}");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name}: {value}"))
}

/// What an exact profile tells: the allocations, and what is live.
fn profiled(directory: &Path, end: &str) -> (u64, Live) {
    let profile = json(directory, &["heap", "--json", &file(directory, end)]);
    assert_eq!(profile["notes"]["prof.since_start"], "1", "each allocation was counted");
    let mut live = Live::new();
    for sample in profile["samples"].as_array().expect("samples") {
        *live.entry(number(sample, "size")).or_default() += number(sample, "live_blocks");
    }
    live.retain(|_, blocks| *blocks > 0);
    (number(&profile["total"], "allocations"), live)
}

/// What a recording tells of the same.
fn recorded(directory: &Path) -> (u64, Live) {
    let name = file(directory, ".events");
    let events = json(directory, &["events", "--analyze", "--json", "--deleted", "0", &name]);
    assert_eq!((&events["old_blocks"], &events["dropped"]), (&0.into(), &0.into()));
    let mut live = Live::new();
    for block in events["blocks"].as_array().expect("blocks") {
        *live.entry(number(block, "size")).or_default() += 1;
    }
    (number(&events, "allocations"), live)
}

/// Runs the program with both, compares them, and returns what they tell.
fn agreed(what: &str, modes: &str) -> (u64, Live) {
    let name = format!("{what}{}", modes.replace([':', ','], "-"));
    let directory = run(what, &name, &format!("mprof:true,monitor:true{modes}"));
    let (by_mprof, by_monitor) = (profiled(&directory, "mprof.data"), recorded(&directory));
    assert_eq!(by_mprof, by_monitor, "{what} {modes}");
    by_mprof
}

#[test]
fn a_recording_and_an_exact_profile_of_one_process_agree() {
    for modes in
        ["", ",guarded_sample:1", ",guarded_sample:3,hardened:true", ",tcache:false", ",junk:true"]
    {
        let (allocations, live) = agreed("work", modes);
        assert!(allocations > 4000 && live.values().sum::<u64>() > 1500, "{allocations} {live:?}");
    }
}

#[test]
fn each_requested_size_of_a_stack_is_counted_apart() {
    let (allocations, live) = agreed("sizes", "");
    assert_eq!((allocations, live), (2000, (1..=2000).map(|size| (size, 1)).collect()));
}

/// The C library makes four rounds of destructors, of which the thread has its cache in two.
#[test]
fn what_a_thread_allocates_at_its_end_is_in_exact_profiles() {
    for modes in ["", ",guarded_sample:1", ",tcache:false"] {
        let (_, live) = agreed("late", modes);
        let of = |size| live.get(&size).copied();
        let four_times = Some(20 * 4);
        assert_eq!(
            (of(123), of(50_000), of(0), of(77)),
            (four_times, four_times, four_times, None)
        );
    }
}

#[test]
fn a_guarded_sample_that_has_grown_has_the_size_of_its_request() {
    let conf = "prof:true,lg_prof_sample:0,prof_final:true,prof_format:pprof,guarded_sample:1";
    let directory = run("grow", "grow", conf);
    assert_eq!(profiled(&directory, ".f.pb.gz"), (80, Live::from([(300, 40)])));
}

/// Beyond 2^20 sizes the profiler says once that it counts no more of them apart, and goes on.
#[test]
fn sizes_beyond_the_most_are_counted_by_the_blocks() {
    let directory = scratch("exact-many");
    let program = cc("profile_exact.c", &["-O1", "-fno-builtin", "-pthread"]);
    let conf = "prof:true,lg_prof_sample:0,prof_final:true,abort:true";
    let output = Run::preloaded(&program).args(["many"]).dir(&directory).conf(conf).output();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "<lumalloc>: More than 1048576 pairs of a stack and a size: requests of others count by the \
         size of their block.\n"
    );
    assert_eq!(ending(output.status), "exit 0");
    let profile = json(&directory, &["heap", "--json", &file(&directory, ".f.heap")]);
    let live = ["live_blocks", "live_bytes"].map(|name| number(&profile["total"], name));
    assert_eq!(live, [10, 10 * (5 << 18)]);
}
