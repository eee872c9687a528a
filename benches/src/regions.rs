//! Regions beside C's malloc and lumalloc's: time, instructions and peak RSS, each run in a process
//! of its own, interleaved.
//!
//! `regions [--rounds N]` writes `results/regions.md`.

use crate::commands::{cargo_build, finish};
use crate::figures::Figure;
use crate::machine;
use crate::measure::instructions::collected;
use crate::options::number;
use crate::places::Places;
use crate::prepare;
use crate::report::aligned;
use crate::warm::Peak;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workload of the program `lumalloc-bench-regions`.
struct Load {
    name: &'static str,
    what: &'static str,
    operations: usize,
    /// The operations of the two runs whose difference are the instructions counted, if any.
    counted: Option<(usize, usize)>,
    /// The heaps. The first one is what the others are compared to.
    heaps: &'static [&'static str],
    /// What is wanted of some heaps: the most of C's time.
    targets: &'static [(&'static str, f64)],
}

const COUNTED: Option<(usize, usize)> = Some((100_000, 300_000));

const LOADS: [Load; 5] = [
    Load {
        name: "replace",
        what: "a random one of 4096 blocks is freed, and another of 1 to 512 bytes allocated",
        operations: 5_000_000,
        counted: COUNTED,
        heaps: &["c", "lumalloc", "best-system", "vmbest"],
        targets: &[("best-system", 3.0), ("vmbest", 3.0)],
    },
    Load {
        name: "pairs",
        what: "a block of 64 bytes is allocated and freed",
        operations: 10_000_000,
        counted: COUNTED,
        heaps: &["c", "lumalloc", "pool-system", "vmpool", "best-system"],
        targets: &[("pool-system", 1.0), ("vmpool", 1.0)],
    },
    Load {
        name: "build",
        what: "lists of a million blocks of 16 to 79 bytes are built and dropped: from a region as \
               a whole, from malloc block by block",
        operations: 3_000_000,
        counted: COUNTED,
        heaps: &["c", "lumalloc", "last-system", "last-heap", "vmlast", "best-system"],
        targets: &[("last-system", 0.33), ("last-heap", 0.33), ("vmlast", 0.5)],
    },
    Load {
        name: "list",
        what: "lists of a million nodes of 32 bytes are built, and each node is freed",
        operations: 3_000_000,
        counted: COUNTED,
        heaps: &["c", "lumalloc", "pool-system", "vmpool", "best-system"],
        targets: &[("pool-system", 1.0), ("vmpool", 1.0)],
    },
    Load {
        name: "line",
        what: "a block is resized from 4 KiB to 41 MiB by steps of 4 KiB, and filled",
        operations: 10_496,
        counted: None,
        heaps: &["c", "lumalloc", "best-system", "last-system"],
        targets: &[],
    },
];

/// The nanoseconds of an operation, and the peak RSS in KiB, of one run.
type Sample = (f64, f64);

/// What was measured of a heap on a workload.
#[derive(Default)]
struct Measured {
    samples: Vec<Sample>,
    instructions: Option<f64>,
}

type Results = BTreeMap<(usize, usize), Measured>;

/// `lumalloc-bench -- regions [--rounds N]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rounds = match words.as_slice() {
        [] => 5,
        ["--rounds", rounds] => number("--rounds", rounds, 100)?,
        _ => return Err("regions takes --rounds N only".to_owned()),
    };
    let places = Places::find()?;
    let facts = machine::facts(&[], &format!("regions --rounds {rounds}"));
    let launch = prepare::programs(&places)?.launch;
    let program = built(&places)?;
    let mut results = Results::new();
    let mut peaks = [Peak::default(); LOADS.len()];
    for round in 0..=rounds as usize {
        for (load, how) in LOADS.iter().enumerate() {
            for turn in 0..how.heaps.len() {
                let heap = (round + turn) % how.heaps.len();
                peaks[load].supply(&launch);
                let sample = timed(&program, how, how.heaps[heap])?;
                peaks[load].note(sample.1);
                // The first round shows how much memory the workloads need.
                if round > 0 {
                    results.entry((load, heap)).or_default().samples.push(sample);
                }
            }
        }
    }
    count(&program, &mut results)?;
    let text = markdown(&results, rounds, &facts);
    println!("{text}");
    fs::write(places.benches("results/regions.md"), text)
        .map_err(|error| format!("regions.md: {error}"))
}

fn built(places: &Places) -> Result<PathBuf, String> {
    let program = ["-p", "lumalloc-bench", "--bin", "lumalloc-bench-regions"];
    for only in [&program[..], &["-p", "lumalloc-capi"]] {
        cargo_build(&places.root.join("Cargo.toml"), &places.target, only)?;
    }
    Ok(places.target.join("release/lumalloc-bench-regions"))
}

fn timed(program: &Path, load: &Load, heap: &str) -> Result<Sample, String> {
    let mut command = Command::new(program);
    command.args([load.name, heap, &load.operations.to_string()]).env_clear();
    let said = finish(&mut command)?;
    let words: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [operations, time, peak] = words[..] else {
        return Err(format!("{} {heap} printed {said}", load.name));
    };
    Ok((time / operations, peak))
}

/// Counts the instructions of an operation.
fn count(program: &Path, results: &mut Results) -> Result<(), String> {
    for (load, how) in LOADS.iter().enumerate() {
        let Some((few, many)) = how.counted else { continue };
        for (heap, name) in how.heaps.iter().enumerate() {
            let of = |operations| instructions(program, how.name, name, operations);
            let one = (of(many)? - of(few)?) / (many - few) as f64;
            results.entry((load, heap)).or_default().instructions = Some(one);
        }
    }
    Ok(())
}

fn instructions(program: &Path, load: &str, heap: &str, operations: usize) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let done = command.args([load, heap, &operations.to_string()]).env_clear().output();
    let done = done.map_err(|error| format!("valgrind: {error}"))?;
    let log = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        return Err(format!("{load} {heap} under valgrind ended with {}:\n{log}", done.status));
    }
    collected(&log).ok_or_else(|| format!("callgrind collected nothing:\n{log}"))
}

fn markdown(results: &Results, rounds: u32, facts: &[(String, String)]) -> String {
    let mut text = format!(
        "# Regions beside malloc\n\n\
         Medians of {rounds} rounds, interleaved over all heaps, each run in a process of its own. \
         Ratios to C's malloc are medians\nof those within rounds; the number after ± is half the \
         distance between their quartiles. *Wanted* is the most that\nthe ratio shall be. \
         Instructions are those of callgrind, with the workload's own (some 30 in `replace`, 10 \
         elsewhere).\n\n"
    );
    for (name, value) in facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for (load, how) in LOADS.iter().enumerate() {
        let rows = table(results, load, how);
        let _ = write!(text, "\n## {}\n\n{}.\n\n{}", how.name, capital(how.what), aligned(&rows));
    }
    text
}

fn table(results: &Results, load: usize, how: &Load) -> Vec<Vec<String>> {
    let head = ["heap", "ns", "of C's time", "wanted", "instructions", "peak RSS, MiB"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let none = Measured::default();
    let of = |heap: usize| results.get(&(load, heap)).unwrap_or(&none);
    let times = |heap| of(heap).samples.iter().map(|one| one.0).collect::<Vec<f64>>();
    for (heap, &name) in how.heaps.iter().enumerate() {
        let median = |numbers: Vec<f64>| Figure::of(numbers).map_or(0.0, |figure| figure.median);
        let peak = median(of(heap).samples.iter().map(|one| one.1 / 1024.0).collect());
        let ratio = Figure::of_ratios(&times(heap), &times(0));
        let target = how.targets.iter().find(|target| target.0 == name);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        rows.push(vec![
            name.to_owned(),
            format!("{:.1}", median(times(heap))),
            or_none(ratio.map(|ratio| format!("{:.2} ±{:.2}", ratio.median, ratio.noise))),
            or_none(target.map(|target| format!("{:.2}", target.1))),
            or_none(of(heap).instructions.map(|count| format!("{count:.0}"))),
            format!("{peak:.1}"),
        ]);
    }
    rows
}

/// The text as a sentence.
fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_each_heap_with_c() {
        let mut results = Results::new();
        for (heap, time) in [20.0, 5.0, 30.0].into_iter().enumerate() {
            let samples = vec![(time, 2048.0), (2.0 * time, 2048.0)];
            results.insert((0, heap), Measured { samples, instructions: Some(100.0) });
        }
        let text = markdown(&results, 2, &[("date".to_owned(), "today".to_owned())]);
        let row = text.lines().find(|line| line.starts_with("| best-system")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..7], ["45.0", "1.50 ±0.00", "3.00", "100", "2.0"], "{text}");
        assert!(text.contains("- date: today\n"));
    }
}
