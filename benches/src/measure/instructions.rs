//! Instructions per operation, counted by callgrind: the difference between runs at 2 and at 1 per
//! cent, so that the start of the process and the preparation of the workload cancel.

use super::{Outcome, Task};
use crate::cases::Case;
use crate::prepare::Contender;
use crate::run::Program;
use std::ffi::OsString;
use std::fs;

/// Instructions of the whole process, including those of the workload.
pub(super) const COLUMNS: &[&str] = &["instructions"];

pub(super) fn one(task: &Task<'_>, case: Case, contender: &Contender) -> Outcome {
    let program = Program::of(task.programs, contender, case, &[])?;
    let (small, fewer) = count(task, &program, case, "1")?;
    let (large, more) = count(task, &program, case, "2")?;
    if more <= fewer {
        return Err("as many operations at 2 per cent as at 1".to_owned());
    }
    Ok(vec![(large - small) / (more - fewer)])
}

/// The instructions and the operations of one run.
fn count(
    task: &Task<'_>,
    program: &Program,
    case: Case,
    scale: &str,
) -> Result<(f64, f64), String> {
    let log = task.programs.scratch.join("callgrind.txt");
    let mut file = OsString::from("--log-file=");
    file.push(&log);
    let mut tool: Vec<OsString> = vec!["/usr/bin/env".into()];
    for (name, value) in &program.environment {
        let mut assignment = name.clone();
        assignment.push("=");
        assignment.push(value);
        tool.push(assignment);
    }
    let fixed = ["/usr/bin/valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    tool.extend(fixed.map(OsString::from));
    tool.push(file);
    let answer =
        program.finish(program.under(task.programs, &tool, &[case.workload.name, scale]))?;
    let log = fs::read_to_string(log).map_err(|error| format!("callgrind's log: {error}"))?;
    let collected = collected(&log).ok_or("callgrind collected nothing")?;
    Ok((collected, answer.operations))
}

/// Reads the line `==12== Collected : 123456`.
pub(crate) fn collected(log: &str) -> Option<f64> {
    log.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn the_collected_line_is_found() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 4711\n"), Some(4711.0));
        assert_eq!(collected("==1== Events    : Ir\n"), None);
    }
}
