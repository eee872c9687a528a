//! Why a view of a recording is not written to its end.

use crate::error::Error;

/// What went wrong.
#[derive(Debug)]
pub enum Stop {
    /// The file cannot be read.
    Input(Error),
    /// The text cannot be written.
    Output(std::io::Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Input(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}
