//! RSS after 20 seconds of idling. The peers of a case work one after the other and then idle at
//! the same time. Peers with a background thread run a second time with it. A process that was
//! killed is run once more, alone.

use super::{Outcome, Task, row};
use crate::cases::Case;
use crate::peers::Environment;
use crate::prepare::Contender;
use crate::progress::progress;
use crate::run::{Program, WAS_KILLED};
use crate::store::Store;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

const SECONDS: &str = "20";

/// KiB right after the work and 20 seconds later, with the defaults and with a background thread.
/// For a peer without a background thread, the second pair repeats the first.
pub(super) const COLUMNS: &[&str] =
    &["worked_kib", "idle_kib", "background_worked_kib", "background_idle_kib"];

pub(super) fn all(task: &Task<'_>) -> Store {
    let mut store = Store::new(COLUMNS, task.facts.clone());
    for &case in task.cases {
        let start = |contender| Pair::start(task, case, contender);
        let pairs: Vec<_> = task.admitted(case).map(|c| (c, start(c))).collect();
        let ends: Vec<_> = pairs.into_iter().map(|(c, pair)| (c, pair.finish())).collect();
        for (contender, outcome) in ends {
            let outcome = match outcome {
                // A process that hangs may have kept the processors from the others.
                Err(why) if why == WAS_KILLED => {
                    progress("");
                    eprintln!("{} {}: {why}; once more", case.name(), contender.peer.name);
                    start(contender).finish()
                }
                outcome => outcome,
            };
            store.push(row(case, contender.peer, 1, outcome));
        }
    }
    progress("");
    store
}

/// One process with the defaults, and one with a background thread if the peer has one.
struct Pair {
    defaults: Result<Idling, String>,
    background: Option<Result<Idling, String>>,
}

impl Pair {
    fn start(task: &Task<'_>, case: Case, contender: &Contender) -> Self {
        let peer = contender.peer;
        progress(&format!("idle: {} {}", case.name(), peer.name));
        let background = (!peer.background.is_empty())
            .then(|| Idling::start(task, case, contender, peer.background));
        Self { defaults: Idling::start(task, case, contender, &[]), background }
    }

    fn finish(self) -> Outcome {
        // Both are finished, even if the first failed, so that no process is left running.
        let defaults = self.defaults.and_then(Idling::finish);
        let background = self.background.map(|second| second.and_then(Idling::finish));
        let mut numbers = defaults?;
        let second = background.unwrap_or_else(|| Ok(numbers.clone()))?;
        numbers.extend(second);
        Ok(numbers)
    }
}

/// A process that has done its work and sleeps now.
struct Idling {
    program: Program,
    child: Child,
    output: BufReader<ChildStdout>,
    said: String,
}

impl Idling {
    fn start(
        task: &Task<'_>,
        case: Case,
        contender: &Contender,
        more: Environment,
    ) -> Result<Self, String> {
        let program = Program::of(task.programs, contender, case, more)?;
        let arguments = [case.workload.name, &task.scale.to_string(), SECONDS];
        let mut command = program.launched(task.programs, &arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("the launcher did not start: {error}"))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut idling =
            Self { program, child, output: BufReader::new(output), said: String::new() };
        // Reads up to the line `idling`, or to the end if the process died.
        while !idling.said.ends_with("idling\n") {
            match idling.output.read_line(&mut idling.said) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        Ok(idling)
    }

    fn finish(mut self) -> Outcome {
        // A failed read leaves the output incomplete, which `read` reports.
        let _ = self.output.read_to_string(&mut self.said);
        let _ = self.child.wait();
        let answer = self.program.read(&self.said)?;
        let (before, after) = answer.idle.ok_or("it did not idle")?;
        Ok(vec![before, after])
    }
}
