//! Which client may ask for what, on every kind of surface: the whole table.
mod client;

use client::{any, body, directory, raw, raw_unix, request, status};
use lumalloc_exporter::{Builder, Exporter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const TOKEN: &str = "Authorization: Bearer 0123456789abcdef\r\n";

fn token_file(name: &str) -> PathBuf {
    let path = directory("asking").join(name);
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"0123456789abcdef\n").unwrap();
    path
}

/// Returns the statuses of a path for a client without a token, one with a wrong token, one with
/// the right token, a browser that was led here under another name, and one on a page of another
/// site.
fn asked(ask: &dyn Fn(&str, &str) -> u16) -> [u16; 5] {
    [
        ask("127.0.0.1", ""),
        ask("127.0.0.1", "Authorization: Bearer 0123456789abcdeX\r\n"),
        ask("127.0.0.1", TOKEN),
        ask("evil.example", TOKEN),
        ask("127.0.0.1", &format!("{TOKEN}Origin: http://evil.example\r\n")),
    ]
}

/// A path that is open to all, one that is not, one that does not exist, and one with the wrong
/// method.
const PATHS: [(&str, &str); 4] =
    [("GET", "/-/healthy"), ("GET", "/stats"), ("GET", "/nothing"), ("POST", "/stats")];

type Table = [[u16; 5]; 4];

fn table(ask: &dyn Fn(&str, &str, &str, &str) -> u16) -> Table {
    PATHS.map(|(method, path)| asked(&|host, headers| ask(method, path, host, headers)))
}

fn tcp(builder: Builder, metrics: bool) -> Table {
    let exporter = builder.start().unwrap();
    let address = if metrics { exporter.metrics_address() } else { exporter.address() };
    let address = address.unwrap();
    table(&|method, path, host, more| status(&raw(address, &request(method, path, host, more))))
}

fn unix(builder: Builder, path: &Path) -> Table {
    let _exporter = builder.listen_unix(path).start().unwrap();
    let ask = |request: &[u8]| status(&raw_unix(path, request));
    table(&|method, path, host, more| ask(&request(method, path, host, more)))
}

#[test]
fn without_a_token_loopback_is_enough() {
    let all = [
        [200, 200, 200, 403, 403],
        [200, 200, 200, 403, 403],
        [404, 404, 404, 403, 403],
        [405, 405, 405, 403, 403],
    ];
    assert_eq!(tcp(Exporter::builder().listen(any()), false), all);
}

#[test]
fn with_a_token_only_health_is_open() {
    let with = Exporter::builder().listen(any()).token_file(token_file("with"));
    let all = [
        [200, 200, 200, 403, 403],
        [401, 401, 200, 403, 403],
        [401, 401, 404, 403, 403],
        [401, 401, 405, 403, 403],
    ];
    assert_eq!(tcp(with, false), all);
}

#[test]
fn the_surface_of_the_numbers_knows_its_paths_only() {
    let all = [
        [200, 200, 200, 403, 403],
        [404, 404, 404, 403, 403],
        [404, 404, 404, 403, 403],
        [404, 404, 404, 403, 403],
    ];
    let split = || Exporter::builder().listen(any()).metrics_on(any());
    assert_eq!(tcp(split(), true), all);
    assert_eq!(tcp(split().token_file(token_file("split")), true), all);
}

/// The system says which user asks on a unix socket. `Host` does not count there.
#[test]
fn on_a_unix_socket_the_user_counts() {
    let all = [
        [200, 200, 200, 200, 403],
        [200, 200, 200, 200, 403],
        [404, 404, 404, 404, 403],
        [405, 405, 405, 405, 403],
    ];
    let path = directory("asking").join("plain");
    assert_eq!(unix(Exporter::builder(), &path), all);
    let path = directory("asking").join("token");
    assert_eq!(unix(Exporter::builder().token_file(token_file("unix")), &path), all);
}

#[test]
fn names_can_be_made_known() {
    let exporter =
        Exporter::builder().listen(any()).allow_hosts(["pod-6.internal", "pod-7.internal:80"]);
    let exporter = exporter.start().unwrap();
    let ask = |host| raw(exporter.address().unwrap(), &request("GET", "/-/ready", host, ""));
    assert_eq!(status(&ask("pod-7.internal:9464")), 200);
    let refused = ask("pod-8.internal:9464");
    let reason = "Host \"pod-8.internal\" is not known here; allow_hosts, or host:NAME in \
                  LUMALLOC_EXPORTER, makes a name known\n";
    assert_eq!((status(&refused), body(&refused)), (403, reason));
}

/// The server does not read the body of a client without the token.
#[test]
fn bodies_are_not_read_for_those_who_may_not_ask() {
    let exporter = Exporter::builder().listen(any()).token_file(token_file("body"));
    let exporter = exporter.start().unwrap();
    let waiting = "Content-Length: 60000\r\nExpect: 100-continue\r\n";
    let answer = raw(exporter.address().unwrap(), &request("GET", "/stats", "localhost", waiting));
    assert_eq!(status(&answer), 401);
    assert!(answer.contains("\r\nwww-authenticate: Bearer realm=\"lumalloc\"\r\n"), "{answer}");
}
