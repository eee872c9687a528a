//! Any bytes as requests. The server answers or closes, continues to serve, and keeps nothing.
mod client;

use client::{get, status};
use lumalloc_exporter::{Exporter, Limits};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

static EXPORTER: LazyLock<Exporter> = LazyLock::new(|| {
    let limits = Limits { patience: Duration::from_secs(5), ..Limits::default() };
    Exporter::builder().listen(client::any()).limits(limits).start().unwrap()
});

fn address() -> SocketAddr {
    EXPORTER.address().unwrap()
}

/// Parts of requests, complete and broken.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "GET /stats HTTP/1.1\r\n",
        "POST /ctl/epoch HTTP/1.1\r\n",
        "HEAD /-/healthy HTTP/1.0\r\n",
        "GET http://[::1]:1/x HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "CONNECT localhost:1 HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /\0 HTTP/1.1\r\n",
        "Host: localhost\r\n",
        "Host: \r\n",
        "Host: [::1\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Expect: 100-continue\r\n",
        "Connection: close\r\n",
        "Upgrade: h2c\r\nConnection: upgrade\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: none\r\n",
        "Authorization: Bearer\r\n",
        "X-Prometheus-Scrape-Timeout-Seconds: 1e999\r\n",
        "Accept: */*;q=,,\r\n",
        "\r\n",
        "\n",
        " ",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "{\"value\":1}",
        ": \r\n",
    ]);
    prop_oneof![
        8 => known.prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..64),
        1 => (any::<u8>(), 0usize..30_000).prop_map(|(byte, count)| vec![byte; count]),
    ]
}

/// A request with one byte changed, removed or added.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let whole =
        b"POST /ctl/epoch?x=%41 HTTP/1.1\r\nHost: localhost:9464\r\nAccept: text/plain;q=0.5\r\n\
        Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"value\":1}";
    (0..whole.len(), any::<u8>(), 0..3u8).prop_map(|(at, byte, how)| {
        let mut bytes = whole.to_vec();
        match how {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
        bytes
    })
}

/// Sends bytes, shuts the sending side, and reads to the end.
fn send(bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address()).unwrap();
    stream.set_read_timeout(Some(client::LONG)).unwrap();
    // The server may close before all bytes are sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let answer = send(bytes);
    let text = String::from_utf8_lossy(&answer);
    prop_assert!(answer.is_empty() || text.starts_with("HTTP/1."), "{text}");
    prop_assert!(status(&text) != 500, "{text}");
    prop_assert_eq!(status(&get(address(), "/-/healthy")), 200);
    Ok(())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn anything_may_come() {
    assert_eq!(status(&get(address(), "/-/healthy")), 200);
    let before = descriptors();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let parts = vec(part(), 0..12).prop_map(|parts| parts.concat());
    runner.run(&parts, |bytes| check(&bytes)).unwrap();
    runner.run(&mutated(), |bytes| check(&bytes)).unwrap();
    // The descriptor of a closed connection is gone as soon as its task has noticed that.
    client::wait_until("no descriptor is left", || descriptors() <= before);
}
