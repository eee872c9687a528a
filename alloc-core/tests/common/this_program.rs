//! The running test program, to be started again as a child.

use std::process::Command;

/// This program, run by the emulator if there is one (`tests/aarch64`).
pub(crate) fn this_program() -> Command {
    let program = std::env::current_exe().expect("this program");
    let runner = std::env::var("LUMALLOC_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(emulator) = words.next() else { return Command::new(program) };
    let mut command = Command::new(emulator);
    command.args(words).arg(program);
    command
}
