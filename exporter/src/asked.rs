//! A request as paths see it.
use bytes::Bytes;
use hyper::Request;

/// A request with its whole body.
pub(crate) type Asked = Request<Bytes>;

/// The first reading, among the extensions of a request that asked for one.
#[derive(Clone)]
pub(crate) struct Before(pub(crate) Bytes);
