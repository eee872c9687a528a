//! The routes for another server: hyper, tower or axum.
//!
//! ```
//! use lumalloc_exporter::Exporter;
//! use hyper::server::conn::http1;
//! use hyper_util::rt::TokioIo;
//!
//! # async fn serve(stream: tokio::net::TcpStream) -> Result<(), Box<dyn std::error::Error>> {
//! // Made once, and cloned for each connection.
//! let service = Exporter::builder().service()?;
//! http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The other server decides who may connect, how long it waits for a request, and by which names it
//! is known. The service checks `Origin`, and the token if the builder was given one. Every path
//! starts at the root. A server that serves it behind a prefix must remove the prefix.
use crate::answer::Answer;
use crate::builder::Builder;
use crate::chores::Decay;
use crate::client::Client;
use crate::clock::{Bell, Clock, Ringer};
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::guard::Peer;
use crate::route::Surface;
use crate::start_error::StartError;
use crate::worker::Worker;
use hyper::Request;
use hyper::body::Body;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// Answers requests of another server, on any runtime. Its threads end with its last clone.
#[derive(Clone)]
pub struct Service {
    dispatch: Dispatch,
    _ringer: Arc<Ringer>,
}

/// The future of an answer.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

impl Builder {
    /// Returns the routes for an existing server. Addresses have no effect, and no token is needed.
    ///
    /// # Errors
    /// An error if the token file is unfit, if the directory for dumps takes no file, or if no
    /// thread can be started.
    pub fn service(mut self) -> Result<Service, StartError> {
        self.read_token()?;
        self.settings.check_dump_directory()?;
        let context = Context::new(self.namespace, self.settings, crate::routes::names());
        let (memory, ring) = (Arc::clone(&context.memory), Arc::clone(&context.ring));
        let decay = Decay::new(context.namespace, memory, ring);
        let worker = Worker::start(decay).map_err(StartError::Thread)?;
        let ringer = Bell::start().map_err(StartError::Thread)?;
        let dispatch = Dispatch {
            context,
            worker: Arc::new(worker),
            clock: Clock::Thread(Arc::clone(&ringer.bell)),
            surface: Surface::Admin,
            peer: Peer::Guest,
            client: Client::UNKNOWN,
        };
        Ok(Service { dispatch, _ringer: Arc::new(ringer) })
    }
}

impl Service {
    /// Limits this service to `/metrics`, `/-/healthy` and `/-/ready`, without a token.
    #[must_use]
    pub fn metrics_only(mut self) -> Service {
        self.dispatch.surface = Surface::Metrics;
        self
    }

    #[cfg(test)]
    pub(crate) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    fn answer<B>(&self, request: Request<B>) -> Answering
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let dispatch = self.dispatch.clone();
        Box::pin(async move { Ok(dispatch.serve(request, || ()).await) })
    }
}

impl<B> hyper::service::Service<Request<B>> for Service
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<B>) -> Answering {
        self.answer(request)
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        self.answer(request)
    }
}

#[cfg(test)]
mod tests {
    use crate::Exporter;
    use crate::testing::{get, said};

    #[test]
    fn one_dump_or_profile_is_written_at_a_time() {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = |path: &str| {
            let whole = get(path).map(http_body_util::Full::new);
            said(runtime.block_on(service.answer(whole)).unwrap())
        };
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        let busy = "another dump or profile is being written: try again\n";
        let paths = [
            "/debug/pprof/heap",
            "/debug/pprof/heap?seconds=600",
            "/debug/pprof/allocs",
            "/heap",
            "/pprof/heap",
            "/flamegraph",
        ];
        let flight = service.dispatch.context.flight.enter();
        for path in paths {
            assert_eq!(ask(path), (409, busy.into()), "{path}");
        }
        assert_eq!(ask("/debug/pprof/cmdline").0, 200);
        drop(flight);
        for path in paths {
            assert_eq!(ask(path), (404, off.into()), "{path}");
        }
    }

    #[test]
    fn the_second_reading_of_a_difference_is_not_refused() {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut second = get("/debug/pprof/heap?seconds=1").map(http_body_util::Full::new);
        let _flight = service.dispatch.context.flight.enter();
        // The tests run without the profiler, so there is no first reading.
        second.extensions_mut().insert(crate::asked::Before(bytes::Bytes::new()));
        *second.uri_mut() = "/debug/pprof/heap".parse().unwrap();
        assert_eq!(said(runtime.block_on(service.answer(second)).unwrap()).0, 404);
    }
}
