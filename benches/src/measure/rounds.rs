//! Time, peak RSS and faults: a round runs each case on every peer once before the next begins,
//! each case of each round beginning with another peer.

use super::{Outcome, Task, progress, row};
use crate::cases::Case;
use crate::prepare::Contender;
use crate::run::Program;
use crate::store::Store;
use std::process::Command;

/// Times in nanoseconds for one operation; `wall_ns` of the measured part, the others of the whole
/// process.
pub(super) const COLUMNS: &[&str] = &["wall_ns", "user_ns", "system_ns", "peak_rss_kib", "faults"];

/// Where `peak_rss_kib` is among them.
const PEAK: usize = 3;
/// What is touched before a run, at least and at most.
const LEAST_MIB: f64 = 32.0;
const MOST_MIB: f64 = 4096.0;

pub(super) fn all(task: &Task<'_>) -> Store {
    let mut store = Store::new(COLUMNS, task.facts.clone());
    let mut peaks = vec![0.0; task.cases.len()];
    for round in 1..=task.rounds {
        for (number, &case) in task.cases.iter().enumerate() {
            let contenders: Vec<&Contender> = task.admitted(case).collect();
            if round == 1 {
                warm_up(task, case, &contenders, &mut peaks[number]);
            }
            for turn in 0..contenders.len() {
                let contender = contenders[(round + number + turn) % contenders.len()];
                let peer = contender.peer;
                if store.failed(case, peer.name) {
                    continue;
                }
                progress(&format!("round {round}/{}: {} {}", task.rounds, case.name(), peer.name));
                supply(task, peaks[number]);
                let outcome = one(task, case, contender);
                note_peak(&mut peaks[number], &outcome);
                store.push(row(case, peer, round, outcome));
            }
        }
        (task.save)(&store);
    }
    progress("");
    store
}

/// Runs that nobody looks at, so that the case's peak is known, and code is in the page cache.
fn warm_up(task: &Task<'_>, case: Case, contenders: &[&Contender], peak: &mut f64) {
    progress(&format!("warming up: {}", case.name()));
    let first = contenders.first().filter(|_| contenders.len() > 1);
    for contender in contenders.last().into_iter().chain(first) {
        note_peak(peak, &one(task, case, contender));
    }
}

fn note_peak(peak: &mut f64, outcome: &Outcome) {
    if let Ok(numbers) = outcome {
        *peak = peak.max(numbers[PEAK]);
    }
}

/// Touches as much memory as the case's peak so far and a quarter more, and gives it back. On a
/// virtual machine, who first touches memory pays for the host's giving it, ten times the price of
/// a fault: that would be whoever comes after one that took less.
fn supply(task: &Task<'_>, peak_kib: f64) {
    let mib = (peak_kib / 1024.0 * 1.25).clamp(LEAST_MIB, MOST_MIB).round();
    let _ = Command::new(&task.programs.launch).args(["warm", &mib.to_string()]).status();
}

fn one(task: &Task<'_>, case: Case, contender: &Contender) -> Outcome {
    let program = Program::of(task.programs, contender, case, &[])?;
    let scale = task.scale.to_string();
    let answer = program.finish(program.launched(task.programs, &[case.workload.name, &scale]))?;
    let each = |ns: f64| ns / answer.operations;
    Ok(vec![
        each(answer.wall_ns),
        each(answer.user_ns),
        each(answer.system_ns),
        answer.peak_rss_kib,
        answer.faults,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_peak_counts_and_a_failed_run_does_not() {
        assert_eq!(COLUMNS[PEAK], "peak_rss_kib");
        let mut peak = 0.0;
        note_peak(&mut peak, &Ok(vec![1.0, 1.0, 1.0, 4096.0, 9.0]));
        note_peak(&mut peak, &Ok(vec![1.0, 1.0, 1.0, 2048.0, 9.0]));
        note_peak(&mut peak, &Err("killed".to_owned()));
        assert!((peak - 4096.0).abs() < f64::EPSILON);
    }
}
