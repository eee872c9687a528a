//! One run of one case on one peer, in a process of its own, and all rounds of all of them.

use crate::cases::{Case, Door};
use crate::prepare::{Contender, Programs};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A run that takes longer is killed and counts as failed.
const TIME_LIMIT_SECONDS: &str = "180";

/// What one run took.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Wall time for one operation.
    pub(crate) wall_ns: f64,
    /// User and system time of the whole process, for one operation.
    pub(crate) cpu_ns: f64,
    pub(crate) peak_rss_kib: f64,
    pub(crate) faults: f64,
}

/// All rounds of one case on one peer.
pub(crate) struct Series {
    pub(crate) case: Case,
    pub(crate) peer: &'static str,
    pub(crate) outcome: Result<Vec<Sample>, String>,
}

impl Series {
    /// One number of every round; nothing if the case failed on this peer.
    pub(crate) fn each(&self, number: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.outcome.iter().flatten().map(number).collect()
    }
}

/// Runs every case on every contender that its door admits, `rounds` times. A round visits all of
/// them before the next begins, each round beginning with another contender.
pub(crate) fn all_rounds(
    programs: &Programs,
    contenders: &[Contender],
    cases: &[Case],
    rounds: usize,
    scale: u32,
) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for &case in cases {
        for contender in contenders.iter().filter(|c| case.door.admits(c.peer)) {
            series.push(Series { case, peer: contender.peer.name, outcome: Ok(Vec::new()) });
        }
    }
    for round in 0..rounds {
        for &case in cases {
            for turn in 0..contenders.len() {
                let contender = &contenders[(round + turn) % contenders.len()];
                let of_this =
                    |s: &&mut Series| s.peer == contender.peer.name && s.case.name() == case.name();
                let Some(one) = series.iter_mut().find(of_this) else { continue };
                let Ok(samples) = &mut one.outcome else { continue };
                progress(&format!("round {}/{rounds}: {} {}", round + 1, case.name(), one.peer));
                match run(programs, contender, case, scale) {
                    Ok(sample) => samples.push(sample),
                    Err(why) => one.outcome = Err(why),
                }
            }
        }
    }
    progress("");
    series
}

fn progress(text: &str) {
    eprint!("\r\x1b[K{text}");
    // A progress line that can't be shown is not worth stopping for.
    let _ = std::io::stderr().flush();
}

fn run(
    programs: &Programs,
    contender: &Contender,
    case: Case,
    scale: u32,
) -> Result<Sample, String> {
    let mut command = Command::new(&programs.launch);
    command.arg(TIME_LIMIT_SECONDS).env_clear().stdin(Stdio::null());
    match case.door {
        Door::C => {
            command.arg(&programs.c);
            contender.preload(&mut command);
        }
        Door::Rust => {
            command.arg(contender.rust_binary.as_ref().ok_or("this peer was not built for Rust")?);
            command.envs(contender.peer.environment.iter().copied());
        }
    }
    let done = command
        .args([case.workload.name, &scale.to_string()])
        .output()
        .map_err(|error| format!("the launcher did not start: {error}"))?;
    let sample = read(&String::from_utf8_lossy(&done.stdout), &expected_origin(contender, case));
    sample.map_err(|why| {
        let said = String::from_utf8_lossy(&done.stderr);
        let last = said.lines().last().unwrap_or_default();
        if last.is_empty() { why } else { format!("{why}: {last}") }
    })
}

/// What the program has to say of where its allocator came from.
fn expected_origin(contender: &Contender, case: Case) -> String {
    match (case.door, &contender.shared_object) {
        (Door::Rust, _) => contender.peer.rust.map_or("nobody", |(feature, _)| feature).to_owned(),
        (Door::C, None) => "libc.so.6".to_owned(),
        (Door::C, Some(path)) => {
            Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
    }
}

/// The lines `origin`, `result` and `usage` of a run.
fn read(output: &str, expected_origin: &str) -> Result<Sample, String> {
    let line = |key: &str| -> Option<Vec<&str>> {
        let found = output.lines().find_map(|line| line.strip_prefix(key));
        found.map(|rest| rest.split_whitespace().collect())
    };
    let numbers = |key: &str| -> Vec<f64> {
        let words = line(key).unwrap_or_default();
        words.iter().filter_map(|word| word.parse().ok()).collect()
    };
    let usage = numbers("usage ");
    let &[code, user_us, system_us, peak_rss_kib, minor, major] = usage.as_slice() else {
        return Err("the launcher printed no usage".to_owned());
    };
    if code != 0.0 {
        return Err(format!("ended with status {code}"));
    }
    if line("origin ").is_none_or(|words| words != [expected_origin]) {
        return Err(format!("malloc did not come from {expected_origin}"));
    }
    let &[operations, wall_ns] = numbers("result ").as_slice() else {
        return Err("the program printed no result".to_owned());
    };
    Ok(Sample {
        wall_ns: wall_ns / operations,
        cpu_ns: (user_us + system_us) * 1000.0 / operations,
        peak_rss_kib,
        faults: minor + major,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_run_is_read() {
        let output = "origin liba.so\nresult 1000 5000\nusage 0 3 1 2048 70 2\n";
        let sample = read(output, "liba.so").unwrap();
        assert_eq!(
            (sample.wall_ns, sample.cpu_ns, sample.peak_rss_kib, sample.faults),
            (5.0, 4.0, 2048.0, 72.0)
        );
    }

    #[test]
    fn an_allocator_that_is_not_the_one_asked_for_is_noticed() {
        let output = "origin libc.so.6\nresult 1000 5000\nusage 0 3 1 2048 70 2\n";
        assert_eq!(read(output, "liba.so").err().unwrap(), "malloc did not come from liba.so");
    }

    #[test]
    fn a_death_is_a_failure() {
        let output = "origin liba.so\nusage 134 3 1 2048 70 2\n";
        assert_eq!(read(output, "liba.so").err().unwrap(), "ended with status 134");
    }
}
