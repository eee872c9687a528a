//! What may be set, with the values that hold when nothing is.
use crate::token::TokenFile;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a surface is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(to),
            Address::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

/// Bounds on what clients may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; when all are taken, the one that waits longest for its client is closed
    /// for the next. At most 1000.
    pub connections: usize,
    /// How long a request may take to arrive, an answer to be made, and to be taken by the client:
    /// each of the three.
    pub patience: Duration,
    /// How long a connection without a request may stay open.
    pub idle: Duration,
    /// How long a connection may last in all.
    pub lifetime: Duration,
    /// Bytes of the longest body that is read.
    pub body: usize,
    /// Bytes of answers that clients have not taken yet; beyond, answers are 503.
    pub unsent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 64,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(150),
            lifetime: Duration::from_secs(3600),
            body: 64 << 10,
            unsent: 32 << 20,
        }
    }
}

/// Everything that the builder sets.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where everything is served.
    pub(crate) admin: Address,
    /// Where the numbers alone are served, besides.
    pub(crate) metrics: Option<SocketAddr>,
    /// The permissions of the unix socket.
    pub(crate) unix_mode: u32,
    /// Who may use the unix socket, besides root and the user of this process.
    pub(crate) users: Vec<u32>,
    /// Who has it may ask.
    pub(crate) token: Option<TokenFile>,
    /// Where dumps are written.
    pub(crate) dump_directory: Option<PathBuf>,
    /// Names that clients may know this server by, besides its addresses.
    pub(crate) hosts: Vec<String>,
    pub(crate) limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            admin: Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 9464))),
            metrics: None,
            unix_mode: 0o600,
            users: Vec::new(),
            token: None,
            dump_directory: None,
            hosts: Vec::new(),
            limits: Limits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_asked_for() {
        assert_eq!(Address::Tcp("[::1]:9464".parse().unwrap()).to_string(), "[::1]:9464");
        assert_eq!(Address::Unix("/run/x.sock".into()).to_string(), "unix:/run/x.sock");
    }
}
