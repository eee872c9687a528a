//! A running exporter, asked over TCP.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use lumalloc_exporter::Exporter;

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn it_says_that_it_is_there_and_what_is_not() {
    let exporter =
        Exporter::builder().listen(SocketAddr::from(([127, 0, 0, 1], 0))).start().unwrap();
    let address = exporter.address().unwrap();
    let healthy = get(address, "/-/healthy");
    assert!(healthy.starts_with("HTTP/1.1 200 OK\r\n"), "{healthy}");
    assert!(healthy.ends_with("\r\n\r\nlumalloc: healthy\n"), "{healthy}");
    let unknown = get(address, "/nothing");
    assert!(unknown.starts_with("HTTP/1.1 404 Not Found\r\n"), "{unknown}");
    assert!(unknown.ends_with("\r\n\r\nno such path\n"), "{unknown}");
    let posted =
        format!("POST /-/healthy HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let posted = ask(address, &posted);
    assert!(posted.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{posted}");
    assert!(posted.contains("\r\nallow: GET\r\n"), "{posted}");
    drop(exporter);
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}
