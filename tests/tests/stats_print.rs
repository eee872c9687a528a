//! `malloc_stats_print` for users of jemalloc: its JSON has each key of jemalloc's with the same
//! type, and its text has the same sections and tables.
//!
//! `tests/golden/jemalloc-stats-keys.txt` lists jemalloc's keys. With `LUMALLOC_TEST_LIBRARY` set
//! to a `libjemalloc.so.2` of 5.3.0, the first test checks the list itself.

use std::collections::BTreeMap;
use std::fs;

use lumalloc_tests::build::is_foreign;
use lumalloc_tests::{Run, cc, root};
use serde_json::Value;

/// The output of the program with these letters.
fn printed(letters: &str) -> String {
    let stand_in = cc("api_stand_in.c", &["-shared", "-fPIC"]).display().to_string();
    let program = cc("api_stats_keys.c", &[&stand_in]);
    Run::preloaded(program).conf("narenas:3").args([letters]).stdout()
}

fn json(letters: &str) -> Value {
    let text = printed(letters);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Paths to all values below one value, with their types. The types are those in all elements of an
/// array, and in all arenas.
fn collect(value: &Value, path: &str, found: &mut BTreeMap<String, Vec<String>>) {
    let join =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let is_arena = path == "stats.arenas" && name.parse::<u32>().is_ok();
                collect(value, &join(if is_arena { "<i>" } else { name }), found);
            }
        }
        Value::Array(array) => {
            for value in array {
                collect(value, &format!("{path}[]"), found);
            }
        }
        other => found.entry(path.to_owned()).or_default().push(kind(other).to_owned()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        _ => "something else",
    }
}

#[test]
fn every_key_of_jemalloc_is_there_with_its_type() {
    let mut found = BTreeMap::new();
    collect(&json("J")["jemalloc"], "", &mut found);
    let golden = root().join("tests/golden/jemalloc-stats-keys.txt");
    let golden = fs::read_to_string(golden).expect("the list of keys");
    let mut wrong = Vec::new();
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let (path, kind) = (words[0], words[1]);
        let ours = found.get(path);
        let is_absent = words.len() > 2 && !is_foreign();
        match ours {
            None if is_absent => {}
            None => wrong.push(format!("{path} is missing")),
            Some(_) if is_absent => wrong.push(format!("{path} is there: it is not absent")),
            Some(kinds) if kinds.iter().any(|ours| ours != kind) => {
                wrong.push(format!("{path} is {kinds:?}, not {kind}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}\n{} keys", wrong.join("\n"), wrong.len());
}

/// Arrays are as long as the constants say, and each element has all its keys.
#[test]
fn arrays_are_as_long_as_the_constants_say() {
    let all = json("J");
    let all = &all["jemalloc"];
    let length = |value: &Value| value.as_array().map_or(0, Vec::len) as u64;
    let arenas = &all["arenas"];
    assert_eq!(Some(length(&arenas["bin"])), arenas["nbins"].as_u64());
    assert_eq!(Some(length(&arenas["lextent"])), arenas["nlextents"].as_u64());
    let merged = &all["stats.arenas"]["merged"];
    assert_eq!(length(&merged["bins"]), length(&arenas["bin"]));
    assert_eq!(length(&merged["lextents"]), length(&arenas["lextent"]));
    assert!(length(&merged["extents"]) > 0);
    for (bin, class) in
        merged["bins"].as_array().unwrap().iter().zip(arenas["bin"].as_array().unwrap())
    {
        let live = bin["curregs"].as_u64().unwrap();
        let room = bin["curslabs"].as_u64().unwrap() * class["nregs"].as_u64().unwrap();
        assert!(live <= room, "{bin} {class}");
    }
}

#[test]
fn letters_leave_their_parts_out() {
    let part = |letters: &str, path: &str| {
        let all = json(&format!("J{letters}"));
        let pointer = format!("/jemalloc/{path}");
        all.pointer(&pointer).is_some()
    };
    for (letters, path) in [
        ("g", "opt"),
        ("g", "arenas"),
        ("m", "stats.arenas/merged"),
        ("d", "stats.arenas/destroyed"),
        ("a", "stats.arenas/0"),
        ("b", "stats.arenas/merged/bins"),
        ("l", "stats.arenas/merged/lextents"),
        ("e", "stats.arenas/merged/extents"),
        ("x", "stats.arenas/merged/mutexes"),
        ("x", "stats.arenas/0/bins/0/mutex"),
        ("x", "stats/mutexes"),
        ("mda", "stats.arenas"),
    ] {
        assert!(part("", path), "{path} is not there without a letter");
        assert!(!part(letters, path), "{path} is there with {letters}");
    }
    assert!(part("a", "stats.arenas/merged"), "merged arenas are shown where single ones are not");
    if !is_foreign() {
        assert!(part("", "stats/work") && !part("w", "stats/work"));
    }
}

/// The titles of jemalloc's tables, which its users search for.
#[test]
fn the_text_has_jemalloc_s_sections_and_titles() {
    let text = printed("");
    let mut rest = text.as_str();
    for part in [
        "___ Begin ",
        "Version: \"",
        "Build-time option settings\n  config.",
        "Run-time option settings\n  opt.",
        "  opt.dirty_decay_ms: 10000 (arenas.dirty_decay_ms: 10000)\n",
        "\nArenas: ",
        "\nQuantum size: 16\n",
        "\nPage size: 4096\n",
        "\nMaximum thread-cached size class: ",
        "\nNumber of bin size classes: ",
        "\nNumber of thread-cache bin size classes: ",
        "\nNumber of large size classes: ",
        "\nAllocated: ",
        ", active: ",
        ", metadata: ",
        " (n_thp ",
        "), resident: ",
        ", mapped: ",
        ", retained: ",
        "\nCount of realloc(non-null-ptr, 0) calls: 0\n",
        "\nBackground threads: 0, num_runs: 0, run_interval: 0 ns\n",
        LOCKS,
        "\nMerged arenas stats:\nassigned threads: ",
        "\nuptime: ",
        "\ndss allocation precedence: ",
        "\ndecaying:  time       npages       sweeps     madvises       purged\n   dirty:",
        "\n   muzzy:",
        OPERATIONS,
        "\nsmall:  ",
        "\nlarge:  ",
        "\ntotal:  ",
        "\nactive:  ",
        "\nmapped:  ",
        "\nretained:  ",
        "\nbase:  ",
        "\ninternal:  ",
        "\nmetadata_thp:  ",
        "\ntcache_bytes:  ",
        "\ntcache_stashed_bytes:  ",
        "\nresident:  ",
        "\nabandoned_vm:  ",
        "\nextent_avail:  ",
        LOCKS,
        BINS,
        LARGE,
        EXTENTS,
        "\nDestroyed arenas stats:\n",
        "\narenas[0]:\n",
        "--- End ",
    ] {
        let Some(at) = rest.find(part) else { panic!("no {part:?} in {rest}") };
        rest = &rest[at..];
    }
}

const LOCKS: &str = "\n                           n_lock_ops (#/sec)       n_waiting (#/sec)      \
    n_spin_acq (#/sec)  n_owner_switch (#/sec)   total_wait_ns   (#/sec)     max_wait_ns  \
    max_n_thds\n";
const OPERATIONS: &str = "\n                            allocated         nmalloc   (#/sec)         \
    ndalloc   (#/sec)       nrequests   (#/sec)           nfill   (#/sec)          \
    nflush   (#/sec)\n";
const BINS: &str = "\nbins:           size ind    allocated      nmalloc (#/sec)      \
    ndalloc (#/sec)    nrequests   (#/sec)  nshards      curregs     curslabs  nonfull_slabs \
    regs pgs   util       nfills (#/sec)     nflushes (#/sec)       nslabs     \
    nreslabs (#/sec)      n_lock_ops (#/sec)";
const LARGE: &str = "\nlarge:          size ind    allocated      nmalloc (#/sec)      \
    ndalloc (#/sec)    nrequests (#/sec)  curlextents\n";
const EXTENTS: &str = "\nextents:        size ind       ndirty        dirty       nmuzzy        \
    muzzy    nretained     retained       ntotal        total\n";
