//! The routes in other servers: in hyper, in tower, and on a runtime that has no timers.
mod client;

use client::{body, get, raw, request, status};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lumalloc_exporter::Exporter;
use lumalloc_exporter::answer::Answer;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use tower::ServiceExt;

fn asked(path: &str, headers: &[(&str, &str)]) -> Request<Empty<Bytes>> {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

/// Runs a future on a runtime without timers and sockets.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn text(answer: Answer) -> String {
    let bytes = run(answer.into_body().collect()).unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A plain server of hyper, which answers `/mine` itself.
#[test]
fn hyper_serves_it_beside_its_own() {
    let service = Exporter::builder().service().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = runtime.block_on(tokio::net::TcpListener::bind(any)).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service.clone();
            tokio::spawn(async move {
                let all = hyper::service::service_fn(move |request| both(service.clone(), request));
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), all).await;
            });
        }
    });
    assert_eq!(body(&get(address, "/mine")), "mine");
    assert_eq!(body(&get(address, "/-/healthy")), "lumalloc: healthy\n");
    assert!(body(&get(address, "/stats")).contains("lumalloc"));
    let evil = raw(address, &request("GET", "/stats", "evil.example", ""));
    assert_eq!(status(&evil), 200, "which names it has is the other server's affair");
    let page = "Origin: http://evil.example\r\n";
    assert_eq!(status(&raw(address, &request("GET", "/stats", "x", page))), 403);
}

async fn both(
    service: lumalloc_exporter::Service,
    request: Request<hyper::body::Incoming>,
) -> Result<Answer, std::convert::Infallible> {
    if request.uri().path() == "/mine" {
        return Ok(Response::new("mine".into()));
    }
    hyper::service::Service::call(&service, request).await
}

#[test]
fn tower_calls_it() {
    let service = Exporter::builder().service().unwrap();
    let answer = run(service.clone().oneshot(asked("/stats", &[]))).unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let boxed = tower::util::BoxCloneService::new(service.clone());
    let answer = run(boxed.oneshot(asked("/nothing", &[]))).unwrap();
    assert_eq!(text(answer), "no such path\n");
    let numbers = service.metrics_only();
    assert_eq!(run(numbers.clone().oneshot(asked("/-/ready", &[]))).unwrap().status(), 200);
    assert_eq!(run(numbers.oneshot(asked("/stats", &[]))).unwrap().status(), 404);
}

#[test]
fn axum_routes_to_it() {
    let service = Exporter::builder().service().unwrap();
    let router: axum::Router = axum::Router::new().nest_service("/lumalloc", service);
    let ask = asked("/lumalloc/-/healthy", &[]).map(axum::body::Body::new);
    let answer = run(router.oneshot(ask)).unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[test]
fn a_token_counts_here_too() {
    let path = client::directory("service").join("token");
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"0123456789abcdef").unwrap();
    let service = Exporter::builder().token_file(&path).service().unwrap();
    let ask = |headers| run(service.clone().oneshot(asked("/stats", headers))).unwrap().status();
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&[("authorization", "Bearer 0123456789abcdef")]), 200);
    let missing = Exporter::builder().token_file("/nonexistent").service().err().unwrap();
    let says = "the token file /nonexistent cannot be read: No such file or directory (os error 2)";
    assert_eq!(missing.to_string(), says);
}
