//! The last samples of the heap profiler, and the log of those that were freed, as JSON.

use std::path::{Path, PathBuf};

use lumalloc_tests::{Run, cc, scratch};
use serde_json::Value;

const FLAGS: [&str; 2] = ["-pthread", "-fno-optimize-sibling-calls"];

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_last_samples_and_the_freed_ones_are_told() {
    let directory = scratch("profile-log");
    let [recent, log] = ["recent", "log"].map(|name| directory.join(name));
    let run = Run::preloaded(cc("profile_log.c", &FLAGS)).args([&recent, &log]);
    let conf = "prof:true,lg_prof_sample:0,prof_time_resolution:high";
    assert_eq!(run.conf(conf).stdout(), "");

    let recent = read(&recent);
    assert_eq!((&recent["sample_interval"], &recent["recent_alloc_max"]), (&1.into(), &3.into()));
    let samples = recent["recent_alloc"].as_array().expect("samples");
    let sizes: Vec<_> = samples.iter().map(|sample| sample["size"].as_u64()).collect();
    assert_eq!(sizes, [Some(1002), Some(1003), Some(1004)]);
    for sample in samples {
        let is_freed = sample["size"] == 1003;
        assert_eq!((&sample["usize"], &sample["released"]), (&1024.into(), &is_freed.into()));
        assert_eq!(sample["alloc_thread_name"], "main one");
        assert!(sample["alloc_trace"].as_array().is_some_and(|trace| trace.len() > 1));
        assert_eq!(sample.get("dalloc_trace").is_some(), is_freed);
        if is_freed {
            assert_eq!(sample["dalloc_thread_uid"], sample["alloc_thread_uid"]);
            assert!(sample["dalloc_time"].as_u64() > sample["alloc_time"].as_u64());
            assert_ne!(sample["dalloc_trace"][0], sample["alloc_trace"][0]);
        }
    }

    let log = read(&log);
    let info = &log["info"];
    assert_eq!((&info["lg_sample_rate"], &info["version"]), (&0.into(), &"0.1.0".into()));
    assert_eq!(info["prof_time_resolution"], "high");
    assert!(info["duration"].as_u64() > Some(0) && info["pid"].is_u64());
    let freed = log["allocations"].as_array().expect("allocations");
    let of_size =
        |usable: u64| freed.iter().filter(|one| one["usize"] == usable).collect::<Vec<_>>();
    let [other] = of_size(4096)[..] else { panic!("{freed:?}") };
    let thread = |one: &Value, end: &str| {
        let place = one[format!("{end}_thread")].as_u64().expect("a place") as usize;
        log["threads"][place]["thr_name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(
        (thread(other, "alloc"), thread(other, "free")),
        ("main one".into(), "other".into())
    );
    let [before, same] = of_size(2048)[..] else { panic!("{freed:?}") };
    assert!(before["alloc_timestamp"].as_u64() < same["alloc_timestamp"].as_u64());
    assert!(before["free_timestamp"].as_u64() < same["free_timestamp"].as_u64());
    let trace = |one: &Value, end: &str| {
        let place = one[format!("{end}_trace")].as_u64().expect("a place") as usize;
        log["stack_traces"][place].as_array().expect("a trace").clone()
    };
    // Both were freed by `drop`, called from different places.
    let (one, two) = (trace(before, "free"), trace(same, "free"));
    assert!(one[0] == two[0] && one[1] != two[1]);
    assert_ne!(trace(same, "alloc")[0], one[0]);
    assert!(of_size(3072).is_empty(), "it was freed after the log");
}

/// A free that tells the size looks at no address, unless a log is asked for from the start. What
/// is noticed later has no stack and no thread: those of the call that notices it would be others.
#[test]
fn who_freed_by_size_is_known_or_not_told() {
    let directory = scratch("profile-sized-log");
    let program = cc("profile_sized_log.cc", &["-O1", "-fno-optimize-sibling-calls"]);
    let log = |name: &str, run: Run| {
        assert_eq!(run.stdout(), "");
        let files = std::fs::read_dir(&directory).expect("the directory").flatten();
        let is_it = |file: &PathBuf| {
            file.file_name().is_some_and(|of| of.to_string_lossy().starts_with(name))
        };
        let file = files.map(|file| file.path()).find(is_it).expect("a log");
        let log = read(&file);
        let freed = log["allocations"].as_array().expect("allocations").clone();
        let of_class = freed.into_iter().filter(|one| one["usize"] == 3072);
        let ends = of_class.map(|one| {
            let of = |list: &str, place: &str| {
                log[list][one[place].as_u64().expect("a place") as usize].clone()
            };
            let traces = ["alloc_trace", "free_trace"].map(|place| of("stack_traces", place));
            let lengths = traces.clone().map(|trace| trace.as_array().expect("a trace").len());
            let times = ["alloc_timestamp", "free_timestamp"].map(|time| one[time].as_u64());
            let [from, until] = times.map(|time| time.expect("a time"));
            let thread = of("threads", "free_thread")["thr_uid"].as_u64().expect("a number");
            (lengths, traces[0][0] == traces[1][0], until - from, thread)
        });
        ends.collect::<Vec<_>>()
    };
    let conf = "prof:true,lg_prof_sample:8,prof_seed:1,prof_time_resolution:high";
    let from_start =
        format!("{conf},prof_log:true,prof_prefix:{}", directory.join("own").display());
    let run = Run::preloaded(&program).conf(&from_start);
    let known = log("own", run);
    assert!(known.len() > 40, "{known:?}");
    for (lengths, is_same, _, thread) in &known {
        assert!(lengths[1] > 1 && !is_same && *thread != 0, "{known:?}");
    }
    let run = Run::preloaded(&program).args([directory.join("late")]).conf(conf);
    let late = log("late", run);
    assert!(late.len() > 40, "{late:?}");
    assert!(late.iter().all(|(lengths, .., thread)| lengths[1] == 0 && *thread == 0), "{late:?}");
}

#[test]
fn without_the_profiler_there_is_neither() {
    assert_eq!(Run::preloaded(cc("profile_log.c", &FLAGS)).stdout(), "");
    let output = Run::preloaded("/bin/true").conf("prof_log:true").output();
    let expected = "<lumalloc>: no log of samples is kept: is there prof:true?\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

#[test]
fn the_option_keeps_a_log_until_the_exit() {
    let directory = scratch("profile-log-option");
    let conf = "prof:true,lg_prof_sample:0,prof_log:true,prof_prefix:own,prof_recent_alloc_max:-1,\
                prof_final:true,prof_pid_namespace:true";
    let run = Run::preloaded("/bin/true").dir(&directory).conf(conf);
    assert_eq!(run.stdout(), "");
    let mut files: Vec<String> = std::fs::read_dir(&directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    files.sort_by_key(|name| name.ends_with(".heap"));
    let [log, profile] = &files[..] else { panic!("{files:?}") };
    assert!(log.starts_with("own.") && log.ends_with(".0.json"), "{log}");
    read(&directory.join(log));
    let namespace = std::fs::read_link("/proc/self/ns/pid").expect("the namespace");
    let namespace = namespace.to_string_lossy().replace(['p', 'i', 'd', ':', '[', ']'], "");
    for name in [log, profile] {
        assert!(name.starts_with(&format!("own.{namespace}.")), "{name}");
    }
}
