//! What a test could not try on this machine.

use std::io::Write;

/// Says what is not tried, and why. The harness shows what `eprintln!` writes only if the test
/// fails, so this goes to standard error itself. `tests/run` repeats these lines at its end.
pub(crate) fn not_tried(what: &str, why: &str) {
    let line = std::format!("not tried: {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
}
