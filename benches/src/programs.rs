//! Group (d): real programs, each with an allocator preloaded.
//!
//! ```text
//! table -> made (packages, inputs, builds) -> bound (is the allocator in front?)
//!       -> census (how much do they allocate?) -> launch (rounds) -> report
//! ```

mod bound;
pub(crate) mod census;
mod inputs;
pub(crate) mod keep;
pub(crate) mod launch;
pub(crate) mod line;
pub(crate) mod made;
pub(crate) mod report;
pub(crate) mod table;

use crate::machine;
use crate::options::{self, Options};
use crate::places::Places;
use crate::prepare::{self, Contender};
use crate::progress::progress;
use crate::warm::Peak;
use launch::{Stage, once, preload};
use report::{Comparison, Series};
use std::fs;
use table::Program;

/// `lumalloc-bench -- programs [OPTIONS]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = options::parse("programs", arguments)?;
    let programs = table::chosen(&options.only)?;
    let places = Places::find()?;
    let launch = prepare::programs(&places)?.launch;
    let contenders = contenders(&places, &options)?;
    let short = made::make(&places, &programs, 1)?;
    let full = made::make(&places, &programs, options.scale)?;
    let counted = census::take(&places, &launch, &programs, &full)?;
    for program in &programs {
        for contender in &contenders {
            progress(&format!("in front of {}? {}", program.name, contender.peer.name));
            bound::check(&Stage { launch: &launch, values: &short }, program, contender)
                .map_err(|why| format!("{} under {}: {why}", program.name, contender.peer.name))?;
        }
    }
    let stage = Stage { launch: &launch, values: &full };
    let series = all_rounds(&stage, &programs, &contenders, options.rounds);
    let facts = machine::facts(&contenders, &options.as_given.join(" "));
    let names: Vec<&'static str> = table::PROGRAMS.iter().map(|program| program.name).collect();
    let file = places.built("programs.samples");
    let measured = keep::Measured { series, notes: census::notes(&counted), facts };
    let kept = keep::merged(&file, options.merge, &names, measured)?;
    let comparison = Comparison {
        title: "Programs under each allocator",
        facts: &kept.facts,
        notes: &format!("\n## What a run asks for\n\n{}", kept.table(&census::COLUMNS)),
        cases: &kept.cases,
        series: &kept.series,
    };
    write("programs", &places, &options, &comparison)
}

/// Makes the shared objects of the peers.
pub(crate) fn contenders(places: &Places, options: &Options) -> Result<Vec<Contender>, String> {
    let mut contenders = Vec::new();
    for peer in &options.peers {
        progress(&format!("building {}", peer.name));
        let ready = prepare::contender(places, peer, (true, false))
            .map_err(|why| format!("{why}\n(or leave it out: --without {})", peer.name))?;
        contenders.push(ready);
    }
    Ok(contenders)
}

/// Prints a report and writes it to the directory of results.
pub(crate) fn write(
    name: &str,
    places: &Places,
    options: &Options,
    comparison: &Comparison,
) -> Result<(), String> {
    let file = format!("{name}.svg");
    let picture = comparison.picture();
    let markdown = comparison.markdown(picture.as_ref().map(|_| file.as_str()));
    println!("{markdown}");
    let out = options.out.clone().unwrap_or_else(|| places.benches("results"));
    fs::create_dir_all(&out).map_err(|error| format!("the directory of results: {error}"))?;
    let tables = [(format!("{name}.md"), markdown), (format!("{name}.csv"), comparison.csv())];
    for (file, text) in tables.into_iter().chain(picture.map(|picture| (file, picture))) {
        fs::write(out.join(&file), text).map_err(|error| format!("{file}: {error}"))?;
    }
    let failed = comparison.series.iter().filter(|one| one.outcome.is_err()).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} series failed, see the report")) }
}

/// Runs every program under every allocator, `rounds` times. A round runs all of them before the
/// next begins, and each round begins with another allocator. Runs under each of them before the
/// rounds, which are not counted, find out how much memory a program takes.
fn all_rounds(
    stage: &Stage,
    programs: &[&'static Program],
    contenders: &[Contender],
    rounds: usize,
) -> Vec<Series> {
    let mut series = Vec::new();
    for program in programs {
        for contender in contenders {
            let peer = contender.peer.name;
            series.push(Series { case: program.name, peer, outcome: Ok(Vec::new()) });
        }
    }
    let mut printed: Vec<Option<String>> = vec![None; programs.len()];
    let mut peaks = vec![Peak::default(); programs.len()];
    for (program, peak) in programs.iter().zip(&mut peaks) {
        for contender in contenders {
            progress(&format!("warming up: {} {}", program.name, contender.peer.name));
            if let Ok((sample, _)) = once(stage, program, &|c| preload(c, contender)) {
                peak.note(sample.peak_rss_kib);
            }
        }
    }
    for round in 0..rounds {
        for (number, program) in programs.iter().enumerate() {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let contender = &contenders[index];
                let one = &mut series[number * contenders.len() + index];
                let Ok(samples) = &mut one.outcome else { continue };
                progress(&format!("round {}/{rounds}: {} {}", round + 1, one.case, one.peer));
                peaks[number].supply(stage.launch);
                let done = once(stage, program, &|command| preload(command, contender));
                let same = done.and_then(|(sample, text)| {
                    let first = printed[number].get_or_insert_with(|| text.clone());
                    if *first == text { Ok(sample) } else { Err("printed something else".into()) }
                });
                match same {
                    Ok(sample) => {
                        peaks[number].note(sample.peak_rss_kib);
                        samples.push(sample);
                    }
                    Err(why) => one.outcome = Err(why),
                }
            }
        }
    }
    progress("");
    series
}
