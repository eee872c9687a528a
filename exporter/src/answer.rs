//! HTTP answers: a status, a media type, a body.
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// The HTTP answer of a path.
pub type Answer = Response<Full<Bytes>>;

/// The media type `text/plain`.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// The media type `application/json`.
pub(crate) const JSON: &str = "application/json";

/// The media type of a file that no browser shows.
pub(crate) const BINARY: &str = "application/octet-stream";

/// Returns an answer with status 200 and a body of a media type.
pub(crate) fn body(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Returns the answer where there is no memory for the one that was asked for.
pub(crate) fn no_memory() -> Answer {
    line(StatusCode::SERVICE_UNAVAILABLE, "there is no memory for an answer")
}

/// Returns an answer of one line, which says what is wrong or that all is well.
pub(crate) fn line(status: StatusCode, line: impl std::fmt::Display) -> Answer {
    let mut answer = body(TEXT, format!("{line}\n"));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_memory_says_so() {
        let text = "there is no memory for an answer\n";
        assert_eq!(crate::testing::said(no_memory()), (503, text.into()));
    }
}
