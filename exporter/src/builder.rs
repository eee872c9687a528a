//! The builder with which a program configures and starts an exporter.
use crate::address::Address;
use crate::context::Context;
use crate::counts::Snapshot;
use crate::descriptors;
use crate::guard;
use crate::memory::OwnMemory;
use crate::namespace::{Linked, Namespace};
use crate::quiet_thread;
use crate::routes;
use crate::server::{self, Running};
use crate::settings::{Limits, Settings};
use crate::start_error::StartError;
use crate::token::TokenFile;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A running exporter. It stops when it is dropped.
pub struct Exporter {
    running: Running,
    context: Arc<Context>,
}

/// The settings of an exporter that is not yet started.
pub struct Builder {
    pub(crate) namespace: &'static dyn Namespace,
    pub(crate) settings: Settings,
    token: Option<PathBuf>,
    start_within: Option<Duration>,
    has_own_descriptors: bool,
}

impl Exporter {
    /// Returns a builder for an exporter of the allocator of this executable.
    #[must_use]
    pub fn builder() -> Builder {
        Exporter::of(&Linked)
    }

    /// Returns a builder for an exporter of another allocator: that of the shared object that this
    /// process runs on.
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
        Builder {
            namespace,
            settings: Settings::default(),
            token: None,
            start_within: None,
            has_own_descriptors: false,
        }
    }

    /// Returns the TCP address that the exporter listens on. If port 0 was requested, it has the
    /// port that the system chose. Returns `None` if the exporter listens on a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Returns the address of the second surface, if [`Builder::metrics_on`] asked for one.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.running.metrics
    }

    /// Removes the file of the unix socket now, if this process made it. A process that ends
    /// without dropping the exporter leaves the file behind otherwise.
    pub fn remove_socket_file(&self) {
        self.running.remove_file();
    }

    /// Returns the counts that the exporter has kept of itself so far.
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
    /// Sets the address to listen on. The default is 127.0.0.1:9464. An address that is not a
    /// loopback address needs a [`token_file`](Builder::token_file). The last call of this method
    /// and [`listen_unix`](Builder::listen_unix) counts.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Builder {
        self.settings.admin = Address::Tcp(address);
        self
    }

    /// Listens on a unix socket, whose path has at most 107 bytes and whose mode is 0600. Only root
    /// and the user of this process may ask, whatever the mode. A socket on which no process
    /// answers is replaced. The file is removed when the exporter stops.
    #[must_use]
    pub fn listen_unix(mut self, path: impl AsRef<Path>) -> Builder {
        self.settings.admin = Address::Unix(path.as_ref().to_path_buf());
        self
    }

    /// Sets the permissions of the unix socket.
    #[must_use]
    pub fn unix_mode(mut self, mode: u32) -> Builder {
        self.settings.unix_mode = mode & 0o777;
        self
    }

    /// Adds users, by number, that may also ask on the unix socket.
    #[must_use]
    pub fn allow_users(mut self, users: impl IntoIterator<Item = u32>) -> Builder {
        self.settings.users.extend(users);
        self
    }

    /// Serves the numbers alone (`/metrics`, `/-/healthy`, `/-/ready`) on a separate address, to
    /// every client that can reach it.
    #[must_use]
    pub fn metrics_on(mut self, address: SocketAddr) -> Builder {
        self.settings.metrics = Some(address);
        self
    }

    /// Sets a file with a word of 16 characters or more. The file must have mode 0600 or stricter,
    /// and belong to the user of this process or to root. Clients over TCP must send the word:
    /// `Authorization: Bearer WORD`. The file is read again when it changes.
    #[must_use]
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Builder {
        self.token = Some(absolute(path.as_ref()));
        self
    }

    /// Sets the directory that `POST /dump` and `POST /monitor/start` write to. Without it, nothing
    /// is written. It has to exist when the exporter starts.
    #[must_use]
    pub fn dump_directory(mut self, path: impl AsRef<Path>) -> Builder {
        self.settings.dump_directory = Some(absolute(path.as_ref()));
        self
    }

    /// Adds names that requests may have as their `Host`, besides `localhost` and addresses. This
    /// keeps out a browser page whose own name was made to resolve to this server. A port behind a
    /// name is left out, because requests may have any.
    #[must_use]
    pub fn allow_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Builder {
        let name = |host: H| guard::without_port(&host.into()).to_owned();
        self.settings.hosts.extend(hosts.into_iter().map(name));
        self
    }

    /// Sets the limits on the resources that clients may use. Times longer than 30 days are 30
    /// days.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Builder {
        const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
        let [patience, idle, lifetime] =
            [limits.patience, limits.idle, limits.lifetime].map(|time| time.min(LONGEST));
        self.settings.limits = Limits { patience, idle, lifetime, ..limits };
        self
    }

    /// Sets how long [`start`](Builder::start) waits at most. Without it, `start` waits for as long
    /// as files, or memory, take.
    #[must_use]
    pub fn start_within(mut self, patience: Duration) -> Builder {
        self.start_within = Some(patience);
        self
    }

    /// Gives the exporter's threads a table of descriptors of their own, where the system can do it
    /// (Linux 5.9). So the program and the exporter cannot close each other's files, and no child
    /// inherits those of the exporter. Functions of the program that run on these threads find no
    /// file of the program open, and standard error neither: messages of panics are lost.
    #[must_use]
    pub fn own_descriptors(mut self) -> Builder {
        self.has_own_descriptors = true;
        self
    }

    /// Starts the exporter's threads.
    ///
    /// # Errors
    /// An error if the exporter cannot or must not listen, if the token file is unfit, if the
    /// directory for dumps takes no file, or if all this takes longer than
    /// [`start_within`](Builder::start_within) says. The program may go on without it.
    pub fn start(self) -> Result<Exporter, StartError> {
        // What the exporter keeps is made by a thread of its arena, so it is not the program's.
        let patience = self.start_within;
        let start = move || {
            if self.has_own_descriptors {
                descriptors::make_own();
            }
            OwnMemory::of(self.namespace, &routes::names()).enter();
            self.start_here()
        };
        let started = quiet_thread::result_of("lumalloc-start", patience, start);
        let late = || Err(StartError::Late(patience.unwrap_or_default()));
        started.map_err(StartError::Thread)?.unwrap_or_else(late)
    }

    fn start_here(mut self) -> Result<Exporter, StartError> {
        self.read_token()?;
        match self.settings.admin {
            Address::Tcp(address) if !is_local(address) && self.settings.token.is_none() => {
                return Err(StartError::NeedsToken(address));
            }
            _ => {}
        }
        let context = Context::new(self.namespace, self.settings, routes::names());
        let running = server::start(Arc::clone(&context))?;
        // After that: of a child of a process that serves, the taken address is what is to be said.
        context.settings.load().check_dump_directory()?;
        Ok(Exporter { running, context })
    }

    /// Reads the token file, if one was set.
    pub(crate) fn read_token(&mut self) -> Result<(), StartError> {
        self.settings.token = self.token.take().map(TokenFile::open).transpose()?;
        Ok(())
    }
}

/// Returns the path as it is meant now, because the program may change its directory later. An
/// empty path stays, and is refused at the start.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Whether an address can be reached from this machine only.
fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_of_the_directory_of_the_start() {
        let builder = Exporter::builder().token_file("token").dump_directory("dumps");
        let here = std::env::current_dir().unwrap();
        assert_eq!(builder.token, Some(here.join("token")));
        assert_eq!(builder.settings.dump_directory, Some(here.join("dumps")));
    }
}
