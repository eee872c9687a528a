//! What it costs to record allocations: lumalloc's heap profiler, exact profile and heap monitor,
//! beside heaptrack, interleaved in one run.
//!
//! `profilers [--rounds N]` writes `results/profilers.md`.

use crate::commands::finish;
use crate::figures::Figure;
use crate::machine;
use crate::options::number;
use crate::peers;
use crate::places::Places;
use crate::prepare;
use crate::report::aligned;
use crate::sources::debian_version;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A way to run the program.
struct Way {
    name: &'static str,
    /// The options of lumalloc, if it is preloaded.
    conf: Option<&'static str>,
    /// The tool that runs the program, with its arguments before the name of its file.
    tool: &'static [&'static str],
    /// The way without recording that it is compared to.
    base: usize,
}

const fn ours(name: &'static str, conf: &'static str) -> Way {
    Way { name, conf: Some(conf), tool: &[], base: 0 }
}

const WAYS: [Way; 10] = [
    ours("lumalloc", ""),
    ours("sampled, one in 512 KiB", "prof:true,prof_final:true"),
    ours("exact, 5 frames", "mprof:true,prof_bt_max:5"),
    ours("exact", "mprof:true"),
    ours("monitor, 5 frames", "monitor:true,prof_bt_max:5"),
    ours("monitor", "monitor:true"),
    Way { name: "glibc", conf: None, tool: &[], base: 6 },
    Way { name: "heaptrack --raw", conf: None, tool: &["heaptrack", "--raw", "-o"], base: 6 },
    Way { name: "heaptrack", conf: None, tool: &["heaptrack", "-o"], base: 6 },
    ours("lumalloc again", ""),
];

/// A name, and the arguments: pairs, work between them, threads.
const LOADS: [(&str, [&str; 3]); 3] = [
    ("allocations only", ["1000000", "0", "1"]),
    ("with work between", ["1000000", "150", "1"]),
    ("two threads", ["500000", "0", "2"]),
];

/// Which numbers the target is about.
const TARGET: &str = "\
The target is that `exact` adds at most half of what `heaptrack` adds, in the column *added ns*,
for each load; `--raw` leaves out heaptrack's second process, which reads and compresses. The
target is not about *ratio*: that divides by the time of the allocator below, which is lumalloc
for one and glibc for the other.";

/// The nanoseconds of a pair, and the bytes of what was written, of one run.
type Sample = (f64, u64);

/// `lumalloc-bench -- profilers [--rounds N]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rounds = match words.as_slice() {
        [] => 5,
        ["--rounds", rounds] => number("--rounds", rounds, 100)?,
        _ => return Err("profilers takes --rounds N only".to_owned()),
    };
    let places = Places::find()?;
    let mut samples: BTreeMap<(usize, usize), Vec<Sample>> = BTreeMap::new();
    let ours = prepare::contender(&places, peers::by_name(peers::OURS)?, (true, false))?;
    let library = ours.shared_object.clone().ok_or("our shared object was not built")?;
    let mut facts = machine::facts(&[ours], &format!("profilers --rounds {rounds}"));
    facts.push(("heaptrack".to_owned(), debian_version("heaptrack")));
    let program = prepare::c_program(&places, "profilers", &[])?;
    for round in 0..rounds as usize {
        for (load, (_, words)) in LOADS.iter().enumerate() {
            for turn in 0..WAYS.len() {
                let way = (round + turn) % WAYS.len();
                let how = &WAYS[way];
                let sample = one(&places, &library, &program, how, words)
                    .map_err(|why| format!("{}: {why}", how.name))?;
                samples.entry((load, way)).or_default().push(sample);
            }
        }
    }
    let text = markdown(&samples, rounds, &facts);
    println!("{text}");
    fs::write(places.benches("results/profilers.md"), text)
        .map_err(|error| format!("profilers.md: {error}"))
}

fn one(
    places: &Places,
    library: &Path,
    program: &Path,
    way: &Way,
    words: &[&str; 3],
) -> Result<Sample, String> {
    let directory = places.built("profilers");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(|error| format!("a directory: {error}"))?;
    let mut command = match way.tool.split_first() {
        None => Command::new(program),
        Some((tool, arguments)) => {
            let mut command = Command::new(tool);
            command.args(arguments).arg(directory.join("recording")).arg(program);
            command
        }
    };
    // heaptrack is a script, which looks for its tools.
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.args(words).current_dir(&directory).env_clear().env("PATH", path);
    if let Some(conf) = way.conf {
        command.env("LD_PRELOAD", library).env("LUMALLOC_CONF", conf);
    }
    let said = finish(&mut command)?;
    let line = said.lines().find_map(|line| line.strip_prefix("pair "));
    let time = line.and_then(|time| time.parse().ok()).ok_or("it printed no time")?;
    let files = fs::read_dir(&directory).map_err(|error| format!("its files: {error}"))?;
    let bytes = files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.len()).sum();
    let _ = fs::remove_dir_all(&directory);
    Ok((time, bytes))
}

fn markdown(
    samples: &BTreeMap<(usize, usize), Vec<Sample>>,
    rounds: u32,
    facts: &[(String, String)],
) -> String {
    let mut text = String::from("# What recording allocations costs\n\n");
    for (name, value) in facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = write!(
        text,
        "\nA C program that replaces blocks of 8 to 519 bytes at random, from six functions deep, \
         interleaved over all ways, of which\neach round begins with another; medians of {rounds} \
         rounds. *Added* is what a pair of free and malloc takes longer than\nwithout recording: \
         lumalloc's ways beside lumalloc, heaptrack's beside glibc. Ratios are medians of those \
         within\nrounds. The file is what one run of 1,000,000 pairs writes.\n\n{TARGET}\n"
    );
    for (load, (name, _)) in LOADS.iter().enumerate() {
        let median = |way: usize, of: fn(&Sample) -> f64| {
            let all = samples.get(&(load, way)).into_iter().flatten().map(of);
            Figure::of(all).map_or(0.0, |figure| figure.median)
        };
        let times = |way: usize| -> Vec<f64> {
            samples.get(&(load, way)).into_iter().flatten().map(|one| one.0).collect()
        };
        let mut rows =
            vec![["", "ns a pair", "added ns", "ratio", "file"].map(str::to_owned).to_vec()];
        for (way, how) in WAYS.iter().enumerate() {
            let (time, base) = (median(way, |one| one.0), median(how.base, |one| one.0));
            let ratio = Figure::of_ratios(&times(way), &times(how.base));
            let bytes = median(way, |one| one.1 as f64);
            rows.push(vec![
                how.name.to_owned(),
                format!("{time:.0}"),
                format!("{:.0}", time - base),
                format!("{:.2}", ratio.map_or(0.0, |ratio| ratio.median)),
                size(bytes),
            ]);
        }
        let _ = write!(text, "\n## {name}\n\n{}", aligned(&rows));
    }
    text
}

fn size(bytes: f64) -> String {
    match bytes {
        0.0 => "–".to_owned(),
        ..1e6 => format!("{:.0} kB", bytes / 1e3),
        _ => format!("{:.1} MB", bytes / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_each_way_with_its_base() {
        let mut samples = BTreeMap::new();
        for load in 0..LOADS.len() {
            for way in 0..WAYS.len() {
                let time = if way == 6 { 50.0 } else { 20.0 + 10.0 * way as f64 };
                samples.insert((load, way), vec![(time, 1000 * way as u64)]);
            }
        }
        let text = markdown(&samples, 1, &[("date".to_owned(), "today".to_owned())]);
        assert!(text.contains("- date: today\n"));
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("heaptrack --raw") && line.starts_with('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), LOADS.len(), "{text}");
        assert_eq!(rows[0][2..6], ["90", "40", "1.80", "7 kB"]);
        assert_eq!((size(2.5e6), size(0.0)), ("2.5 MB".to_owned(), "–".to_owned()));
    }
}
