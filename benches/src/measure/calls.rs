//! System calls about memory, counted by strace in a separate run, whose time is not used.

use super::{Outcome, Task};
use crate::cases::Case;
use crate::prepare::Contender;
use crate::run::Program;
use std::ffi::OsString;
use std::fs;

/// The counted calls, and the operations of the run.
pub(super) const COLUMNS: &[&str] =
    &["mmap", "munmap", "mremap", "mprotect", "madvise", "process_madvise", "brk", "operations"];

pub(super) fn one(task: &Task<'_>, case: Case, contender: &Contender) -> Outcome {
    let program = Program::of(task.programs, contender, case, &[])?;
    let table = task.programs.scratch.join("strace.txt");
    let (calls, _) = COLUMNS.split_at(COLUMNS.len() - 1);
    let mut tool: Vec<OsString> =
        ["/usr/bin/strace", "-f", "-qq", "--seccomp-bpf", "-c", "-U"].map(OsString::from).to_vec();
    tool.extend(["name,calls", "-e"].map(OsString::from));
    tool.push(format!("trace={}", calls.join(",")).into());
    tool.extend(["-o".into(), table.clone().into_os_string()]);
    for (name, value) in &program.environment {
        let mut assignment = name.clone();
        assignment.push("=");
        assignment.push(value);
        tool.extend(["-E".into(), assignment]);
    }
    let arguments = [case.workload.name, &task.scale.to_string()];
    let answer = program.finish(program.under(task.programs, &tool, &arguments))?;
    let table = fs::read_to_string(table).map_err(|error| format!("strace's table: {error}"))?;
    let mut numbers: Vec<f64> = calls.iter().map(|call| count(&table, call)).collect();
    numbers.push(answer.operations);
    Ok(numbers)
}

/// The count of a call in a table with the columns name and calls; 0 if the call is missing.
fn count(table: &str, call: &str) -> f64 {
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(call));
    row.and_then(|row| row.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn calls_are_found_by_name() {
        let table = "syscall              calls\n---------------- ---------\n\
                     mmap                    15\nmunmap                   3\n\
                     ---------------- ---------\ntotal                   18\n";
        assert_eq!((count(table, "mmap"), count(table, "munmap")), (15.0, 3.0));
        assert_eq!(count(table, "madvise"), 0.0);
    }
}
