//! The routes, for somebody else's server: of hyper, tower or axum.
//!
//! ```
//! use lumalloc_exporter::Exporter;
//! use hyper::server::conn::http1;
//! use hyper_util::rt::TokioIo;
//!
//! # async fn serve(stream: tokio::net::TcpStream) -> Result<(), Box<dyn std::error::Error>> {
//! // Once; it is cloned for each connection.
//! let service = Exporter::builder().service()?;
//! http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The other server decides who may connect, how long it waits for a request, and which names it is
//! known by. Here `Origin` is looked at, and the token, where the builder was given one. Every path
//! stands at the root: behind a prefix, the other server takes the prefix off.
use crate::answer::Answer;
use crate::builder::Builder;
use crate::chores::Decay;
use crate::clock::{Bell, Clock, Ringer};
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::guard::Peer;
use crate::routes::Surface;
use crate::start_error::StartError;
use crate::worker::Worker;
use hyper::Request;
use hyper::body::Body;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// Answers requests of another server's, on any runtime. Its threads end with its last clone.
#[derive(Clone)]
pub struct Service {
    dispatch: Dispatch,
    _ringer: Arc<Ringer>,
}

/// An answer to come.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

impl Builder {
    /// The routes, for a server that is there already. Of what was set, the addresses count for
    /// nothing, and no token is needed.
    ///
    /// # Errors
    /// When the token file is not fit, or there is no thread.
    pub fn service(mut self) -> Result<Service, StartError> {
        self.read_token()?;
        let context = Context::new(self.namespace, self.settings);
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
        };
        Ok(Service { dispatch, _ringer: Arc::new(ringer) })
    }
}

impl Service {
    /// The same, for the numbers alone: `/metrics`, `/-/healthy`, `/-/ready`, without a token.
    #[must_use]
    pub fn metrics_only(mut self) -> Service {
        self.dispatch.surface = Surface::Metrics;
        self
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
