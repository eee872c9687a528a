//! The machine that lumalloc and the test programs are built for: this one, or another one whose
//! programs run in an emulator.
//!
//! [`TARGET_VARIABLE`] names another machine by its Rust target. Its compilers and tools are those
//! of GNU, such as `aarch64-linux-gnu-gcc` for `aarch64-unknown-linux-gnu`. [`RUNNER_VARIABLE`] is
//! the command that runs its programs: `qemu-aarch64 -L ROOT`, where ROOT has the machine's
//! libraries and programs. `tests/aarch64` sets both.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::directories::{root, target_dir};

/// Names the target of the machine under test, if it is not this one.
pub const TARGET_VARIABLE: &str = "LUMALLOC_TEST_TARGET";
/// The emulator for programs of that machine, with its arguments.
pub const RUNNER_VARIABLE: &str = "LUMALLOC_TEST_RUNNER";

/// The Rust target of the other machine; `None` if programs are for this one.
pub fn target() -> Option<String> {
    std::env::var(TARGET_VARIABLE).ok().filter(|target| !target.is_empty())
}

/// Whether an emulator runs the programs under test.
pub fn is_emulated() -> bool {
    target().is_some()
}

/// The name of a compiler or another GNU tool for the machine.
pub fn tool(name: &str) -> String {
    target().map_or_else(|| name.to_owned(), |target| tool_for(&target, name))
}

fn tool_for(target: &str, name: &str) -> String {
    format!("{}-{name}", target.replace("-unknown-", "-"))
}

/// The emulator and its arguments; empty if programs are for this machine.
fn runner() -> Vec<String> {
    if !is_emulated() {
        return Vec::new();
    }
    let runner = std::env::var(RUNNER_VARIABLE);
    let runner = runner.unwrap_or_else(|_| panic!("{TARGET_VARIABLE} without {RUNNER_VARIABLE}"));
    runner.split_whitespace().map(str::to_owned).collect()
}

/// The words that start a program. The emulator comes before programs of the other machine, which
/// are those in cargo's target directory.
pub fn words(program: &OsStr) -> Vec<OsString> {
    let is_for_it = root().join(program).starts_with(target_dir());
    let runner = if is_for_it { runner() } else { Vec::new() };
    runner.into_iter().map(OsString::from).chain([program.to_owned()]).collect()
}

/// The words that start a program, as text for a shell.
pub fn command_line(program: &Path) -> String {
    let words: Vec<String> = words(program.as_os_str())
        .iter()
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8")))
        .collect();
    words.join(" ")
}

/// A program of the machine's system: in Debian's `/usr/bin`, or in `usr/bin` below the directory
/// that `-L` gives to the emulator.
pub fn system_program(name: &str) -> PathBuf {
    let runner = runner();
    let place = runner.iter().position(|word| word == "-L");
    let root = place.and_then(|place| runner.get(place + 1)).map_or("/", String::as_str);
    let dirs = ["usr/bin", "bin"].map(|dir| Path::new(root).join(dir));
    let found = dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not in {dirs:?}"))
}

/// Makes the emulator set variables of the program that it must not obey itself, such as
/// `LD_PRELOAD` with another machine's library. Returns the name and the value of the emulator's
/// own variable.
pub fn hand_on(variables: &[(String, OsString)]) -> (&'static str, OsString) {
    let mut all = OsString::new();
    for (index, (name, value)) in variables.iter().enumerate() {
        let has_comma = value.as_encoded_bytes().contains(&b',');
        assert!(!has_comma, "qemu cuts {name}={} at its comma", value.display());
        if index > 0 {
            all.push(",");
        }
        all.push(name);
        all.push("=");
        all.push(value);
    }
    ("QEMU_SET_ENV", all)
}

/// Standard error without the line that the emulator adds when a signal ends the program.
pub fn without_notice(stderr: Vec<u8>) -> Vec<u8> {
    const NOTICE: &[u8] = b"qemu: uncaught target signal";
    let lines = stderr.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(NOTICE)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_target() {
        let target = "aarch64-unknown-linux-gnu";
        assert_eq!(tool_for(target, "gcc"), "aarch64-linux-gnu-gcc");
    }

    #[test]
    fn variables_are_handed_on_in_one() {
        let of = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
        let (_, text) = hand_on(&[of("LD_PRELOAD", "/a.so:/b.so"), of("LD_LIBRARY_PATH", "/c")]);
        assert_eq!(text, "LD_PRELOAD=/a.so:/b.so,LD_LIBRARY_PATH=/c");
    }

    #[test]
    #[should_panic(expected = "qemu cuts LD_PRELOAD=/a,b.so at its comma")]
    fn a_comma_cannot_be_handed_on() {
        hand_on(&[("LD_PRELOAD".to_owned(), "/a,b.so".into())]);
    }

    #[test]
    fn the_emulator_s_notice_is_left_out() {
        let said = b"<lumalloc>: x\nqemu: uncaught target signal 6 (Aborted) - core dumped\n";
        assert_eq!(without_notice(said.to_vec()), b"<lumalloc>: x\n");
        assert_eq!(without_notice(b"a\nb".to_vec()), b"a\nb");
    }
}
