//! What a program says to have an exporter.
use crate::context::Context;
use crate::namespace::{Linked, Namespace};
use crate::server::{self, Running};
use crate::settings::{Address, Settings};
use std::io;
use std::net::SocketAddr;

/// A running exporter; it stops when it is dropped.
pub struct Exporter {
    running: Running,
}

/// An exporter to be.
pub struct Builder {
    namespace: &'static dyn Namespace,
    settings: Settings,
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
        Builder { namespace, settings: Settings::default() }
    }

    /// The TCP address that it listens on; with port 0 asked for, the one that the system chose.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }
}

impl Builder {
    /// Where to listen; 127.0.0.1:9464 unless said.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Builder {
        self.settings.admin = Address::Tcp(address);
        self
    }

    /// Starts the exporter's thread.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(self) -> io::Result<Exporter> {
        let running = server::start(Context::new(self.namespace, self.settings))?;
        Ok(Exporter { running })
    }
}
