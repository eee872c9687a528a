//! The link `/etc/malloc.conf` as a source of options. The test has a mount namespace of its own,
//! in which `/etc` has nothing else. Where the system refuses namespaces, it makes the link itself,
//! and needs to be root.
#![allow(unsafe_code)]

mod common;

use common::child::{Outcome, play, play_by, scenario, tell};
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
/// Harmless options: without a namespace, other programs that start meanwhile see them.
const OPTIONS: &str = "xmalloc:false,narenas:5";
const HIDE_ETC: &str = "mount -t tmpfs none /etc";

fn within(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]);
    command
}

/// The link on this machine. It is removed when the test ends, even by a panic.
struct Link;

impl Link {
    fn make() -> Link {
        std::os::unix::fs::symlink(OPTIONS, LINK)
            .expect("namespaces (unshare -rm), or root on a machine without /etc/malloc.conf");
        Link
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        std::fs::remove_file(LINK).expect("the link just made");
    }
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
    let _link = (!has_namespaces).then(Link::make);
    for (environment, expected) in [(&[][..], "5"), (&[("MALLOC_CONF", "narenas:6")][..], "6")] {
        let outcome = match has_namespaces {
            true => play_within(environment),
            false => play("show", environment),
        };
        assert!(outcome.success, "{outcome:?}");
        assert_eq!(
            (outcome.stderr.as_str(), outcome.told.as_slice()),
            ("", &[expected.into()][..])
        );
    }
}
