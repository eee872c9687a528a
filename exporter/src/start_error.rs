//! The reasons why an exporter does not start.
use crate::address::Address;
use crate::token::TokenError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The longest path of a unix socket, in bytes.
pub(crate) const LONGEST_PATH: usize = 107;

/// Why an exporter did not start. No thread, port or file of it is left.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The system refuses the address, because it is taken, not of this machine, or not permitted.
    Listen(Address, io::Error),
    /// Another process answers on the unix socket.
    Taken(PathBuf),
    /// Something that is not a socket is at the path.
    NotASocket(PathBuf),
    /// The path does not fit into the address of a socket.
    PathTooLong(PathBuf),
    /// Everything would be open to the network, because no token file was set.
    NeedsToken(SocketAddr),
    /// The token file is unfit.
    Token(TokenError),
    /// Nothing can be written to the directory for dumps.
    Dumps(PathBuf, io::Error),
    /// Too few files can be opened.
    Descriptors(io::Error),
    /// The system gave no thread, or no runtime for the thread.
    Thread(io::Error),
    /// It was not ready after this time. Should it become ready later, it stops at once.
    Late(Duration),
}

impl fmt::Display for StartError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(address, error) => write!(to, "cannot listen on {address}: {error}"),
            StartError::Taken(path) => {
                write!(
                    to,
                    "cannot listen on unix:{}: another process answers on it",
                    path.display()
                )
            }
            StartError::NotASocket(path) => {
                let path = path.display();
                write!(to, "cannot listen on unix:{path}: something that is no socket is there")
            }
            StartError::PathTooLong(path) => {
                let bytes = path.as_os_str().len();
                let path = path.display();
                write!(
                    to,
                    "cannot listen on unix:{path}: the path has {bytes} bytes, a socket's at most \
                     {LONGEST_PATH}"
                )
            }
            StartError::NeedsToken(address) => write!(
                to,
                "cannot listen on {address}: what is not a loopback address needs a token file \
                 (token:FILE in LUMALLOC_EXPORTER, token_file of the builder); metrics alone may \
                 be served there without one (metrics:ADDRESS:PORT, metrics_on)"
            ),
            StartError::Token(error) => error.fmt(to),
            StartError::Dumps(path, error) => {
                write!(to, "cannot write to the directory for dumps {}: {error}", path.display())
            }
            StartError::Descriptors(error) => {
                write!(to, "cannot open what clients are answered with: {error}")
            }
            StartError::Thread(error) => write!(to, "cannot start a thread: {error}"),
            StartError::Late(patience) => {
                write!(to, "not ready after {patience:?}, for lack of memory or by a slow disk")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Listen(_, error)
            | StartError::Dumps(_, error)
            | StartError::Descriptors(error)
            | StartError::Thread(error) => Some(error),
            StartError::Token(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TokenError> for StartError {
    fn from(error: TokenError) -> StartError {
        StartError::Token(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_lacks_is_said() {
        let thread = StartError::Thread(io::Error::from_raw_os_error(11));
        let text = "cannot start a thread: Resource temporarily unavailable (os error 11)";
        assert_eq!(thread.to_string(), text);
        let late = StartError::Late(Duration::from_secs(15));
        let text = "not ready after 15s, for lack of memory or by a slow disk";
        assert_eq!(late.to_string(), text);
    }
}
