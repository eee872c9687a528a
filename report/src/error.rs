//! Why a report cannot be made.

use std::fmt;
use std::path::Path;

/// A message for the user, which names the file where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    /// Makes an error from its message.
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }

    /// Makes an error about a file.
    pub(crate) fn of_file(path: &Path, what: impl fmt::Display) -> Error {
        Error::new(format!("{}: {what}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

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
    fn an_error_of_a_file_begins_with_its_name() {
        let missing = std::io::Error::from_raw_os_error(2);
        let error = Error::of_file(Path::new("a/b.heap"), reason(&missing));
        assert_eq!(error.to_string(), "a/b.heap: no such file or directory");
        assert_eq!(reason(&std::io::Error::other("Own words")), "Own words");
    }
}
