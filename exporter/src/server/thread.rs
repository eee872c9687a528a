//! The exporter's own thread.
use super::connection;
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::routes::Surface;
use crate::settings::Address;
use crate::worker::Worker;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

/// After an error of `accept`.
const PAUSE: Duration = Duration::from_millis(10);

/// A server that runs until it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The port that was taken.
    pub(crate) address: Option<SocketAddr>,
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
pub(crate) fn start(context: Arc<Context>) -> io::Result<Running> {
    let Address::Tcp(address) = context.settings.load().admin.clone() else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            tokio::select! {
                _ = stopped => {}
                () = accept(listener, context) => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("lumalloc-http".into()).spawn(run)?;
    Ok(Running { stop: Some(stop), thread: Some(thread), address: Some(address) })
}

async fn accept(listener: TcpListener, context: Arc<Context>) {
    let room = Arc::new(Semaphore::new(context.settings.load().max_connections));
    let worker = Arc::new(Worker::default());
    let dispatch = Dispatch { context, worker, surface: Surface::Admin };
    loop {
        // Who comes while all places are taken waits in the system's queue.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let dispatch = dispatch.clone();
                tokio::spawn(async move {
                    connection::serve(stream, dispatch).await;
                    drop(place);
                });
            }
            // Out of descriptors, or a connection that is gone already: wait a little, go on.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
