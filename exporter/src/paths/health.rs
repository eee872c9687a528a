//! `/-/healthy` and `/-/ready`: whether this process answers at all, and whether it has the memory
//! for other answers, which means for `/metrics`. Neither reads the allocator's numbers, so both
//! are answered when the process is out of memory or stuck.
use crate::answer::{Answer, line};
use crate::asked::Asked;
use crate::context::Context;
use hyper::StatusCode;

/// Answers `GET /-/healthy`.
pub(crate) fn healthy(_: &Context, _: &Asked) -> Answer {
    line(StatusCode::OK, "lumalloc: healthy")
}

/// Answers `GET /-/ready`.
pub(crate) fn ready(context: &Context, _: &Asked) -> Answer {
    if !context.memory.has_for_scrape() {
        let reason = "lumalloc: not ready: there is no memory for other answers";
        return line(StatusCode::SERVICE_UNAVAILABLE, reason);
    }
    line(StatusCode::OK, "lumalloc: ready")
}
