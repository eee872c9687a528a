//! Signals that interrupt the demonstration. Not by tokio's feature `signal`: in a build of the
//! whole workspace the exporter's runtime would have it too, and need three more descriptors of
//! each program that it serves.

use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream as Pair;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::failure::Failure;
use crate::ignored_signal::is_ignored;

/// The signals.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The socket that the handler writes to.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// Waits for a signal, and returns the failure that stands for it.
pub(crate) async fn interrupted() -> Failure {
    let Some(mut signals) = signals() else {
        // Without handlers a signal ends this process as usual, and the children after it.
        return std::future::pending().await;
    };
    let Ok(signal) = signals.read_u8().await else { return std::future::pending().await };
    // The status that shells report for a signal.
    Failure::with_status(128 + signal, "interrupted")
}

/// Returns a stream of the numbers of the signals that come from now on.
fn signals() -> Option<UnixStream> {
    let (told, listens) = Pair::pair().ok()?;
    told.set_nonblocking(true).ok()?;
    listens.set_nonblocking(true).ok()?;
    let listens = UnixStream::from_std(listens).ok()?;
    TOLD.store(told.as_raw_fd(), Relaxed);
    // What is ignored from the start, as by `nohup`, stays ignored.
    for signal in SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: the handler stays valid, and calls nothing that a handler must not call.
        if unsafe { libc::signal(signal, handle as *const () as usize) } == libc::SIG_ERR {
            return None;
        }
    }
    // The handler uses it as long as the process lives.
    let _ = told.into_raw_fd();
    Some(listens)
}

extern "C" fn handle(signal: i32) {
    let number = signal as u8;
    // SAFETY: one byte of this stack frame. Where there is no room, a signal has been told already.
    unsafe { libc::write(TOLD.load(Relaxed), (&raw const number).cast(), 1) };
}
