//! Keeps what `SIGPIPE` did when this process was started.
//!
//! Rust's runtime ignores the signal before `main`, and `Command::exec` gives it its default back,
//! which ends a process. But a program that was started with the signal ignored, as systemd starts
//! services, must still have it ignored.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ignored_signal::is_ignored;

static WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Lets the command ignore the signal if this process was started so.
pub(crate) fn keep(command: &mut Command) {
    if !WAS_IGNORED.load(Ordering::Relaxed) {
        return;
    }
    let ignore = || {
        // SAFETY: no function of ours handles the signal, and signal() may be called here.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(ignore) };
}
