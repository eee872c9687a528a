//! What the refusals of the crate say, and that `?` takes them in a function of any error.

use std::error::Error;

use lumalloc_profile::{log, monitor, mprof};

fn said(refusal: impl Error + 'static) -> String {
    let passed_on = || -> Result<(), Box<dyn Error>> { Err(refusal)? };
    passed_on().expect_err("a refusal").to_string()
}

const NO_NAME: &str = "the name is empty or too long, or there is no prefix for one";
const NO_ENTRY: i32 = 2;

#[test]
fn the_heap_monitor_says_why_it_refuses() {
    use monitor::Refusal::{BadName, Running, Stopped, System, Unwritten};
    assert_eq!(said(Running), "events are being recorded already");
    assert_eq!(said(Stopped), "no events are being recorded");
    assert_eq!(said(BadName), NO_NAME);
    let reason = "the file could not be written: no such file or directory";
    assert_eq!(said(Unwritten(NO_ENTRY)), reason);
    assert_eq!(said(Unwritten(4711)), "the file could not be written: error 4711");
    assert_eq!(said(System), "there is no memory, or the system refuses membarrier");
}

#[test]
fn the_log_says_why_it_refuses() {
    use log::Refusal::{BadName, Off, Running, Stopped, Unwritten};
    assert_eq!(said(Off), "the process was started without prof:true");
    assert_eq!(said(Running), "a log is kept already");
    assert_eq!(said(Stopped), "no log is kept");
    assert_eq!(said(BadName), NO_NAME);
    let reason = "the file could not be written: no such file or directory";
    assert_eq!(said(Unwritten(NO_ENTRY)), reason);
}

#[test]
fn the_profile_of_mprof_says_why_it_refuses() {
    use mprof::Refusal::{BadName, Off, Running, Stopped, Unwritten};
    assert_eq!(said(Off), "the process was started without mprof:true");
    assert_eq!(said(Running), "the profile is being taken already");
    assert_eq!(said(Stopped), "no profile is being taken");
    assert_eq!(said(BadName), "the name is too long");
    let reason = "the file could not be written: no such file or directory";
    assert_eq!(said(Unwritten(NO_ENTRY)), reason);
}
