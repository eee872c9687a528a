//! Formats, encodings and errors of `/metrics`.
use super::*;
use crate::namespace::Linked;
use crate::routes;
use crate::settings::Settings;
use crate::testing::Mute;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use std::io::Read;
use std::sync::Arc;

fn context() -> Arc<Context> {
    Context::new(&Linked, Settings::default(), routes::names())
}

fn ask(path: &str, headers: &[(hyper::header::HeaderName, &str)]) -> Answer {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    metrics(&context(), &request.body(Bytes::new()).unwrap())
}

fn bytes(answer: Answer) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answer.into_body().collect()).unwrap().to_bytes().to_vec()
}

fn text_of(answer: Answer) -> String {
    String::from_utf8(bytes(answer)).unwrap()
}

#[test]
fn the_format_is_what_the_client_accepts() {
    let plain = ask("/metrics", &[]);
    assert_eq!(plain.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(plain.headers()[VARY], "Accept, Accept-Encoding");
    assert!(text_of(plain).contains("\n# TYPE lumalloc_allocations_total counter\n"));
    let open = ask("/metrics", &[(ACCEPT, "application/openmetrics-text;version=1.0.0")]);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.headers()[CONTENT_TYPE], kind);
    let open = text_of(open);
    assert!(open.contains("\n# TYPE lumalloc_allocations counter\n"), "{open}");
    assert!(open.ends_with("\n# EOF\n"));
    let neither = ask("/metrics", &[(ACCEPT, "*/*;q=0")]);
    assert_eq!(neither.status(), 406);
    assert_eq!(
        text_of(neither),
        "there are text/plain;version=0.0.4 and application/openmetrics-text;version=1.0.0\n"
    );
}

#[test]
fn gzip_is_sent_to_those_who_like_it() {
    let answer = ask("/metrics", &[(ACCEPT_ENCODING, "gzip")]);
    assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip");
    let mut text = String::new();
    GzDecoder::new(bytes(answer).as_slice()).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# HELP lumalloc_build_info "), "{text}");
    let answer = ask("/metrics", &[(ACCEPT_ENCODING, "gzip;q=0")]);
    assert!(!answer.headers().contains_key(CONTENT_ENCODING));
}

#[test]
fn an_allocator_that_answers_nothing_is_an_error() {
    let context = Context::new(&Mute, Settings::default(), routes::names());
    let answer = metrics(&context, &Request::get("/metrics").body(Bytes::new()).unwrap());
    assert_eq!(answer.status(), 500);
    assert_eq!(text_of(answer), "the allocator could not be read: NoEntry\n");
}

#[test]
fn metrics_that_cannot_be_written_are_an_error() {
    let answer = unwritten(&prometheus::Error::Msg("no name".into()));
    assert_eq!(answer.status(), 500);
    assert_eq!(text_of(answer), "the metrics could not be written: Error: no name\n");
}

#[test]
fn detail_is_asked_for() {
    let plain = text_of(ask("/metrics", &[]));
    assert!(!plain.contains("lumalloc_bin_") && !plain.contains("lumalloc_each_arena_"));
    let text = text_of(ask("/metrics?collect%5B%5D=bins&collect[]=arenas,mutexes", &[]));
    assert!(text.contains("\nlumalloc_bin_slabs{size=\"8\"} "), "{text}");
    assert!(text.contains("\nlumalloc_each_arena_threads{index=\"0\"} "), "{text}");
    assert!(text.contains("\nlumalloc_mutex_blocked_total{lock=\"ctl\"} "), "{text}");
    let wrong = ask("/metrics?collect[]=heap", &[]);
    assert_eq!(wrong.status(), 400);
    assert_eq!(
        text_of(wrong),
        "no collector \"heap\"; collect[] adds arenas, bins, lextents, extents, mutexes, engine; \
         always there are build, settings, memory, process, traffic, work, locks, purging, \
         named_arenas, regions, exporter\n"
    );
    assert_eq!(ask("/metrics?other=1", &[]).status(), 200, "what others put in is nothing to us");
}
