//! The thread of the server.
use super::connection;
use super::fork::{self, Noted, Step};
use super::listener::{self, Bound, Listener, SocketFile, Stream};
use super::places::{Place, Places};
use crate::chores::Decay;
use crate::client::Client;
use crate::clock::Clock;
use crate::context::Context;
use crate::counts::Ended;
use crate::dispatch::Dispatch;
use crate::guard::Peer;
use crate::quiet_thread::{self, Quiet};
use crate::route::Surface;
use crate::say::say;
use crate::start_error::StartError;
use crate::worker::{STOPS_WITHIN, Worker};
use socket2::{Domain, Socket, Type};
use std::future::poll_fn;
use std::io;
use std::iter::repeat_with;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The wait after an error of `accept`.
const PAUSE: Duration = Duration::from_millis(10);
/// The wait until a connection that was asked to end has given its memory back.
const MOMENT: Duration = Duration::from_millis(1);
/// The descriptors of the runtime, and of one connection with a file that its answer is read from.
const DESCRIPTORS: usize = 5;
/// The most connections that the settings may allow.
const MOST: usize = 1000;

/// A running server. It stops when it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    worker: Arc<Worker>,
    thread: Quiet,
    /// The address of the admin surface, with the port that was taken.
    pub(crate) address: Option<SocketAddr>,
    /// The address of the second surface.
    pub(crate) metrics: Option<SocketAddr>,
    file: Option<SocketFile>,
}

impl Running {
    /// Removes the file of the unix socket.
    pub(crate) fn remove_file(&self) {
        self.file.iter().for_each(SocketFile::remove);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            tell(&self.worker, stop);
        }
        // A job of the worker may hang in the allocator. Then the server stops after it.
        self.thread.join(2 * STOPS_WITHIN);
    }
}

/// Has the server stop, on the worker's thread: a runtime is woken through a descriptor, which the
/// calling thread may not have.
fn tell(worker: &Worker, stop: oneshot::Sender<()>) {
    // Without a worker it is left behind, not dropped, because that would wake the runtime here.
    let stop = ManuallyDrop::new(stop);
    worker.call_next(move || drop(ManuallyDrop::into_inner(stop)));
}

/// Starts the threads. Returns when the server listens.
pub(crate) fn start(context: Arc<Context>) -> Result<Running, StartError> {
    fork::watch();
    let mut sockets = listener::bind(&context.settings.load())?;
    let address = |surface| move |bound: &Bound| bound.address.filter(|_| bound.surface == surface);
    let admin = sockets.iter().find_map(address(Surface::Admin));
    let metrics = sockets.iter().find_map(address(Surface::Metrics));
    let file = sockets.iter_mut().find_map(|bound| bound.file.take());
    check_descriptors().map_err(StartError::Descriptors)?;
    let (memory, ring) = (Arc::clone(&context.memory), Arc::clone(&context.ring));
    let decay = Decay::new(context.namespace, memory, ring);
    let worker = Arc::new(Worker::start(decay).map_err(StartError::Thread)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(StartError::Thread)?;
    let (stop, stopped) = oneshot::channel();
    let used = Arc::clone(&worker);
    let run = move || run(&runtime, context, used, sockets, stopped);
    let thread = quiet_thread::spawn("lumalloc-http", run).map_err(StartError::Thread)?;
    Ok(Running { stop: Some(stop), worker, thread, address: admin, metrics, file })
}

/// Checks that there are descriptors for the runtime and for a first connection, because a runtime
/// may panic without them.
fn check_descriptors() -> io::Result<()> {
    let opened = repeat_with(|| Socket::new(Domain::UNIX, Type::STREAM, None)).take(DESCRIPTORS);
    opened.collect::<io::Result<Vec<_>>>().map(drop)
}

fn run(
    runtime: &Runtime,
    context: Arc<Context>,
    worker: Arc<Worker>,
    sockets: Vec<Bound>,
    stopped: oneshot::Receiver<()>,
) {
    context.memory.enter();
    context.memory.fill();
    let places = Places::new(context.settings.load().limits.connections.min(MOST));
    runtime.block_on(async {
        for bound in sockets {
            let dispatch = Dispatch {
                context: Arc::clone(&context),
                worker: Arc::clone(&worker),
                clock: Clock::Runtime,
                surface: bound.surface,
                peer: Peer::Tcp,
                client: Client::UNKNOWN,
            };
            let Ok(listener) = Listener::new(bound) else { return };
            tokio::spawn(accept(listener, Arc::clone(&places), dispatch));
        }
        let _ = stopped.await;
    });
}

/// Takes clients in.
async fn accept(listener: Noted<Listener>, places: Arc<Places>, dispatch: Dispatch) {
    loop {
        while let Some(next) = places.next() {
            tokio::time::sleep_until(next.into()).await;
        }
        make_room(&places, &dispatch.context).await;
        let next = poll_fn(|cx| {
            let step = Step::begin();
            listener.poll_accept(cx).map_ok(|(stream, peer)| (Noted::new(&step, stream), peer))
        });
        match next.await {
            Ok((stream, peer)) => {
                let client = Client::of(&*stream);
                let dispatch = Dispatch { peer, client, ..dispatch.clone() };
                take_in(stream, &places, dispatch);
                // A client that has asked already is answered before others are taken in.
                tokio::task::yield_now().await;
            }
            // No descriptors are left, or the connection is gone already. Wait a little and go on.
            Err(error) => {
                if listener.has_waiting() {
                    tell_once(&error);
                    places.shed(Ended::Displaced);
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Returns when there is memory for a connection. When memory is short, the connection that has
/// waited longest makes room for each new one. Clients wait in the system's queue meanwhile.
async fn make_room(places: &Places, context: &Context) {
    while !context.memory.has_plenty() {
        places.shed(Ended::Memory);
        tokio::time::sleep(MOMENT).await;
        if context.memory.has_for_connection() {
            return;
        }
    }
}

/// Says once that no client can be taken in, because a client cannot be told.
fn tell_once(error: &io::Error) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let is_lasting = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    if is_lasting && !TOLD.load(Relaxed) {
        let is_told = say(&format!("it takes no clients in: {error}"));
        TOLD.store(is_told, Relaxed);
    }
}

fn take_in(stream: Noted<Stream>, places: &Arc<Places>, dispatch: Dispatch) {
    let counts = &dispatch.context.counts;
    counts.connected();
    match places.enter() {
        Some(place) => drop(tokio::spawn(serve(stream, place, dispatch))),
        None => counts.ended(Ended::Full),
    }
}

async fn serve(mut stream: Noted<Stream>, place: Place, dispatch: Dispatch) {
    let watch = Arc::clone(&place.watch);
    let (context, worker) = (Arc::clone(&dispatch.context), Arc::clone(&dispatch.worker));
    match &mut *stream {
        Stream::Tcp(stream) => connection::serve(stream, watch, dispatch).await,
        Stream::Unix(stream) => connection::serve(stream, watch, dispatch).await,
    }
    drop(stream);
    // The reading thread gives back the memory that the connection had.
    context.memory.flush();
    worker.wake();
}
