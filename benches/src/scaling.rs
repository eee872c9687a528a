//! Scaling without many cores: what lumalloc's slow paths do per million operations with more and
//! more threads. They are counters, not times: on two cores they tell what many cores would have to
//! wait for.
//!
//! `scaling` prints and writes the tables. `--check` compares them with the bounds in
//! `golden/scaling.txt`, `--update` writes these bounds.

mod picture;

use crate::peers;
use crate::places::Places;
use crate::prepare;
use crate::programs::launch::read_usage;
use crate::report::aligned;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const WORKLOADS: [&str; 4] = ["own", "pass", "buffers", "dying"];
const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 64];

/// The quantities that are shown and bounded: each has a name and the counters that it sums.
/// `wait_` counts locks that were found taken. It depends on how threads interleave, as
/// `cas_retries` does.
const SUMS: [(&str, &[&str]); 9] = [
    ("locks of caches", &["lock_cache"]),
    ("locks of arenas", &["lock_bin", "lock_pages"]),
    ("locks of all", &["lock_registry", "lock_metadata"]),
    ("waits", &["wait_cache", "wait_bin", "wait_pages", "wait_registry", "wait_metadata"]),
    ("remote words", &["remote_words", "remote_pushes"]),
    ("retries", &["cas_retries"]),
    ("refills", &["refills_owned", "refills_shared"]),
    (
        "system calls",
        &[
            "call_mmap",
            "call_munmap",
            "call_madvise",
            "call_mprotect",
            "call_mremap",
            "call_futex_wait",
            "call_futex_wake",
        ],
    ),
    ("faults", &[]),
];

/// The sums of one run, per million operations.
type Row = [u64; SUMS.len()];

/// All runs, by the index of the workload and the number of threads.
type Rows = BTreeMap<(usize, u32), Row>;

/// `lumalloc-bench -- scaling [--check|--update]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let places = Places::find()?;
    let golden = places.benches("golden/scaling.txt");
    match words.as_slice() {
        [] => {
            let rows = measured(&places)?;
            let text = markdown(&rows);
            println!("{text}");
            let results = [("md", text), ("csv", csv(&rows)), ("svg", picture::of(&rows))];
            results.into_iter().try_for_each(|(ending, text)| {
                let file = format!("scaling.{ending}");
                let path = places.benches(&format!("results/{file}"));
                fs::write(path, text).map_err(|error| format!("{file}: {error}"))
            })
        }
        ["--check"] => {
            let text =
                fs::read_to_string(golden).map_err(|error| format!("the bounds: {error}"))?;
            let over = exceeded(&bounds_of(&text)?, &measured(&places)?);
            over.iter().for_each(|line| println!("scaling: {line}"));
            if over.is_empty() {
                println!("scaling: all within the bounds");
                return Ok(());
            }
            Err(format!("{} counts over their bounds", over.len()))
        }
        ["--update"] => {
            // The largest of three runs, because the counts that depend on interleaving differ.
            let mut most = measured(&places)?;
            for _ in 0..2 {
                for (key, row) in measured(&places)? {
                    let kept = most.entry(key).or_insert(row);
                    kept.iter_mut().zip(row).for_each(|(most, count)| *most = count.max(*most));
                }
            }
            fs::write(golden, bounds(&most)).map_err(|error| format!("the bounds: {error}"))
        }
        _ => Err("scaling takes --check, --update or nothing".to_owned()),
    }
}

fn measured(places: &Places) -> Result<Rows, String> {
    let launch = prepare::programs(places)?.launch;
    let ours = prepare::contender(places, peers::by_name(peers::OURS)?, (true, false))?;
    let library = ours.shared_object.ok_or("our shared object was not built")?;
    let program =
        prepare::c_program(places, "scaling", &["-fno-builtin-malloc", "-fno-builtin-free"])?;
    let mut rows = Rows::new();
    for (number, workload) in WORKLOADS.into_iter().enumerate() {
        for threads in THREADS {
            let row = one(&launch, &library, &program, (workload, threads))
                .map_err(|why| format!("{workload} with {threads} threads: {why}"))?;
            rows.insert((number, threads), row);
        }
    }
    Ok(rows)
}

fn one(
    launch: &Path,
    library: &Path,
    program: &Path,
    (workload, threads): (&str, u32),
) -> Result<Row, String> {
    let mut command = Command::new(launch);
    command.env_clear().env("LD_PRELOAD", library).arg("60").arg(program);
    command.args([workload, &threads.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("the launcher: {error}"))?;
    let names: String = SUMS
        .iter()
        .flat_map(|(_, counters)| counters.iter())
        .map(|counter| format!("stats.work.{counter}\n"))
        .collect();
    if let Some(mut input) = child.stdin.take() {
        input.write_all(names.as_bytes()).map_err(|error| format!("the names: {error}"))?;
    }
    let done = child.wait_with_output().map_err(|error| format!("the launcher: {error}"))?;
    read(&String::from_utf8_lossy(&done.stdout))
}

/// Reads the counts and converts them to counts per million operations.
fn read(said: &str) -> Result<Row, String> {
    let usage = said.lines().find_map(|line| line.strip_prefix("usage ")).unwrap_or_default();
    let faults = read_usage(usage, 0.0)?.faults as u64;
    let counts: BTreeMap<&str, u64> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
        .collect();
    let operations = *counts.get("operations").ok_or("no operations were counted")?;
    let mut row = Row::default();
    for (sum, (name, counters)) in row.iter_mut().zip(SUMS) {
        let mut count = if name == "faults" { faults } else { 0 };
        for counter in counters {
            let full = format!("stats.work.{counter}");
            count += counts.get(full.as_str()).ok_or_else(|| format!("no {full} was counted"))?;
        }
        *sum = count * 1_000_000 / operations;
    }
    Ok(row)
}

fn markdown(rows: &Rows) -> String {
    let mut text = String::from(
        "# Scaling on paper\n\nWhat the slow paths of lumalloc do per million operations (an \
         allocation with its free), by threads; made by `lumalloc-bench -- scaling`. \
         [docs/scaling.md](../docs/scaling.md) reads it.\n\n![counts by threads](scaling.svg)\n",
    );
    for (number, workload) in WORKLOADS.into_iter().enumerate() {
        let _ = writeln!(text, "\n## {workload}\n");
        let mut table = vec![vec!["threads".to_owned()]];
        table[0].extend(SUMS.iter().map(|(name, _)| (*name).to_owned()));
        for threads in THREADS {
            if let Some(row) = rows.get(&(number, threads)) {
                let mut cells = vec![threads.to_string()];
                cells.extend(row.iter().map(u64::to_string));
                table.push(cells);
            }
        }
        text += &aligned(&table);
    }
    text
}

/// One line per workload and number of threads.
fn csv(rows: &Rows) -> String {
    let mut text = String::from("workload,threads");
    SUMS.iter().for_each(|(name, _)| text += &format!(",{}", name.replace(' ', "_")));
    text += "\n";
    for ((number, threads), row) in rows {
        let _ = write!(text, "{},{threads}", WORKLOADS[*number]);
        row.iter().for_each(|count| text += &format!(",{count}"));
        text += "\n";
    }
    text
}

/// Counts that depend on how threads interleave. Futex is among the system calls, and a block of a
/// shared slab is returned by a remote word only if the bin's lock is taken.
const CONTENDED: [&str; 4] = ["waits", "remote words", "retries", "system calls"];

/// Bounds for the measured counts: half as much again and a margin for counts near zero. Counts
/// that differ from run to run get three times as much and a large margin.
fn bounds(rows: &Rows) -> String {
    let mut text = String::from(
        "# Most of each count per million operations; see benches/docs/scaling.md.\n\
         # Written by `lumalloc-bench -- scaling --update`.\n# workload threads",
    );
    SUMS.iter().for_each(|(name, _)| text += &format!(" {}", name.replace(' ', "-")));
    text += "\n";
    for ((number, threads), row) in rows {
        let _ = write!(text, "{} {threads}", WORKLOADS[*number]);
        for (count, (what, _)) in row.iter().zip(SUMS) {
            let is_contended = CONTENDED.contains(&what);
            let most = match (WORKLOADS[*number], is_contended) {
                // Every operation of `buffers` takes locks, and how the threads interleave differs.
                ("buffers", true) => 1_000_000,
                ("buffers", false) => count * 5 / 2 + 500,
                (_, true) => count * 3 + 20_000,
                // Which cache finds a slab, and so how often a bin is asked, differs too.
                (_, false) if what == "locks of arenas" => count * 5 / 2 + 500,
                (_, false) => count * 3 / 2 + 500,
            };
            let _ = write!(text, " {most}");
        }
        text += "\n";
    }
    text
}

fn bounds_of(text: &str) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let read = || -> Option<((usize, u32), Row)> {
            let first = words.first()?;
            let number = WORKLOADS.iter().position(|name| name == first)?;
            let counts: Option<Vec<u64>> = words.iter().skip(2).map(|w| w.parse().ok()).collect();
            Some(((number, words.get(1)?.parse().ok()?), counts?.try_into().ok()?))
        };
        let (key, row) = read().ok_or_else(|| format!("no bounds: {line}"))?;
        rows.insert(key, row);
    }
    Ok(rows)
}

/// The counts that exceed their bounds or have none.
fn exceeded(bounds: &Rows, rows: &Rows) -> Vec<String> {
    let mut lines = Vec::new();
    for ((number, threads), row) in rows {
        let name = WORKLOADS[*number];
        let Some(most) = bounds.get(&(*number, *threads)) else {
            lines.push(format!(
                "{name} with {threads} threads has no bounds (--update writes them)"
            ));
            continue;
        };
        for ((count, most), (what, _)) in row.iter().zip(most).zip(SUMS) {
            if count > most {
                lines
                    .push(format!("{name} with {threads} threads: {count} {what}, at most {most}"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Row, Rows, SUMS, bounds, bounds_of, csv, exceeded, read};

    fn said(zero: &str) -> String {
        let counters = SUMS.iter().flat_map(|(_, counters)| counters.iter());
        let lines: String =
            counters.map(|counter| format!("stats.work.{counter} {zero}\n")).collect();
        format!("operations 500000\n{lines}usage 0 1 1 100 40 0\n")
    }

    #[test]
    fn counts_are_of_a_million_operations() {
        let row = read(&said("3")).unwrap();
        assert_eq!((row[0], row[1], row[8]), (6, 12, 80));
        let without = said("3").replace("stats.work.cas_retries 3\n", "");
        assert_eq!(read(&without).unwrap_err(), "no stats.work.cas_retries was counted");
    }

    #[test]
    fn a_line_of_csv_is_a_run() {
        let row: Row = std::array::from_fn(|at| at as u64);
        let text = csv(&Rows::from([((2, 16), row)]));
        let (head, line) = text.split_once('\n').unwrap();
        assert!(head.starts_with("workload,threads,locks_of_caches,"), "{head}");
        assert_eq!(line, "buffers,16,0,1,2,3,4,5,6,7,8\n");
        assert_eq!(head.matches(',').count(), line.matches(',').count());
    }

    #[test]
    fn what_is_over_its_bound_is_named() {
        let measured: Row = [1000; SUMS.len()];
        let rows = Rows::from([((1, 4), measured)]);
        let golden = bounds_of(&bounds(&rows)).unwrap();
        assert_eq!(golden[&(1, 4)][0], 2000);
        assert!(exceeded(&golden, &rows).is_empty());
        assert_eq!(golden[&(1, 4)][3], 23_000);
        let mut worse = measured;
        worse[6] = 2001;
        let worse = Rows::from([((1, 4), worse), ((1, 8), measured)]);
        assert_eq!(
            exceeded(&golden, &worse),
            [
                "pass with 4 threads: 2001 refills, at most 2000",
                "pass with 8 threads has no bounds (--update writes them)"
            ]
        );
        assert!(bounds_of("own 1 2 x").is_err());
    }
}
