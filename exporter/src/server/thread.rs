//! The exporter's own thread.
use super::connection;
use super::listener::{self, Listener, SocketFile, Stream};
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::routes::Surface;
use crate::start_error::StartError;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// After an error of `accept`.
const PAUSE: Duration = Duration::from_millis(10);

/// A server that runs until it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The port that was taken.
    pub(crate) address: Option<SocketAddr>,
    /// That of the second surface.
    pub(crate) metrics: Option<SocketAddr>,
    _file: Option<SocketFile>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread; comes back when it listens.
pub(crate) fn start(context: Arc<Context>) -> Result<Running, StartError> {
    let mut bound = listener::bind(&context.settings.load())?;
    let address =
        |surface| move |bound: &listener::Bound| bound.address.filter(|_| bound.surface == surface);
    let admin = bound.iter().find_map(address(Surface::Admin));
    let metrics = bound.iter().find_map(address(Surface::Metrics));
    let file = bound.iter_mut().find_map(|bound| bound.file.take());
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Thread)?;
    let run = move || {
        runtime.block_on(async move {
            let room = Arc::new(Semaphore::new(context.settings.load().limits.connections));
            let worker = Arc::new(Worker::default());
            for bound in bound {
                let door = Door {
                    context: Arc::clone(&context),
                    worker: Arc::clone(&worker),
                    surface: bound.surface,
                    room: Arc::clone(&room),
                };
                let Ok(listener) = Listener::new(bound) else { return };
                tokio::spawn(door.accept(listener));
            }
            let _ = stopped.await;
        });
    };
    let thread = std::thread::Builder::new().name("lumalloc-http".into()).spawn(run);
    let thread = Some(thread.map_err(StartError::Thread)?);
    Ok(Running { stop: Some(stop), thread, address: admin, metrics, _file: file })
}

/// One listener, and what those who come in by it may ask.
struct Door {
    context: Arc<Context>,
    worker: Arc<Worker>,
    surface: Surface,
    room: Arc<Semaphore>,
}

impl Door {
    async fn accept(self, listener: Listener) {
        loop {
            // Who comes while all places are taken waits in the system's queue.
            let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let dispatch = Dispatch {
                        context: Arc::clone(&self.context),
                        worker: Arc::clone(&self.worker),
                        surface: self.surface,
                        peer,
                    };
                    tokio::spawn(async move {
                        match stream {
                            Stream::Tcp(stream) => connection::serve(stream, dispatch).await,
                            Stream::Unix(stream) => connection::serve(stream, dispatch).await,
                        }
                        drop(place);
                    });
                }
                // Out of descriptors, or a connection that is gone already: wait a little, go on.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
