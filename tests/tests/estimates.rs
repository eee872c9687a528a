//! How far the estimates of a sampled profile are from the truth, and whether their errors say so.

use lumalloc_tests::profiled::command;
use lumalloc_tests::serving::{ask, free_port, start};
use lumalloc_tests::{Run, cc, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The places of `profile_shares.c`: live blocks, and allocations.
const PLACES: [(&str, i64, i64); 9] = [
    ("mixed", 500, 1500),
    ("most", 16_000, 16_000),
    ("some", 3000, 6000),
    ("few", 600, 600),
    ("longer", 1000, 4000),
    ("pages", 300, 300),
    ("single", 30, 30),
    ("large", 20, 60),
    ("larger", 20, 20),
];

/// A number and its error.
type Estimate = (f64, f64);

/// The profile as JSON.
fn report(profile: &Path) -> Value {
    let (status, json, notes) = command(
        profile.parent().expect("a directory"),
        &["heap", &profile.display().to_string(), "--json"],
    );
    assert_eq!((notes.as_str(), status.as_str()), ("", "exit 0"));
    serde_json::from_str(&json).expect("JSON")
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} in {row}"))
}

/// The live blocks and the allocations of each place, as the profile estimates them.
fn estimates(report: &Value) -> BTreeMap<String, [Estimate; 2]> {
    let mut places: BTreeMap<String, [Estimate; 2]> = BTreeMap::new();
    for sample in report["samples"].as_array().expect("samples") {
        let stack = sample["stack"].as_u64().expect("a number") as usize;
        let frame = report["stacks"][stack][0].as_u64().expect("a frame") as usize;
        let name = report["frames"][frame]["function"].as_str().expect("a name").to_owned();
        let estimates = places.entry(name).or_default();
        for (place, kind) in estimates.iter_mut().zip(["live_blocks", "allocations"]) {
            place.0 += number(sample, kind);
            place.1 += number(sample, &format!("{kind}_error"));
        }
    }
    places
}

/// Of what the profile shows, 95 % lies within two standard errors of the truth. The seeds are
/// fixed, so each run of this test finds nearly the same.
#[test]
fn estimates_of_200_runs_lie_within_their_errors() {
    let program = cc("profile_shares.c", &["-ldl"]);
    let file = scratch("profile-shares").join("shares.pb.gz");
    // How many estimates there were of each number, and how many were so near.
    let mut near: BTreeMap<(&str, usize), [u32; 2]> = BTreeMap::new();
    let run = |conf: &str| {
        assert_eq!(Run::preloaded(&program).args([&file]).conf(conf).stdout(), "");
        report(&file)
    };
    let exact = run("prof:true,lg_prof_sample:0");
    let mut totals_near = 0;
    for seed in 1..=200 {
        let sampled = run(&format!("prof:true,lg_prof_sample:14,prof_seed:{seed}"));
        // The sums have the blocks of which none is a sample too.
        let is_near = |kind: &str| {
            let error = number(&sampled["total"], &format!("{kind}_error"));
            let off = number(&sampled["total"], kind) - number(&exact["total"], kind);
            off.abs() <= 2.0 * error + 0.01 * number(&exact["total"], kind)
        };
        let all = ["live_bytes", "live_blocks", "allocated_bytes", "allocations"];
        totals_near += u32::from(all.into_iter().all(is_near));
        let found = estimates(&sampled);
        for (name, live, allocated) in PLACES {
            let Some(estimates) = found.get(name) else { continue };
            for (at, truth) in [live, allocated].into_iter().enumerate() {
                let (estimate, error) = estimates[at];
                let is_near = (estimate - truth as f64).abs() <= 2.0 * error + 0.5;
                let [all, inside] = near.entry((name, at)).or_default();
                (*all, *inside) = (*all + 1, *inside + u32::from(is_near));
            }
        }
    }
    let (all, inside) =
        near.values().fold((0, 0), |sum, [all, inside]| (sum.0 + all, sum.1 + inside));
    assert!(all > 3000 && inside * 100 >= all * 95, "{inside} of {all}: {near:?}");
    assert!(near.values().all(|[all, inside]| inside * 100 >= all * 90), "{near:?}");
    assert!(totals_near >= 190, "{totals_near} of 200");
}

/// A `realloc` that leaves a block in its size class is no allocation, in an exact profile and in
/// a sampled one. Blocks get as much room to grow in both.
#[test]
fn a_realloc_in_place_is_no_allocation() {
    const BLOCKS: f64 = 20_000.0;
    const GROWN: f64 = 40.0;
    let program = cc("profile_reallocs.c", &["-ldl"]);
    let file = scratch("profile-reallocs").join("reallocs.pb.gz");
    let profile = |conf: &str| {
        assert_eq!(Run::preloaded(&program).args([&file]).conf(conf).stdout(), "");
        estimates(&report(&file))
    };
    let exact = profile("prof:true,lg_prof_sample:0");
    let numbers = |place: &str| exact[place].map(|estimate| estimate.0);
    assert_eq!(numbers("stays"), [BLOCKS, BLOCKS]);
    assert_eq!(numbers("moves"), [BLOCKS, 2.0 * BLOCKS]);
    // Up to 64 bytes each class, from there on each second one.
    assert_eq!(numbers("grows"), [GROWN, 22.0 * GROWN]);
    assert_eq!(numbers("grows_long"), [GROWN, 19.0 * GROWN]);
    for seed in 1..=5 {
        let sampled = profile(&format!("prof:true,lg_prof_sample:14,prof_seed:{seed}"));
        for place in ["stays", "moves", "grows", "grows_long"] {
            for (at, (estimate, error)) in sampled[place].into_iter().enumerate() {
                // The library and the C library have a few blocks of these classes too.
                let allowed = 4.0 * error + 30.0;
                let truth = exact[place][at].0;
                assert!((estimate - truth).abs() <= allowed, "{place}: {estimate} of {truth}");
            }
        }
    }
}

/// Asks for everything in turn, until told to end. Counts the answers.
fn ask_on(port: u16, answers: &AtomicU32, is_done: &AtomicBool) {
    let paths = ["/metrics", "/stats", "/heap", "/map", "/flamegraph"];
    for path in paths.iter().cycle().take_while(|_| !is_done.load(Relaxed)) {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let answer = ask(stream, &format!("GET {path}"));
        assert!(["HTTP/1.1 200 ", "HTTP/1.1 409 "].iter().any(|begin| answer.starts_with(begin)));
        answers.fetch_add(1, Relaxed);
    }
}

/// The exporter's threads have an arena that is in no profile and in no count of a class. So the
/// counts are of what the program allocates, and the estimates are corrected to them.
#[test]
fn estimates_are_exact_in_sum_while_the_exporter_is_scraped() {
    let program = cc("profile_shares.c", &["-ldl"]);
    let file = scratch("profile-shares-served").join("shares.pb.gz");
    let port = free_port();
    let conf = "prof:true,lg_prof_sample:14,prof_seed:7";
    let arguments = [&file.display().to_string(), "serve"];
    let mut running = start(&program, &arguments, &format!("127.0.0.1:{port}"), conf);
    let (answers, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut input = running.0.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_on(port, &answers, &is_done));
        while answers.load(Relaxed) < 5 && !asking.is_finished() {
            std::thread::yield_now();
        }
        input.write_all(b"x").expect("the program reads");
        let mut output = BufReader::new(running.0.stdout.take().expect("piped")).lines();
        let written = output.find_map(|line| (line.ok()? == "has written").then_some(()));
        is_done.store(true, Relaxed);
        assert!(written.is_some());
        asking.join().expect("all answers");
    });

    let report = report(&file);
    assert_eq!(report["notes"]["prof.since_start"], "1", "{}", report["notes"]);
    // The estimates of all samples of some requested sizes together.
    let sum = |sizes: &[u64], kind: &str| -> f64 {
        let samples = report["samples"].as_array().expect("samples").iter();
        let samples = samples
            .filter(|sample| sample["size"].as_u64().is_some_and(|size| sizes.contains(&size)));
        samples.map(|sample| sample[kind].as_f64().expect("a number")).sum()
    };
    for (class, sizes, live, allocations) in [
        (64, &[64, 60][..], 19_600, 22_600),
        (512, &[500], 1000, 4000),
        (20_480, &[20_000], 300, 300),
        (114_688, &[100_000, 110_000], 40, 80),
    ] {
        let note = report["notes"][format!("class.{class}")].as_str().expect("a note");
        let counts: Vec<f64> =
            note.split(' ').map(|count| count.parse().expect("a number")).collect();
        // The libraries that the program uses, and its start of the exporter, have a few more.
        let others = [counts[0] - f64::from(live), counts[1] - f64::from(allocations)];
        assert!(others.iter().all(|others| (0.0..30.0).contains(others)), "{class}: {note}");
        // Neighbours of which few samples are expected are corrected together with the class.
        for (count, kind) in counts.iter().zip(["live_blocks", "allocations"]) {
            let estimate = sum(sizes, kind);
            assert!((estimate - count).abs() <= 0.04 * count, "{class}: {estimate} of {note}");
        }
    }
}
