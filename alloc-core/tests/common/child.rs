//! Runs this test program once more as a child that plays one scenario.
//!
//! A program that uses this module has an ignored test `child`, which plays the scenario that
//! [`scenario`] names.

use super::this_program::this_program;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const SCENARIO: &str = "LUMALLOC_TEST_SCENARIO";

/// The scenario that this process is to play, or `None` in the parent. A child that plays none
/// fails in the parent, and a program must panic at a name that it does not know.
///
/// A child that hangs is killed by SIGALRM. It writes no core.
pub(crate) fn scenario() -> Option<String> {
    let name = std::env::var(SCENARIO).ok()?;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is readable.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // SAFETY: the call takes only numbers.
    unsafe { libc::alarm(600) };
    // By a system call, because some scenarios need what nobody allocated before.
    // SAFETY: the text is this long.
    let written = unsafe { libc::write(1, BEGUN.as_ptr().cast(), BEGUN.len()) };
    assert_eq!(written, BEGUN.len().cast_signed(), "the parent reads");
    Some(name)
}

/// The result of a child.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The signal that ended the child.
    pub(crate) signal: Option<i32>,
    pub(crate) success: bool,
    pub(crate) stderr: String,
    /// The lines that the child told its parent by [`tell`].
    pub(crate) told: Vec<String>,
}

/// Plays a scenario in a child with these variables in its environment.
pub(crate) fn play(name: &str, environment: &[(&str, &str)]) -> Outcome {
    play_by(this_program(), name, environment)
}

/// As [`play`], by a command that runs this program with further arguments.
pub(crate) fn play_by(mut program: Command, name: &str, environment: &[(&str, &str)]) -> Outcome {
    let output = program
        .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env_remove("MALLOC_CONF")
        .env_remove("LUMALLOC_CONF")
        .env(SCENARIO, name)
        .envs(environment.iter().copied())
        .output()
        .expect("a child");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(BEGUN), "the child played nothing: {output:?}");
    Outcome {
        signal: output.status.signal(),
        success: output.status.success(),
        stderr: without_notice(&String::from_utf8_lossy(&output.stderr)),
        told: stdout
            .split(MARK)
            .skip(1)
            .map(|part| part.split('\n').next().unwrap_or("").to_owned())
            .collect(),
    }
}

/// Standard error without the line that the emulator adds when a signal ends the program.
fn without_notice(stderr: &str) -> String {
    const NOTICE: &str = "qemu: uncaught target signal";
    stderr.split_inclusive('\n').filter(|line| !line.starts_with(NOTICE)).collect()
}

const MARK: &str = "told: ";
const BEGUN: &str = "the child plays\n";

/// Tells the parent a line.
pub(crate) fn tell(line: &str) {
    println!("{MARK}{line}");
}

/// Plays a scenario that must succeed without a message.
#[track_caller]
pub(crate) fn play_well(name: &str, conf: &str) -> Vec<String> {
    let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
    assert!(outcome.success && outcome.stderr.is_empty(), "{name} with {conf:?}: {outcome:#?}");
    outcome.told
}

/// Plays a scenario that must abort, and compares its message with the one that it announced.
#[track_caller]
pub(crate) fn dies(name: &str, conf: &str) {
    let outcome = play(name, &[("LUMALLOC_CONF", conf)]);
    assert_eq!(outcome.signal, Some(libc::SIGABRT), "{name} with {conf:?}: {outcome:#?}");
    let [expected] = outcome.told.as_slice() else { panic!("not one announcement: {outcome:#?}") };
    assert_eq!(without_trail(&outcome.stderr), format!("<lumalloc>: {expected}\n"), "{outcome:#?}");
}

/// The line behind the report of a block that was looked at some time after its free.
const MAY_BE_OLDER: &str = "<lumalloc>: the mistake may be older than these calls, because small \
                            blocks are looked at some time after their free; hardened:true looks \
                            at once\n";

/// A message without the return addresses at its end, and without the lines that say in which file
/// each of them lies, and that the mistake may be older. They depend on how the program was built,
/// and on its options.
pub(crate) fn without_trail(message: &str) -> String {
    let message = &without_files(message);
    let message = message.strip_suffix(MAY_BE_OLDER).unwrap_or(message);
    let Some((line, trail)) = message.split_once("; from 0x") else { return message.to_owned() };
    let trail = trail.strip_suffix('\n').unwrap_or("not a line");
    let is_address = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_hexdigit())
    };
    assert!(trail.split(' ').all(is_address), "a strange end of {message:?}");
    format!("{line}\n")
}

/// A message without the lines `<lumalloc>: 0x… is PATH+0x…`, each of which is about an address in
/// the message.
pub(crate) fn without_files(message: &str) -> String {
    const BEGIN: &str = "<lumalloc>: 0x";
    let is_about_address = |line: &&str| {
        let Some((address, place)) = line.strip_prefix(BEGIN).and_then(|l| l.split_once(" is /"))
        else {
            return false;
        };
        let named = message.lines().next().is_some_and(|line| line.contains(address));
        assert!(named && place.contains("+0x"), "{line:?} in {message:?}");
        true
    };
    message.split_inclusive('\n').filter(|line| !is_about_address(line)).collect()
}
