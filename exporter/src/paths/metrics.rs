//! `/metrics`: Prometheus text 0.0.4 or OpenMetrics 1.0, as the client accepts. The body is
//! compressed by gzip if the client accepts that. `?collect[]=` adds detail.
use crate::answer::{Answer, body, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::metrics::openmetrics::{self, OPENMETRICS};
use crate::metrics::text::{self, TEXT_0_0_4};
use crate::metrics::{Groups, Served};
use crate::negotiate;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, HeaderValue, VARY};
use std::io::Write;

/// The formats. Of equally liked ones, the first is used.
const FORMATS: [&str; 2] = [TEXT_0_0_4, OPENMETRICS];

/// Answers `GET /metrics`.
pub(crate) fn metrics(context: &Context, asked: &Asked) -> Answer {
    let wanted = match wanted(asked.uri().query().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(reason) => return line(StatusCode::BAD_REQUEST, reason),
    };
    let Some(format) = negotiate::choose(asked.headers(), &FORMATS) else {
        return line(
            StatusCode::NOT_ACCEPTABLE,
            "there are text/plain;version=0.0.4 and application/openmetrics-text;version=1.0.0",
        );
    };
    let counts = context.counts.snapshot();
    let served = match context.metrics.gather(context.namespace, wanted, Some(&counts)) {
        Ok(served) => served,
        Err(error) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return line(status, format_args!("the allocator could not be read: {error:?}"));
        }
    };
    let mut answer = match encode(format, &served) {
        Ok((kind, text)) if negotiate::likes_gzip(asked.headers()) => zipped(kind, text),
        Ok((kind, text)) => body(kind, text),
        Err(error) => return unwritten(&error),
    };
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    answer
}

fn unwritten(error: &prometheus::Error) -> Answer {
    let reason = format_args!("the metrics could not be written: {error}");
    line(StatusCode::INTERNAL_SERVER_ERROR, reason)
}

/// Returns the collectors that a query asks for. Source: `collect[]` of Prometheus' node exporter.
fn wanted(query: &str) -> Result<Groups, String> {
    let asked = form_urlencoded::parse(query.as_bytes());
    let names = asked.filter(|(key, _)| key == "collect[]").map(|(_, names)| names);
    names.into_iter().try_fold(Groups::default(), |wanted, names| wanted.with(&names))
}

fn encode(format: usize, served: &[Served]) -> Result<(&'static str, String), prometheus::Error> {
    match format {
        0 => Ok((TEXT_0_0_4, text::encode(served)?)),
        _ => Ok((OPENMETRICS, openmetrics::encode(served))),
    }
}

/// Returns a body compressed by gzip. If that fails, for which a vector has no reason, returns it
/// plain.
fn zipped(kind: &'static str, text: String) -> Answer {
    let mut to = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    match to.write_all(text.as_bytes()).and_then(|()| to.finish()) {
        Ok(bytes) => {
            let mut answer = body(kind, bytes);
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            answer
        }
        Err(_) => body(kind, text),
    }
}

#[cfg(test)]
#[path = "metrics_test.rs"]
mod tests;
