//! What sampling costs loops that only allocate: turns with samples and without in one process.
//!
//! `sampling [--rounds N]` writes `results/sampling.md`.

use crate::commands::finish;
use crate::figures::Figure;
use crate::machine;
use crate::options::number;
use crate::peers;
use crate::places::Places;
use crate::prepare;
use crate::report::aligned;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A description of a loop, and the arguments of `c/sampling.c`.
type Load = (&'static str, [&'static str; 5]);

const LOADS: [Load; 10] = [
    (
        "nothing is freed, 8 to 519 bytes, first byte written",
        ["begun", "200000", "8", "512", "101"],
    ),
    ("nothing is freed, 1 KiB, first byte written", ["begun", "50000", "1024", "1", "101"]),
    ("nothing is freed, 16 KiB, first byte written", ["begun", "20000", "16384", "1", "41"]),
    ("nothing is freed, 8 to 519 bytes, all written", ["written", "200000", "8", "512", "101"]),
    ("nothing is freed, 1 KiB, all written", ["written", "200000", "1024", "1", "41"]),
    ("nothing is freed, 4 KiB, all written", ["written", "50000", "4096", "1", "41"]),
    ("nothing is freed, 16 KiB, all written", ["written", "40000", "16384", "1", "21"]),
    ("blocks are replaced, 8 to 519 bytes, 10,000 blocks", ["pairs", "10000", "8", "512", "301"]),
    ("blocks are replaced, 8 to 519 bytes, 100,000 blocks", ["pairs", "100000", "8", "512", "51"]),
    ("allocated and freed, 1 KiB, nothing written", ["untouched", "2000", "1024", "1", "901"]),
];

/// What a run of the program printed.
#[derive(Clone, Copy)]
struct Run {
    /// Nanoseconds of a block without samples.
    nanoseconds: f64,
    ratio: f64,
    quartiles: [f64; 2],
    /// Samples of a turn.
    samples: f64,
}

/// The largest ratio that is wanted.
const WANTED: f64 = 1.02;

/// `lumalloc-bench -- sampling [--rounds N]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rounds = match words.as_slice() {
        [] => 5,
        ["--rounds", rounds] => number("--rounds", rounds, 100)?,
        _ => return Err("sampling takes --rounds N only".to_owned()),
    };
    let places = Places::find()?;
    let ours = prepare::contender(&places, peers::by_name(peers::OURS)?, (true, false))?;
    let library = ours.shared_object.clone().ok_or("our shared object was not built")?;
    let facts = machine::facts(&[ours], &format!("sampling --rounds {rounds}"));
    let program = prepare::c_program(&places, "sampling", &["-D_GNU_SOURCE"])?;
    let mut runs = vec![Vec::new(); LOADS.len()];
    for _ in 0..rounds {
        for ((name, words), runs) in LOADS.iter().zip(&mut runs) {
            let run = one(&library, &program, words).map_err(|why| format!("{name}: {why}"))?;
            runs.push(run);
        }
    }
    let text = markdown(&runs, rounds, &facts);
    println!("{text}");
    fs::write(places.benches("results/sampling.md"), text)
        .map_err(|error| format!("sampling.md: {error}"))
}

fn one(library: &Path, program: &Path, words: &[&str]) -> Result<Run, String> {
    let mut command = Command::new(program);
    // No thread purges while a turn is measured.
    let conf = "prof:true,lg_prof_sample:40,prof_final:false,background_thread:false";
    command.args(words).env_clear().env("LD_PRELOAD", library).env("LUMALLOC_CONF", conf);
    let said = finish(&mut command)?;
    parsed(&said).ok_or_else(|| format!("it printed {said:?}"))
}

fn parsed(said: &str) -> Option<Run> {
    let line = said.lines().find_map(|line| line.strip_prefix("sampling "))?;
    let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [nanoseconds, ratio, low, high, samples] = numbers[..] else { return None };
    Some(Run { nanoseconds, ratio, quartiles: [low, high], samples })
}

fn markdown(runs: &[Vec<Run>], rounds: u32, facts: &[(String, String)]) -> String {
    let mut text = String::from("# What sampling costs loops that only allocate\n\n");
    for (name, value) in facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = write!(
        text,
        "\nEach loop runs in turns with one sample in 512 KiB (`prof:true`) and without any, in \
         one process, so that both have\nthe same memory; medians of {rounds} runs of 21 to 901 \
         pairs of turns. *Ratio* is the time with samples to the time\nwithout, with the quartiles \
         of the pairs. Where nothing is freed, the heap grows from the system's memory in each\n\
         turn. The shorter a loop takes for a block, the more of its time a sample is: 512 blocks \
         of 1 KiB to which nothing is\nwritten take some 7 µs, of which 2 % are the time of one or \
         two loads from memory.\n\n"
    );
    let header = ["loop", "ns a block", "ratio", "quartiles", "ns a sample"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut missed = 0;
    for ((name, words), runs) in LOADS.iter().zip(runs) {
        let median = |of: fn(&Run) -> f64| {
            Figure::of(runs.iter().map(of)).map_or(0.0, |figure| figure.median)
        };
        let (time, ratio) = (median(|run| run.nanoseconds), median(|run| run.ratio));
        missed += usize::from(ratio >= WANTED + 0.0005);
        let blocks: f64 = words[1].parse().unwrap_or(0.0);
        let many = if words[0] == "pairs" { 10.0 * blocks } else { blocks };
        let sample = (ratio - 1.0) * time * many / median(|run| run.samples).max(1.0);
        rows.push(vec![
            (*name).to_owned(),
            format!("{time:.1}"),
            format!("{ratio:.3}"),
            format!("{:.3} {:.3}", median(|run| run.quartiles[0]), median(|run| run.quartiles[1])),
            format!("{sample:.0}"),
        ]);
    }
    let count = LOADS.len();
    let wanted = match missed {
        0 => "reached".to_owned(),
        _ => format!("**missed** in {missed} of {count} loops"),
    };
    text + &aligned(&rows) + &format!("\nWanted: at most {WANTED} in each loop: {wanted}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_sample_is_what_a_turn_takes_longer_by_its_samples() {
        let run = parsed("sampling 100.00 1.0200 1.0100 1.0300 400.0\n").expect("five numbers");
        let runs = vec![vec![run]; LOADS.len()];
        let text = markdown(&runs, 1, &[("date".to_owned(), "today".to_owned())]);
        assert!(text.contains("- date: today\n"));
        let row = text.lines().find(|line| line.contains("1 KiB, first byte")).expect("a row");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // 50,000 blocks of 100 ns take 100 us longer, for 400 samples.
        assert_eq!(cells[2..6], ["100.0", "1.020", "1.010 1.030", "250"]);
        assert!(parsed("sampling 1 2 3\n").is_none() && parsed("").is_none());
    }
}
