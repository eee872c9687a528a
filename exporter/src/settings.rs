//! The settings, with their default values.
use crate::address::Address;
use crate::start_error::StartError;
use crate::token::TokenFile;
use crate::user;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Limits on the resources that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of connections at once. When all are taken, the connection that has waited
    /// longest for its client is closed for the next one. At most 1000.
    pub connections: usize,
    /// How long each of three steps may take: a request arrives, its answer is made, the client
    /// takes the answer. For each MiB that it takes, it has a second more.
    pub patience: Duration,
    /// How long a connection without a request may stay open.
    pub idle: Duration,
    /// How long a connection may last in total.
    pub lifetime: Duration,
    /// The longest body that is read, in bytes.
    pub body: usize,
    /// Bytes of answers that clients have not taken yet, and of profiles that wait for the second
    /// one of a difference. Beyond this, requests get 503. One answer that is longer by itself is
    /// sent at a time besides; what has more than 256 MiB, and more than this, gets 507.
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

/// All settings of the builder.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The address on which everything is served.
    pub(crate) admin: Address,
    /// A further address on which the numbers alone are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// The permissions of the unix socket.
    pub(crate) unix_mode: u32,
    /// Users that may use the unix socket, besides root and the user of this process.
    pub(crate) users: Vec<u32>,
    /// The token that clients must send.
    pub(crate) token: Option<TokenFile>,
    /// Where dumps are written.
    pub(crate) dump_directory: Option<PathBuf>,
    /// Names that requests may have as their `Host`, besides `localhost` and addresses.
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

impl Settings {
    /// Looks whether files can be made in the directory for dumps.
    pub(crate) fn check_dump_directory(&self) -> Result<(), StartError> {
        let Some(directory) = &self.dump_directory else { return Ok(()) };
        user::may_write_to(directory).map_err(|error| StartError::Dumps(directory.clone(), error))
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
