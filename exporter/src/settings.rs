//! What may be set, with the values that hold when nothing is.
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

/// Everything that the builder sets.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where everything is served.
    pub(crate) admin: Address,
    /// Connections at once.
    pub(crate) max_connections: usize,
    /// How long a request may take to arrive, and its answer to leave.
    pub(crate) patience: Duration,
    /// The longest body that is read.
    pub(crate) max_body: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            admin: Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 9464))),
            max_connections: 64,
            patience: Duration::from_secs(10),
            max_body: 64 << 10,
        }
    }
}
