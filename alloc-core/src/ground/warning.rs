//! Warnings, which end the process under `abort:true`. Source: jemalloc(3), `opt.abort`.
//!
//! Warnings about options are no matter of that option: see `abort_conf`.

use super::{fatal, message, options};

/// Writes a warning as [`message::write`] does. Under `abort:true` the process ends.
pub fn warn(text: &[u8]) {
    message::write(text);
    warned();
}

/// Ends the process under `abort:true`. Called after a warning that was written in pieces.
pub fn warned() {
    if options::current().abort {
        fatal::warning();
    }
}
