//! Lines on standard error, where nobody else can be told.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// Writes one line to standard error: that of the process also on threads with a table of
/// descriptors of their own, which do not have it open.
pub fn say(what: &str) {
    let line = format!("<lumalloc>: exporter: {what}\n");
    // SAFETY: the pointer and the length are those of the text.
    let written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    if written >= 0 {
        return;
    }
    // It must not become the terminal of a daemon's session.
    let process =
        OpenOptions::new().append(true).custom_flags(libc::O_NOCTTY).open("/proc/self/fd/2");
    if let Ok(mut process) = process {
        // A failure cannot be reported.
        let _ = process.write_all(line.as_bytes());
    }
}
