//! The link `/etc/malloc.conf` as a source of options. The test has a mount namespace of its own,
//! in which `/etc` has nothing else.
#![allow(unsafe_code)]

mod common;

use common::child::{Outcome, play_by, scenario, tell};
use common::not_tried::not_tried;
use common::this_program::this_program;
use lumalloc::options::current;
use std::process::Command;

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    if let Some(name) = scenario() {
        assert_eq!(name, "show", "no such scenario");
        tell(&format!("{:?}", current().narenas));
    }
}

const LINK: &str = "/etc/malloc.conf";
const OPTIONS: &str = "xmalloc:false,narenas:5";
const HIDE_ETC: &str = "mount -t tmpfs none /etc";

fn within(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]);
    command
}

/// Plays the scenario in a namespace with the link.
fn play_within(environment: &[(&str, &str)]) -> Outcome {
    let program = this_program();
    let mut command = within(&format!("{HIDE_ETC} && ln -s {OPTIONS} {LINK} && exec \"$@\""));
    command.arg(program.get_program()).args(program.get_args());
    play_by(command, "show", environment)
}

#[test]
fn the_link_in_etc_is_a_source() {
    let tried = within(HIDE_ETC).output();
    let has_namespaces = tried.is_ok_and(|tried| tried.status.success());
    if !has_namespaces {
        not_tried(LINK, "this machine refuses namespaces");
        return;
    }
    for (environment, expected) in [(&[][..], "5"), (&[("MALLOC_CONF", "narenas:6")][..], "6")] {
        let outcome = play_within(environment);
        assert!(outcome.success, "{outcome:?}");
        assert_eq!(
            (outcome.stderr.as_str(), outcome.told.as_slice()),
            ("", &[expected.into()][..])
        );
    }
}
