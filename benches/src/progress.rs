//! How far a measurement is: one line on the terminal, in place of the previous one.

use std::io::{IsTerminal, Write};

/// Shows a line, or removes the last one if `text` is empty. What is no terminal gets none.
pub(crate) fn progress(text: &str) {
    let mut errors = std::io::stderr();
    if !errors.is_terminal() {
        return;
    }
    // If the line cannot be shown, the measurement goes on.
    let _ = write!(errors, "\r\x1b[K{text}").and_then(|()| errors.flush());
}
