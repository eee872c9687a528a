//! What a program says to have an exporter.
use crate::context::Context;
use crate::counts::Snapshot;
use crate::namespace::{Linked, Namespace};
use crate::server::{self, Running};
use crate::settings::{Address, Limits, Settings};
use crate::start_error::StartError;
use crate::token::TokenFile;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A running exporter; it stops when it is dropped.
pub struct Exporter {
    running: Running,
    context: Arc<Context>,
}

/// An exporter to be.
pub struct Builder {
    pub(crate) namespace: &'static dyn Namespace,
    pub(crate) settings: Settings,
    token: Option<PathBuf>,
}

impl Exporter {
    /// An exporter of the allocator of this executable.
    #[must_use]
    pub fn builder() -> Builder {
        Exporter::of(&Linked)
    }

    /// An exporter of an allocator that is elsewhere: of the shared object that this process runs
    /// on.
    ///
    /// ```no_run
    /// use lumalloc_exporter::Exporter;
    /// use lumalloc_exporter::namespace::Preloaded;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let allocator = Box::leak(Box::new(Preloaded::find()?));
    /// let exporter = Exporter::of(allocator).start()?;
    /// # drop(exporter);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of(namespace: &'static dyn Namespace) -> Builder {
        Builder { namespace, settings: Settings::default(), token: None }
    }

    /// The TCP address that it listens on; with port 0 asked for, the one that the system chose.
    /// `None`: it is a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// The address of the second surface, where [`Builder::metrics_on`] asked for one.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.running.metrics
    }

    /// What the exporter counted of itself so far.
    #[must_use]
    pub fn counts(&self) -> Snapshot {
        self.context.counts.snapshot()
    }
}

/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lumalloc_exporter::Exporter;
///
/// let exporter = Exporter::builder()
///     .listen_unix("/run/service/lumalloc.sock")
///     .metrics_on("0.0.0.0:9464".parse()?)
///     .allow_hosts(["service.internal"])
///     .start()?;
/// # drop(exporter);
/// # Ok(())
/// # }
/// ```
impl Builder {
    /// Where to listen; 127.0.0.1:9464 unless said. What is not a loopback address needs a
    /// [`token_file`](Builder::token_file). The last of this and of
    /// [`listen_unix`](Builder::listen_unix) counts.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Builder {
        self.settings.admin = Address::Tcp(address);
        self
    }

    /// Listens on a unix socket, of at most 107 bytes of path. Its mode is 0600, and only root and
    /// the user of this process may ask, whatever its mode. A socket that nobody answers on any
    /// more is replaced; the file is removed when the exporter stops.
    #[must_use]
    pub fn listen_unix(mut self, path: impl AsRef<Path>) -> Builder {
        self.settings.admin = Address::Unix(path.as_ref().to_path_buf());
        self
    }

    /// The permissions of the unix socket.
    #[must_use]
    pub fn unix_mode(mut self, mode: u32) -> Builder {
        self.settings.unix_mode = mode & 0o777;
        self
    }

    /// Users, by number, who may ask on the unix socket too.
    #[must_use]
    pub fn allow_users(mut self, users: impl IntoIterator<Item = u32>) -> Builder {
        self.settings.users.extend(users);
        self
    }

    /// Serves the numbers alone (`/metrics`, `/-/healthy`, `/-/ready`) on an address of their own,
    /// to whoever can reach it.
    #[must_use]
    pub fn metrics_on(mut self, address: SocketAddr) -> Builder {
        self.settings.metrics = Some(address);
        self
    }

    /// A file with a word of 16 characters or more, of mode 0600 or stricter, of this process' user
    /// or root's. Who asks over TCP must send it: `Authorization: Bearer WORD`. It is read again
    /// when it changes.
    #[must_use]
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Builder {
        self.token = Some(path.as_ref().to_path_buf());
        self
    }

    /// Where `POST /dump` writes; without it nothing is written.
    #[must_use]
    pub fn dump_directory(mut self, path: impl AsRef<Path>) -> Builder {
        self.settings.dump_directory = Some(path.as_ref().to_path_buf());
        self
    }

    /// Names that requests may have as their `Host`, besides `localhost` and addresses. A page in a
    /// browser that has its own name lead to this server is kept out by this.
    #[must_use]
    pub fn allow_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Builder {
        self.settings.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// What clients may cost.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.settings.limits = limits;
        self
    }

    /// Starts the exporter's threads.
    ///
    /// # Errors
    /// When it cannot listen, or must not. The program may go on without.
    pub fn start(mut self) -> Result<Exporter, StartError> {
        self.read_token()?;
        match self.settings.admin {
            Address::Tcp(address) if !is_local(address) && self.settings.token.is_none() => {
                return Err(StartError::NeedsToken(address));
            }
            _ => {}
        }
        let context = Context::new(self.namespace, self.settings);
        let running = server::start(Arc::clone(&context))?;
        Ok(Exporter { running, context })
    }

    /// Reads the token file, where there is one.
    pub(crate) fn read_token(&mut self) -> Result<(), StartError> {
        self.settings.token = self.token.take().map(TokenFile::open).transpose()?;
        Ok(())
    }
}

/// Whether nobody but this machine can reach an address.
fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
