//! A running exporter, asked over TCP.
mod client;

use client::{any, body, get, raw, request, status};
use lumalloc_exporter::{Exporter, Limits};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

#[test]
fn it_says_that_it_is_there_and_what_is_not() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let healthy = get(address, "/-/healthy");
    assert!(healthy.starts_with("HTTP/1.1 200 OK\r\n"), "{healthy}");
    assert_eq!(body(&healthy), "lumalloc: healthy\n");
    let unknown = get(address, "/nothing");
    assert!(unknown.starts_with("HTTP/1.1 404 Not Found\r\n"), "{unknown}");
    assert_eq!(body(&unknown), "no such path\n");
    let host = address.to_string();
    let posted = raw(address, &request("POST", "/-/healthy", &host, ""));
    assert!(posted.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{posted}");
    assert!(posted.contains("\r\nallow: GET\r\n"), "{posted}");
    let head = raw(address, &request("HEAD", "/-/healthy", &host, ""));
    assert_eq!((status(&head), body(&head)), (200, ""));
    drop(exporter);
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}

/// As `nc -N` and socat do: nothing more comes from the client, which waits for the answer.
#[test]
fn who_has_said_all_is_answered() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    for head in ["GET /metrics HTTP/1.0\r\n\r\n", "GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(exporter.address().unwrap()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), 200, "{head}");
    }
}

/// A program may say so that a connection is never closed.
#[test]
fn limits_may_be_as_long_as_can_be() {
    let [patience, idle, lifetime] = [Duration::MAX; 3];
    let limits = Limits { patience, idle, lifetime, ..Limits::default() };
    let exporter = Exporter::builder().listen(any()).limits(limits).start().unwrap();
    let address = exporter.address().unwrap();
    let mut two = format!("GET /-/healthy HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
    two.extend(request("GET", "/-/healthy", &address.to_string(), ""));
    let answers = raw(address, &two);
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
}

#[test]
fn bodies_are_bounded() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let host = address.to_string();
    let too_long = format!("Content-Length: 65537\r\n\r\n{}", "x".repeat(65537));
    let answer = raw(address, &request("GET", "/stats", &host, &too_long));
    assert_eq!((status(&answer), body(&answer)), (413, "a body has at most 65536 bytes\n"));
}
