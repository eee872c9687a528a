//! lumalloc beside its peers: every workload in a process of its own, interleaved over the
//! allocators, several rounds; ratios to mimalloc v3 with their noise, memory and faults beside
//! them.
//!
//! ```text
//! arguments -> cases x peers -> prepare (build all) -> measure (rounds) -> figures -> report
//! ```

mod arguments;
mod cases;
mod figures;
mod machine;
mod measure;
mod peers;
mod prepare;
mod report;
mod sources;

use arguments::{Command, HELP, Options};
use cases::{Door, WORKLOADS};
use prepare::{Contender, Places};
use report::Report;
use std::fs;
use std::process::ExitCode;

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

fn ratios(options: &Options) -> Result<(), String> {
    let places = Places::find()?;
    let cases = cases::chosen(&options.only)?;
    let doors = [Door::C, Door::Rust].map(|door| cases.iter().any(|case| case.door == door));
    let programs = prepare::programs(&places)?;
    let mut contenders: Vec<Contender> = Vec::new();
    for peer in &options.peers {
        eprintln!("building {}", peer.name);
        let ready = prepare::contender(&places, peer, (doors[0], doors[1]))
            .map_err(|why| format!("{why}\n(or leave it out: --without {})", peer.name))?;
        contenders.push(ready);
    }
    let facts = machine::facts(&contenders, &options.as_given.join(" "));
    let series = measure::all_rounds(&programs, &contenders, &cases, options.rounds, options.scale);
    let report = Report { facts: &facts, rounds: options.rounds, cases: &cases, series: &series };
    let markdown = report.markdown();
    println!("{markdown}");
    let out = options.out.clone().unwrap_or_else(|| places.benches("results"));
    let write = |name: &str, text: &str| {
        fs::write(out.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    fs::create_dir_all(&out).map_err(|error| format!("the directory of results: {error}"))?;
    write("ratios.md", &markdown)?;
    write("ratios.csv", &report.csv())?;
    let failed = series.iter().filter(|one| one.outcome.is_err()).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} series failed, see the report")) }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = arguments::parse(&arguments).and_then(|command| match command {
        Command::Help => {
            print!("{HELP}");
            Ok(())
        }
        Command::List => {
            list();
            Ok(())
        }
        Command::Ratios(options) => ratios(&options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("lumalloc-bench: {message}");
            ExitCode::FAILURE
        }
    }
}
