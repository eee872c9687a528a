//! `/-/healthy` and `/-/ready`: whether this process answers at all. Neither asks the allocator, so
//! both answer when it is out of memory or stuck.
use crate::answer::{Answer, line};
use crate::context::Context;
use crate::routes::Asked;
use hyper::StatusCode;

/// `GET /-/healthy`
pub(crate) fn healthy(_: &Context, _: &Asked) -> Answer {
    line(StatusCode::OK, "lumalloc: healthy")
}

/// `GET /-/ready`
pub(crate) fn ready(_: &Context, _: &Asked) -> Answer {
    line(StatusCode::OK, "lumalloc: ready")
}
