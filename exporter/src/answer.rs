//! Answers: a status, a type, a body.
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// What a path answers.
pub type Answer = Response<Full<Bytes>>;

/// `text/plain`.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// `application/json`.
pub(crate) const JSON: &str = "application/json";

/// A body of a type, with 200.
pub(crate) fn body(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A line of text that says what is wrong, or that all is well.
pub(crate) fn line(status: StatusCode, line: impl std::fmt::Display) -> Answer {
    let mut answer = body(TEXT, format!("{line}\n"));
    *answer.status_mut() = status;
    answer
}
