//! Compares lumalloc with its peers. Every workload runs in a process of its own, interleaved over
//! the allocators, in several rounds. The results are ratios to mimalloc v3 and to the best peer
//! with their noise, and memory, faults and system calls.
//!
//! ```text
//! arguments -> cases x peers -> prepare (build all) -> measure -> store (CSV) -> report, plots
//! ```

mod arguments;
mod bursts;
mod cases;
mod chart;
mod commands;
mod figures;
mod machine;
mod measure;
mod options;
mod peers;
mod places;
mod plots;
mod prepare;
mod profilers;
mod programs;
mod progress;
mod regions;
mod report;
mod results;
mod run;
mod sampling;
mod scaling;
mod sources;
mod store;
mod svg;
mod targets;
mod traces;
mod warm;

use arguments::{Command, HELP};
use cases::{Case, Door, WORKLOADS};
use measure::{Kind, Task};
use options::Options;
use places::Places;
use prepare::Contender;
use results::Results;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use store::Store;

fn list() {
    println!("workloads (behind both doors, c/ and rust/):");
    WORKLOADS.iter().for_each(|w| println!("  {} {}", w.group, w.name));
    println!("peers (* by default):");
    for peer in &peers::PEERS {
        let star = if peer.by_default { "*" } else { " " };
        let doors = [Door::C, Door::Rust].into_iter().filter(|door| door.admits(peer));
        let mut notes: Vec<String> = doors.map(|door| door.name().to_owned()).collect();
        let variables = peer.environment.iter().map(|(name, value)| format!("{name}={value}"));
        notes.extend(variables);
        if !peer.background.is_empty() {
            notes.push("has a background thread".to_owned());
        }
        let ours = if peer.is_ours() { " (ours)" } else { "" };
        println!("{star} {}{ours}: {}", peer.name, notes.join(", "));
    }
}

/// The results that earlier commands stored for a kind of measurement.
fn earlier(out: &Path, kind: Kind) -> Result<Option<Store>, String> {
    let file = format!("{}.csv", kind.name());
    match fs::read_to_string(out.join(&file)) {
        Ok(text) => {
            let store = Store::read(&text, kind.columns());
            store.map(Some).map_err(|why| format!("{file}: {why}"))
        }
        Err(_) => Ok(None),
    }
}

/// Refuses to keep rows of peers that are not measured now, because the best peer of the cases that
/// are measured now would not be found among all.
fn has_all_peers(before: &Store, cases: &[Case], options: &Options) -> Result<(), String> {
    for door in [Door::C, Door::Rust] {
        let missing = before.peers_beside(door, &options.peers);
        if cases.iter().any(|case| case.door == door) && !missing.is_empty() {
            let list = missing.join(", ");
            return Err(format!(
                "--merge: the earlier results have peers that --peers leaves out: {list}"
            ));
        }
    }
    Ok(())
}

/// Measures, and returns how many series failed.
fn measure(
    kinds: &[Kind],
    options: &Options,
    places: &Places,
    out: &Path,
) -> Result<usize, String> {
    let cases = cases::chosen(&options.only)?;
    let doors = [Door::C, Door::Rust].map(|door| cases.iter().any(|case| case.door == door));
    let programs = prepare::programs(places)?;
    let mut contenders: Vec<Contender> = Vec::new();
    for peer in &options.peers {
        eprintln!("building {}", peer.name);
        let ready = prepare::contender(places, peer, (doors[0], doors[1]))
            .map_err(|why| format!("{why}\n(or leave it out: --without {})", peer.name))?;
        contenders.push(ready);
    }
    let mut failed = 0;
    for &kind in kinds {
        let cases: Vec<Case> = cases.iter().copied().filter(|case| kind.wants(*case)).collect();
        let before = if options.merge { earlier(out, kind)? } else { None };
        before.as_ref().map_or(Ok(()), |before| has_all_peers(before, &cases, options))?;
        let file = format!("{}.csv", kind.name());
        let save = |store: &Store| {
            let all = before.clone().map_or_else(|| store.clone(), |old| old.with(store.clone()));
            write(out, &file, &all.csv())
        };
        let task = Task {
            programs: &programs,
            contenders: &contenders,
            cases: &cases,
            rounds: options.rounds,
            scale: options.scale,
            facts: machine::facts(&contenders, &options.as_given.join(" ")),
            // An error of the last call is reported below.
            save: &|store| drop(save(store)),
        };
        let store = kind.measure(&task);
        failed += store.failures().count();
        save(&store)?;
    }
    Ok(failed)
}

fn write(out: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(out.join(name), text).map_err(|error| format!("{name}: {error}"))
}

/// Makes tables and plots from all stored results.
fn report(out: &Path) -> Result<(), String> {
    let ratios = earlier(out, Kind::Ratios)?.ok_or("no ratios.csv: measure first")?;
    let idle = earlier(out, Kind::Idle)?;
    let calls = earlier(out, Kind::Calls)?;
    let instructions = earlier(out, Kind::Instructions)?;
    let results = Results { ratios, idle, calls, instructions };
    let markdown = report::markdown(&results);
    println!("{markdown}");
    write(out, "suite.md", &markdown)?;
    for (name, picture) in plots::all(&results.ratios) {
        write(out, &name, &picture)?;
    }
    Ok(())
}

fn run(arguments: &[String]) -> Result<(), String> {
    let (kinds, options) = match arguments::parse(arguments)? {
        Command::Help => {
            print!("{HELP}");
            return Ok(());
        }
        Command::List => {
            list();
            return Ok(());
        }
        Command::Measure(kinds, options) => (kinds, options),
        Command::Report(options) => (Vec::new(), options),
    };
    let places = Places::find()?;
    let out = options.out.clone().unwrap_or_else(|| places.benches("results"));
    fs::create_dir_all(&out).map_err(|error| format!("the directory of results: {error}"))?;
    let failed = if kinds.is_empty() { 0 } else { measure(&kinds, &options, &places, &out)? };
    if options.merge || kinds.is_empty() || kinds.contains(&Kind::Ratios) {
        report(&out)?;
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} runs failed, see the report")) }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((command, rest)) if command == "bursts" => bursts::run(rest),
        Some((command, rest)) if command == "profilers" => profilers::run(rest),
        Some((command, rest)) if command == "programs" => programs::run(rest),
        Some((command, rest)) if command == "regions" => regions::run(rest),
        Some((command, rest)) if command == "sampling" => sampling::run(rest),
        Some((command, rest)) if command == "traces" => traces::run(rest),
        Some((command, rest)) if command == "scaling" => scaling::run(rest),
        _ => run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("lumalloc-bench: {message}");
            ExitCode::FAILURE
        }
    }
}
