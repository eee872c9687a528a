//! RSS after 20 seconds of idling. All peers of a case work one after the other and then idle side
//! by side; those with a background thread run a second time with it.

use super::{Outcome, Task, progress, row};
use crate::cases::Case;
use crate::peers::Environment;
use crate::prepare::Contender;
use crate::run::Program;
use crate::store::Store;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

const SECONDS: &str = "20";

/// KiB when the work was done and 20 seconds later; with the defaults, and with a background thread
/// where the peer has one. Where it has none, the second pair is the first.
pub(super) const COLUMNS: &[&str] =
    &["worked_kib", "idle_kib", "background_worked_kib", "background_idle_kib"];

pub(super) fn all(task: &Task<'_>) -> Store {
    let mut store = Store::new(COLUMNS, task.facts.clone());
    for &case in task.cases {
        let idling: Vec<_> = task
            .admitted(case)
            .map(|contender| {
                progress(&format!("idle: {} {}", case.name(), contender.peer.name));
                let peer = contender.peer;
                let background = (!peer.background.is_empty())
                    .then(|| Idling::start(task, case, contender, peer.background));
                (peer, Idling::start(task, case, contender, &[]), background)
            })
            .collect();
        for (peer, defaults, background) in idling {
            let outcome = defaults.and_then(Idling::finish).and_then(|mut numbers| {
                let second = background.map_or(Ok(numbers.clone()), |b| b.and_then(Idling::finish));
                numbers.extend(second?);
                Ok(numbers)
            });
            store.push(row(case, peer, 1, outcome));
        }
    }
    progress("");
    store
}

/// A process whose work is done and that sleeps now.
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
        // The line that says so, or the end of a process that died.
        while !idling.said.ends_with("idling\n") {
            match idling.output.read_line(&mut idling.said) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        Ok(idling)
    }

    fn finish(mut self) -> Outcome {
        // What can't be read is missed by whoever parses it.
        let _ = self.output.read_to_string(&mut self.said);
        let _ = self.child.wait();
        let answer = self.program.read(&self.said)?;
        let (before, after) = answer.idle.ok_or("it did not idle")?;
        Ok(vec![before, after])
    }
}
