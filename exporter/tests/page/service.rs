//! The service whose page is opened: `examples/service.rs` in a separate process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The example in a separate process.
pub(crate) struct Service {
    pub(crate) child: Child,
    /// The address of the page: `http://127.0.0.1:PORT/`.
    pub(crate) url: String,
}

impl Service {
    pub(crate) fn start(arguments: &[&str]) -> Service {
        Service::with_options(arguments, "")
    }

    /// A service with a heap profile.
    pub(crate) fn profiled() -> Service {
        Service::profiled_at("127.0.0.1:0")
    }

    /// The same at an address.
    pub(crate) fn profiled_at(address: &str) -> Service {
        Service::with_options(&[address], "prof:true,lg_prof_sample:14")
    }

    /// Ends the service. Its address is free then.
    pub(crate) fn end(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn with_options(arguments: &[&str], options: &str) -> Service {
        let mut command = Command::new(example());
        command.args(arguments).env("LUMALLOC_CONF", options).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
        Service { child, url }
    }

    pub(crate) fn busy() -> Service {
        Service::start(&["127.0.0.1:0"])
    }

    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches('/')
    }

    /// Asks the service without the page.
    pub(crate) fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let host = self.address();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Returns the index of the arena with a name.
    pub(crate) fn arena(&self, name: &str) -> String {
        let all = self.get("/stats?format=json&opts=gble");
        let all = all["jemalloc"]["stats.arenas"].as_object().unwrap().clone();
        all.into_iter().find(|(_, arena)| arena["name"] == name).unwrap().0
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the example as these tests were built.
fn example() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let profile = this.parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "lumalloc-exporter", "--example", "service"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
        profile.join("examples/service")
    })
}
