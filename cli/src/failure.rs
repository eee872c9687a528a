//! One line about what went wrong, and the exit status that goes with it.

use std::fmt;

/// Why the command stops. `main` prints it as one line after `lumalloc: `.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the user reads.
    pub(crate) message: String,
    /// What the shell sees.
    pub(crate) status: u8,
}

impl Failure {
    /// The ordinary failure: status 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_status(1, message)
    }

    /// A failure with a status of its own, as `run` and interruption have.
    pub(crate) fn with_status(status: u8, message: impl Into<String>) -> Self {
        Self { message: message.into(), status }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What every part of the command answers.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The system's words for an error, without Rust's "(os error 2)".
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
    fn a_failure_is_shown_as_its_message() {
        assert_eq!(Failure::new("it broke").to_string(), "it broke");
        assert_eq!((Failure::new("x").status, Failure::with_status(7, "x").status), (1, 7));
    }
}
