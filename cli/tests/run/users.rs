//! Programs that another user may execute, or that gain rights when they are executed.

use super::not_tried::not_tried;
use super::{Directory, harmless_library, outcome, refusal};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Nobody's number.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A shell goes on to the next directory of PATH. Root may execute what anybody may, so it runs the
/// command as somebody else. Another user may not execute a file of its own that others may.
#[test]
fn what_others_alone_may_execute_is_not_the_program() {
    let directory = Directory::for_all("access");
    let mode = if is_root() { 0o700 } else { 0o611 };
    let private = directory.file("true", b"#!/bin/sh\nexit 9\n", mode);
    let library = harmless_library();
    let run = |program: &str, user: u32| {
        let mut run = directory.command();
        run.args(["--library", &library, "--", program]);
        run.env("PATH", format!("{}:/bin", directory.0.display()));
        if is_root() {
            run.uid(user);
        }
        run
    };
    assert_eq!(outcome(&mut run("true", NOBODY)), (Some(0), String::new(), String::new()));
    let denied = format!("lumalloc: run: {private}: permission denied\n");
    assert_eq!(refusal(&mut run(&private, NOBODY)), (Some(126), denied));
    if is_root() {
        assert_eq!(outcome(&mut run("true", 0)).0, Some(9));
    } else {
        not_tried("what root may execute", "this is another user");
    }
}

/// Gives a file the capability to open raw sockets, as `setcap cap_net_raw+ep` does.
#[allow(unsafe_code, reason = "the standard library has no call for it")]
fn grant(file: &str) -> std::io::Result<()> {
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    let value = words.map(u32::to_le_bytes).concat();
    let (file, name) = (std::ffi::CString::new(file).unwrap(), c"security.capability");
    // SAFETY: both names are NUL-terminated, and the value is as long as it says.
    let refused = unsafe {
        libc::setxattr(file.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    if refused == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Whether programs in the directory gain no rights by their files, because of its mount.
fn gives_no_rights(directory: &Directory) -> bool {
    let mut find = Command::new("findmnt");
    let found = find.args(["-no", "OPTIONS", "--target"]).arg(&directory.0).output();
    let options = String::from_utf8(found.expect("findmnt starts").stdout).expect("text");
    options.trim().split(',').any(|option| option == "nosuid")
}

/// A program that is another user's when it runs. Root makes one; others find one.
fn program_of_another(directory: &Directory) -> Option<(String, &'static [&'static str])> {
    if is_root() {
        if gives_no_rights(directory) {
            return None;
        }
        let program = directory.file("true", &fs::read("/bin/true").unwrap(), 0o755);
        chown(&program, Some(NOBODY), None).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        return Some((program, &[]));
    }
    let found = fs::metadata("/bin/su").is_ok_and(|su| su.uid() == 0 && su.mode() & 0o4000 != 0);
    found.then(|| ("/bin/su".to_owned(), &["--version"][..]))
}

#[test]
fn a_program_of_another_user_runs_with_a_warning() {
    let directory = Directory::for_all("setuid");
    let Some((program, words)) = program_of_another(&directory) else {
        not_tried("a setuid program", "none can be made here, and none is there");
        return;
    };
    let mut run = directory.command();
    run.args(["--library", &harmless_library(), "--", &program]).args(words);
    let (status, _, errors) = outcome(&mut run);
    let warning = format!(
        "lumalloc: run: warning: {program}: setuid or setgid program; preloading has no effect\n"
    );
    assert_eq!((status, errors), (Some(0), warning));
}

/// Root alone can mount something and give a file to somebody else.
#[test]
fn a_program_whose_mount_gives_no_rights_runs_without_a_warning() {
    let directory = Directory::for_all("nosuid");
    let place = directory.0.join("mount");
    fs::create_dir(&place).unwrap();
    let script = "mount -t tmpfs -o \"$MODE\" none \"$PLACE\" && cp /bin/true \"$PLACE\" && \
                  chown 65534 \"$PLACE/true\" && chmod 4755 \"$PLACE/true\" || exit 9; exec \"$@\"";
    let run = |mode: &str| {
        let mut run = Command::new("unshare");
        run.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_lumalloc"), "run"]);
        run.args(["--library", &harmless_library(), "--"]).arg(place.join("true"));
        outcome(run.env("MODE", mode).env("PLACE", &place))
    };
    let (_, _, errors) = run("suid");
    if !errors.ends_with(": setuid or setgid program; preloading has no effect\n") {
        not_tried("a program on a mount without setuid", "this user may not mount one with setuid");
        return;
    }
    assert_eq!(run("nosuid"), (Some(0), String::new(), String::new()));
}

const GRANTED: &str = "LUMALLOC_RUN_GRANTED";

/// The process of the next test where that is not root: it is, in a namespace of its own.
#[test]
fn grants_for_another_test() {
    if let Ok(file) = std::env::var(GRANTED) {
        grant(&file).unwrap();
    }
}

/// Root makes such a program, and runs it as somebody else, because for root it means nothing.
/// Another user is root in a namespace to make it.
#[test]
fn a_program_that_gains_capabilities_runs_with_a_warning() {
    let directory = Directory::for_all("capabilities");
    if gives_no_rights(&directory) {
        not_tried("a program that gains capabilities", "its mount gives none");
        return;
    }
    let program = directory.file("true", &fs::read("/bin/true").unwrap(), 0o755);
    let library = harmless_library();
    let mut run = directory.command();
    run.args(["--library", &library, "--", &program]);
    let unwarned = (Some(0), String::new(), String::new());
    assert_eq!(outcome(&mut run), unwarned, "it has none yet");
    if is_root() {
        grant(&program).expect("a file system that keeps capabilities, and CAP_SETFCAP");
        assert_eq!(outcome(&mut run), unwarned, "for root they mean nothing");
        run.uid(NOBODY);
    } else {
        let own = std::env::current_exe().unwrap();
        let mut grants = Command::new("unshare");
        grants.args(["-Ur"]).arg(own).args(["--exact", "users::grants_for_another_test"]);
        let granted = grants.env(GRANTED, &program).output();
        if !granted.expect("unshare starts").status.success() {
            not_tried("a program that gains capabilities", "this machine refuses namespaces");
            return;
        }
    }
    let warning = format!(
        "lumalloc: run: warning: {program}: program with capabilities of its file; preloading has \
         no effect\n"
    );
    assert_eq!(outcome(&mut run), (Some(0), String::new(), warning));
}
