//! One line about what went wrong, and its exit status.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

/// The exit status when `lumalloc run` itself fails, as in `env` and `timeout`.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Why the command stops. `main` prints it as one line after `lumalloc: `.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The text for the user.
    pub(crate) message: String,
    /// The exit status for the shell.
    pub(crate) status: u8,
}

impl Failure {
    /// Makes an ordinary failure, which has status 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_status(1, message)
    }

    /// Makes a failure with another status, as `run` and interruption have.
    pub(crate) fn with_status(status: u8, message: impl Into<String>) -> Self {
        Self { message: message.into(), status }
    }

    /// Writes the line, and returns the exit status.
    pub(crate) fn show(&self) -> ExitCode {
        tell(format_args!("lumalloc: {}\n", printable(&self.message)));
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The result of every part of the command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Writes a message to standard error. If it cannot be written, the command goes on: `eprintln!`
/// would end the process with SIGABRT.
pub(crate) fn tell(message: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(message.to_string().as_bytes());
}

/// The failure of a part whose runtime the system refuses, as without free descriptors.
pub(crate) fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start the runtime: {}", reason(error)))
}

/// Returns a text without characters that control a terminal. Names and messages of other processes
/// and of files may have some.
pub(crate) fn printable(text: &str) -> String {
    text.replace(lumalloc_report::terminal::controls, "\u{fffd}")
}

/// Returns the system's text for an error, without Rust's "(os error 2)".
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words_only() {
        let denied = std::io::Error::from_raw_os_error(13);
        assert_eq!(reason(&denied), "permission denied");
        assert_eq!(reason(&std::io::Error::other("Own words")), "Own words");
    }

    #[test]
    fn a_terminal_is_not_controlled() {
        assert_eq!(printable("a\x1b[31mb\n\u{9b}ä"), "a\u{fffd}[31mb\u{fffd}\u{fffd}ä");
        assert_eq!(printable("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn a_failure_is_shown_as_its_message() {
        assert_eq!(Failure::new("it broke").to_string(), "it broke");
        assert_eq!((Failure::new("x").status, Failure::with_status(7, "x").status), (1, 7));
    }
}
