//! Time, peak RSS and faults. A round runs each case on every peer once before the next round
//! begins. Each case of each round begins with another peer.

use super::{Outcome, Task, row};
use crate::cases::Case;
use crate::prepare::Contender;
use crate::progress::progress;
use crate::run::Program;
use crate::store::Store;
use crate::warm::Peak;

/// Times in nanoseconds per operation: `wall_ns` of the measured part, the others of the whole
/// process.
pub(super) const COLUMNS: &[&str] = &["wall_ns", "user_ns", "system_ns", "peak_rss_kib", "faults"];

/// The index of `peak_rss_kib` in [`COLUMNS`].
const PEAK: usize = 3;

pub(super) fn all(task: &Task<'_>) -> Store {
    let mut store = Store::new(COLUMNS, task.facts.clone());
    let mut peaks = vec![Peak::default(); task.cases.len()];
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
                peaks[number].supply(&task.programs.launch);
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

/// Does runs that are not counted, one on each peer, so that the largest peak is known before any
/// run counts, and all code is in the page cache.
fn warm_up(task: &Task<'_>, case: Case, contenders: &[&Contender], peak: &mut Peak) {
    for contender in contenders {
        progress(&format!("warming up: {} {}", case.name(), contender.peer.name));
        note_peak(peak, &one(task, case, contender));
    }
}

fn note_peak(peak: &mut Peak, outcome: &Outcome) {
    if let Ok(numbers) = outcome {
        peak.note(numbers[PEAK]);
    }
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
    fn a_failed_run_has_no_peak() {
        assert_eq!(COLUMNS[PEAK], "peak_rss_kib");
        let mut peak = Peak::default();
        note_peak(&mut peak, &Ok(vec![1.0, 1.0, 1.0, 80.0 * 1024.0, 9.0]));
        note_peak(&mut peak, &Err("killed".to_owned()));
        assert!((peak.mib() - 100.0).abs() < f64::EPSILON);
    }
}
