//! Group (e): the malloc calls of real programs, recorded once and replayed under each allocator.
//!
//! ```text
//! record: programs' table -> recorder in front -> raw -> compact -> TARGET/bench/traces/NAME
//! replay: trace -> c/replay.c under each allocator, rounds -> report
//! ```

mod compact;
mod raw;

use crate::commands::finish;
use crate::machine;
use crate::options::{self, Options};
use crate::places::Places;
use crate::prepare::{self, Contender};
use crate::programs::launch::{Sample, Stage, once, preload, read_usage};
use crate::programs::report::{Comparison, Series};
use crate::programs::{census, contenders, keep, made, table, write};
use crate::progress::progress;
use crate::report::aligned;
use crate::warm::Peak;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs whose traces are taken, each with the process that is recorded.
static RECORDED: [(&str, &str); 10] = [
    ("redis-1k", "redis-server"),
    ("sqlite", "sqlite3"),
    ("python-malloc", "python3"),
    ("lua", "lua5.4"),
    ("perl", "perl"),
    ("z3", "z3"),
    ("rustc", "rustc"),
    ("gcc", "cc1"),
    ("http", "http"),
    ("documents", "documents"),
];

/// The number of events that a recording has room for. Later events are left out.
const ROOM: u64 = 8_000_000;

/// `lumalloc-bench -- traces record|replay [OPTIONS]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments.split_first() {
        Some((verb, rest)) if verb == "record" => record(rest),
        Some((verb, rest)) if verb == "replay" => replay(rest),
        _ => Err("traces wants record or replay".to_owned()),
    }
}

fn chosen(only: &[String]) -> Result<Vec<(&'static str, &'static str)>, String> {
    if let Some(unknown) = only.iter().find(|name| RECORDED.iter().all(|(n, _)| n != name)) {
        let known: Vec<&str> = RECORDED.iter().map(|(name, _)| *name).collect();
        return Err(format!("no trace called {unknown}; there are {}", known.join(", ")));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|other| other == name);
    Ok(RECORDED.iter().copied().filter(|(name, _)| wanted(name)).collect())
}

fn trace_path(places: &Places, name: &str) -> PathBuf {
    places.built("traces").join(name)
}

fn record(arguments: &[String]) -> Result<(), String> {
    let options = options::parse("traces record", arguments)?;
    let places = Places::find()?;
    let launch = prepare::programs(&places)?.launch;
    let recorder = census::recorder(&places)?;
    fs::create_dir_all(places.built("traces")).map_err(|error| format!("traces: {error}"))?;
    let head = ["", "operations", "threads", "remote", "peak MiB", "left out", "not in room"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, process) in chosen(&options.only)? {
        progress(&format!("recording {name}"));
        let programs = table::chosen(&[name.to_owned()])?;
        let values = made::make(&places, &programs, options.scale)?;
        let raw = places.built("traces").join("raw");
        let file = fs::File::create(&raw).map_err(|error| format!("the recording: {error}"))?;
        let size = census::HEAD as u64 + ROOM * raw::EVENT as u64;
        file.set_len(size).map_err(|error| format!("the recording: {error}"))?;
        let stage = Stage { launch: &launch, values: &values };
        once(&stage, programs[0], &|command| {
            command.env("LD_PRELOAD", &recorder).env("LUMALLOC_RECORD", &raw);
            command.env("LUMALLOC_RECORD_OF", process);
        })
        .map_err(|why| format!("{name} under the recorder: {why}"))?;
        let (events, lost) = raw::read(&raw)?;
        if events.is_empty() {
            return Err(format!("{name} has no process {process} that allocates"));
        }
        let trace = compact::compact(&events);
        fs::write(trace_path(&places, name), trace.bytes())
            .map_err(|error| format!("the trace of {name}: {error}"))?;
        fs::remove_file(&raw).map_err(|error| format!("the recording: {error}"))?;
        let numbers = [
            trace.operations,
            trace.threads() as u64,
            trace.remote,
            trace.peak_bytes >> 20,
            trace.unknown,
            lost,
        ];
        rows.push([name.to_owned()].into_iter().chain(numbers.map(|n| n.to_string())).collect());
    }
    progress("");
    println!("{}", aligned(&rows));
    Ok(())
}

/// Compiles the replayer.
fn replayer(places: &Places) -> Result<PathBuf, String> {
    let path = places.built("lumalloc-bench-replay");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    for name in ["malloc", "calloc", "realloc", "free"] {
        gcc.arg(format!("-fno-builtin-{name}"));
    }
    finish(gcc.arg(places.benches("c/replay.c")).arg("-o").arg(&path))?;
    Ok(path)
}

fn replay(arguments: &[String]) -> Result<(), String> {
    let options = options::parse("traces replay", arguments)?;
    let places = Places::find()?;
    let traces = chosen(&options.only)?;
    for (name, _) in &traces {
        if !trace_path(&places, name).exists() {
            return Err(format!("no trace of {name}: `lumalloc-bench -- traces record` makes it"));
        }
    }
    let launch = prepare::programs(&places)?.launch;
    let replayer = replayer(&places)?;
    let contenders = contenders(&places, &options)?;
    let mut series = Vec::new();
    for (case, _) in &traces {
        for contender in &contenders {
            series.push(Series { case, peer: contender.peer.name, outcome: Ok(Vec::new()) });
        }
    }
    let mut floors = Vec::new();
    for (number, (name, _)) in traces.iter().enumerate() {
        let trace = trace_path(&places, name);
        floors.push((*name, operations(&trace)?, played(&launch, &replayer, &trace, None)?));
        let mut peak = Peak::default();
        for contender in &contenders {
            progress(&format!("warming up: {name} {}", contender.peer.name));
            let sample = played(&launch, &replayer, &trace, Some(contender));
            sample.iter().for_each(|sample| peak.note(sample.peak_rss_kib));
        }
        for round in 0..options.rounds {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let one = &mut series[number * contenders.len() + index];
                let Ok(samples) = &mut one.outcome else { continue };
                progress(&format!("round {}: {name} {}", round + 1, one.peer));
                peak.supply(&launch);
                match played(&launch, &replayer, &trace, Some(&contenders[index])) {
                    Ok(sample) => {
                        peak.note(sample.peak_rss_kib);
                        samples.push(sample);
                    }
                    Err(why) => one.outcome = Err(why),
                }
            }
        }
    }
    progress("");
    report(&places, &options, &contenders, (series, &floors))
}

/// A trace's name, its operations, and the figures of a replay without an allocator.
type Floor = (&'static str, u64, Sample);

fn report(
    places: &Places,
    options: &Options,
    contenders: &[Contender],
    (series, floors): (Vec<Series>, &[Floor]),
) -> Result<(), String> {
    let mut notes: Vec<keep::Note> = Vec::new();
    for (name, operations, floor) in floors {
        let cells = [
            (operations / 1000).to_string(),
            format!("{:.3}", floor.wall_s),
            format!("{:.1}", floor.peak_rss_kib / 1024.0),
            format!("{:.0}", floor.faults),
        ];
        notes.push(keep::Note { case: name, cells: cells.to_vec() });
    }
    let names: Vec<&'static str> = RECORDED.iter().map(|(name, _)| *name).collect();
    let facts = machine::facts(contenders, &options.as_given.join(" "));
    let measured = keep::Measured { series, notes, facts };
    let kept = keep::merged(&places.built("traces.samples"), options.merge, &names, measured)?;
    let head = ["", "operations, thousands", "floor: wall time, s", "MiB", "faults"];
    let comparison = Comparison {
        title: "Traces of programs, replayed",
        facts: &kept.facts,
        notes: &format!(
            "\n## What is replayed\n\nThe floor is the replay without an allocator: reading the \
             trace and looking up slots. It is part of every figure below.\n\n{}",
            kept.table(&head)
        ),
        cases: &kept.cases,
        series: &kept.series,
    };
    write("traces", places, options, &comparison)
}

/// The number of operations in a trace's head.
fn operations(trace: &Path) -> Result<u64, String> {
    use std::io::Read;
    let mut head = [0; 24];
    let mut file = fs::File::open(trace).map_err(|error| format!("the trace: {error}"))?;
    file.read_exact(&mut head).map_err(|error| format!("the trace: {error}"))?;
    Ok(census::number(&head, 2))
}

/// Replays a trace once; without a contender, the replayer does not allocate, which gives the
/// floor.
fn played(
    launch: &Path,
    replayer: &Path,
    trace: &Path,
    contender: Option<&Contender>,
) -> Result<Sample, String> {
    let mut command = Command::new(launch);
    command.env_clear().arg("120").arg(replayer).arg(trace);
    match contender {
        Some(contender) => preload(&mut command, contender),
        None => {
            command.arg("dry");
        }
    }
    let done = command.output().map_err(|error| format!("the launcher did not start: {error}"))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let expected = contender.and_then(|c| c.shared_object.as_ref()).and_then(|p| p.file_name());
    let expected = expected.map_or_else(|| "libc.so.6".into(), |name| name.to_string_lossy());
    read(&said, &expected).map_err(|why| format!("{why} {errors}"))
}

/// Reads the lines `origin`, `result` and `usage`.
fn read(said: &str, expected: &str) -> Result<Sample, String> {
    let line = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
    let sample = read_usage(line("usage ").unwrap_or_default(), 0.0)?;
    if line("origin ") != Some(expected) {
        return Err(format!("malloc did not come from {expected}"));
    }
    let wall_ns = line("result ").and_then(|rest| rest.split_once(' ')?.1.parse::<f64>().ok());
    let wall_s = wall_ns.ok_or("the replayer printed no result")? / 1e9;
    Ok(Sample { wall_s, ..sample })
}

#[cfg(test)]
mod tests {
    use super::{chosen, read};
    use crate::programs::table;

    #[test]
    fn every_trace_is_of_a_program() {
        for (name, _) in chosen(&[]).unwrap() {
            assert_eq!(table::chosen(&[name.to_owned()]).unwrap().len(), 1);
        }
        assert!(chosen(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn a_replay_is_read() {
        let said = "origin liba.so\nresult 10 2000000000\nusage 0 3 1 2048 70 2\n";
        let sample = read(said, "liba.so").unwrap();
        assert_eq!((sample.wall_s, sample.faults), (2.0, 72.0));
        assert_eq!(read(said, "libb.so").unwrap_err(), "malloc did not come from libb.so");
    }
}
