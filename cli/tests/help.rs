//! The texts of `--help`, which are compared with `help.txt`. With `UPDATE_GOLDEN` set the test
//! writes that file.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The commands, with those that the demonstration starts.
const COMMANDS: [&str; 16] = [
    "",
    "run",
    "map",
    "mprof",
    "heap",
    "flamegraph",
    "events",
    "replay",
    "region",
    "region stat",
    "region walk",
    "region check",
    "region compact",
    "serve",
    "demo-serve",
    "demo-load",
];

#[test]
fn each_help_is_as_in_the_file() {
    let mut all = String::new();
    for command in COMMANDS {
        let mut lumalloc = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
        let words = command.split(' ').filter(|word| !word.is_empty());
        let output = lumalloc.args(words).arg("--help").output().expect("lumalloc starts");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{command}");
        let text = String::from_utf8(output.stdout).expect("text");
        // Writing to a string does not fail.
        let line = format!("$ lumalloc {command} --help").replace("  ", " ");
        let _ = write!(all, "{line}\n{text}\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &all).expect("the file is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the file exists");
    assert!(all == golden, "help.txt differs; the texts are now:\n{all}");
}
