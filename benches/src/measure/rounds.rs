//! Time, peak RSS and faults: a round runs each case on every peer once before the next begins,
//! each case of each round beginning with another peer.

use super::{Outcome, Task, progress, row};
use crate::cases::Case;
use crate::prepare::Contender;
use crate::run::Program;
use crate::store::Store;

/// Times in nanoseconds for one operation; `wall_ns` of the measured part, the others of the whole
/// process.
pub(super) const COLUMNS: &[&str] = &["wall_ns", "user_ns", "system_ns", "peak_rss_kib", "faults"];

pub(super) fn all(task: &Task<'_>) -> Store {
    let mut store = Store::new(COLUMNS, task.facts.clone());
    for round in 1..=task.rounds {
        for (number, &case) in task.cases.iter().enumerate() {
            let contenders: Vec<&Contender> = task.admitted(case).collect();
            if round == 1 {
                warm_up(task, case, &contenders);
            }
            for turn in 0..contenders.len() {
                let contender = contenders[(round + number + turn) % contenders.len()];
                let peer = contender.peer;
                if store.failed(case, peer.name) {
                    continue;
                }
                progress(&format!("round {round}/{}: {} {}", task.rounds, case.name(), peer.name));
                store.push(row(case, peer, round, one(task, case, contender)));
            }
        }
        (task.save)(&store);
    }
    progress("");
    store
}

/// A run that nobody looks at: on a virtual machine, who first touches memory pays for the host's
/// giving it.
fn warm_up(task: &Task<'_>, case: Case, contenders: &[&Contender]) {
    if let Some(contender) = contenders.last() {
        progress(&format!("warming up: {}", case.name()));
        let _ = one(task, case, contender);
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
