//! Where an exporter listens.
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The address of a surface.
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
