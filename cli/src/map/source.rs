//! Where a map comes from: the exporter of a process, or a file.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::process;
use crate::failure::{Failure, Outcome, reason};

/// Where an exporter is, unless the user says it.
const USUAL: &str = "127.0.0.1:9464";
/// The variable that tells a program's exporter where to serve.
const EXPORTER: &[u8] = b"LUMALLOC_EXPORTER";
/// The header of an answer with the number of the process that serves.
const PROCESS: &str = "lumalloc-process";
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer.
const LONGEST: usize = 64 << 20;

/// Where a map comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An exporter.
    Exporter(Exporter),
    /// A file that `lumalloc map --json` wrote.
    File(PathBuf),
}

/// As whom, and of which process, an exporter is asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question<'a> {
    /// The word that its token file has.
    pub(crate) token: Option<&'a str>,
    /// The process whose heap is wanted, if it matters.
    pub(crate) process: Option<u32>,
}

/// The address of an exporter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exporter {
    /// HOST:PORT.
    Tcp(String),
    /// The path of a socket.
    Unix(PathBuf),
}

impl Source {
    /// Returns the source that a word of the command line means: `unix:PATH`, `http://HOST:PORT`
    /// with any path behind it, `HOST:PORT`, or a file. No word means the usual address of the
    /// exporter.
    pub(crate) fn of(word: Option<&OsStr>) -> Outcome<Source> {
        let word = word.unwrap_or(OsStr::new(USUAL));
        if let Some(path) = word.as_bytes().strip_prefix(b"unix:") {
            return Ok(Source::Exporter(Exporter::Unix(OsStr::from_bytes(path).into())));
        }
        let Some(word) = word.to_str() else { return Ok(Source::File(word.into())) };
        if word.starts_with("https://") {
            let message = format!("{word}: https is not supported; exporters serve http");
            return Err(Failure::new(message));
        }
        if let Some(exporter) = Exporter::tcp(word) {
            return Ok(Source::Exporter(exporter));
        }
        let is_host = word == "localhost" || word.parse::<IpAddr>().is_ok();
        if word.starts_with("http://") || is_host && !Path::new(word).exists() {
            let message = format!("{word}: the port is missing, as in 127.0.0.1:9464");
            return Err(Failure::new(message));
        }
        Ok(Source::File(word.into()))
    }

    /// Returns the exporter of a process, as its environment names it.
    pub(crate) fn of_process(pid: u32) -> Outcome<Source> {
        let environment = fs::read(format!("/proc/{pid}/environ")).map_err(|error| {
            Failure::new(match error.kind() {
                io::ErrorKind::NotFound => format!("there is no process {pid}"),
                _ => {
                    let reason = reason(&error);
                    format!("cannot read the environment of process {pid}: {reason}")
                }
            })
        })?;
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(EXPORTER)?.strip_prefix(b"="));
        let address = value.and_then(|value| value.split(|byte| *byte == b',').next());
        let exporter = address.and_then(|address| match address.strip_prefix(b"unix:") {
            Some([]) => None,
            Some(path) => Some(Exporter::Unix(process::path(pid, path))),
            None => Some(std::str::from_utf8(address).ok()?).and_then(Exporter::tcp),
        });
        if matches!(&exporter, Some(Exporter::Tcp(address)) if address.ends_with(":0")) {
            return Err(Failure::new(format!(
                "the system chose the port of the exporter of process {pid} (port 0): name the \
                 address, which it said on standard error, in place of --pid"
            )));
        }
        exporter.map(Source::Exporter).ok_or_else(|| {
            Failure::new(format!(
                "process {pid} has no address in LUMALLOC_EXPORTER, or has overwritten its \
                 environment: name the address of its exporter in place of --pid"
            ))
        })
    }
}

impl Exporter {
    /// Returns what `http://HOST:PORT/PATH` or `HOST:PORT` names.
    fn tcp(word: &str) -> Option<Exporter> {
        let url = word.strip_prefix("http://");
        let address = url.map_or(word, |rest| rest.split('/').next().unwrap_or_default());
        let is_port = |port: &str| port.parse::<u16>().is_ok();
        // A name with a slash is a file's.
        let is_address = |(host, port): (&str, &str)| !host.contains('/') && is_port(port);
        let has_port = address.rsplit_once(':').is_some_and(is_address);
        has_port.then(|| Exporter::Tcp(address.to_owned()))
    }

    /// Returns the name for messages.
    fn name(&self) -> String {
        match self {
            Exporter::Tcp(address) => address.clone(),
            Exporter::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// Returns the body of an answer with status 200.
    pub(crate) fn get(&self, path: &str, question: Question<'_>) -> Outcome<Bytes> {
        self.get_within(PATIENCE, path, question)
    }

    fn get_within(&self, patience: Duration, path: &str, question: Question<'_>) -> Outcome<Bytes> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.unreachable(&error))?;
        let answer = async { tokio::time::timeout(patience, self.asked(path, question)).await };
        runtime.block_on(answer).unwrap_or_else(|_| {
            let seconds = patience.as_secs();
            Err(Failure::new(format!("{}: no answer within {seconds} s", self.name())))
        })
    }

    fn unreachable(&self, error: &io::Error) -> Failure {
        Failure::new(format!("cannot connect to {}: {}", self.name(), reason(error)))
    }

    /// Refuses the answer of another process than the one that is wanted. A forked child has the
    /// environment of its parent, but does not serve.
    fn check(&self, headers: &HeaderMap, wanted: Option<u32>) -> Outcome {
        let number: Option<u32> =
            headers.get(PROCESS).and_then(|number| number.to_str().ok()?.parse().ok());
        match (wanted, number) {
            (Some(wanted), Some(number)) if process::own_number(wanted) != number => {
                let name = self.name();
                Err(Failure::new(format!(
                    "process {wanted} does not serve its heap: {name} is the exporter of process \
                     {number}"
                )))
            }
            _ => Ok(()),
        }
    }

    async fn asked(&self, path: &str, question: Question<'_>) -> Outcome<Bytes> {
        match self {
            Exporter::Tcp(address) => {
                let stream = TcpStream::connect(address).await;
                self.over(stream.map_err(|error| self.unreachable(&error))?, path, question).await
            }
            Exporter::Unix(socket) => {
                let stream = UnixStream::connect(socket).await;
                self.over(stream.map_err(|error| self.unreachable(&error))?, path, question).await
            }
        }
    }

    async fn over<S>(&self, stream: S, path: &str, question: Question<'_>) -> Outcome<Bytes>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken =
            |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", self.name()));
        let host = if let Exporter::Tcp(address) = self { address } else { "localhost" };
        let mut request = Request::get(path).header("host", host);
        if let Some(token) = question.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| broken(&error))?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| broken(&error))?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = answer.status();
        self.check(answer.headers(), question.process)?;
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| broken(&error))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        let line = text.lines().next().unwrap_or_default();
        Err(Failure::new(format!("{} refused with {}: {line}", self.name(), status.as_u16())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn words_name_exporters_and_files() {
        let tcp = |address: &str| Source::Exporter(Exporter::Tcp(address.to_owned()));
        for (word, expected) in [
            (None, tcp("127.0.0.1:9464")),
            (Some("http://[::1]:80/"), tcp("[::1]:80")),
            (Some("http://127.0.0.1:9471/map?at=0x1"), tcp("127.0.0.1:9471")),
            (Some("host:9464"), tcp("host:9464")),
            (Some("unix:/run/x:1"), Source::Exporter(Exporter::Unix("/run/x:1".into()))),
            (Some("old.json"), Source::File("old.json".into())),
            (Some("a:b"), Source::File("a:b".into())),
            (Some("./map-10:30"), Source::File("./map-10:30".into())),
        ] {
            assert_eq!(Source::of(word.map(OsStr::new)), Ok(expected));
        }
        // Names need not be text.
        let [file, socket] = [&b"map-\xff:30"[..], b"unix:/run/\xff"].map(OsStr::from_bytes);
        assert_eq!(Source::of(Some(file)), Ok(Source::File(file.into())));
        let path = OsStr::from_bytes(b"/run/\xff").into();
        assert_eq!(Source::of(Some(socket)), Ok(Source::Exporter(Exporter::Unix(path))));
        for (word, why) in [
            ("https://h:9464/", "https is not supported; exporters serve http"),
            ("127.0.0.1", "the port is missing, as in 127.0.0.1:9464"),
            ("localhost", "the port is missing, as in 127.0.0.1:9464"),
            ("http://host/map", "the port is missing, as in 127.0.0.1:9464"),
        ] {
            let source = Source::of(Some(OsStr::new(word)));
            assert_eq!(source, Err(Failure::new(format!("{word}: {why}"))));
        }
    }

    #[test]
    fn processes_without_an_address_are_refused() {
        let failure = Source::of_process(std::process::id()).unwrap_err();
        let pid = std::process::id();
        let expected = format!(
            "process {pid} has no address in LUMALLOC_EXPORTER, or has overwritten its \
             environment: name the address of its exporter in place of --pid"
        );
        assert_eq!(failure, Failure::new(expected));
        let failure = Source::of_process(u32::MAX).unwrap_err();
        assert_eq!(failure, Failure::new("there is no process 4294967295"));
    }

    #[test]
    fn where_nobody_listens_is_said() {
        let exporter = Exporter::Unix("/nowhere".into());
        let expected = "cannot connect to unix:/nowhere: no such file or directory";
        assert_eq!(exporter.get("/map", Question::default()), Err(Failure::new(expected)));
    }

    /// Its connections are taken by the system, and by nobody else.
    #[test]
    fn an_exporter_that_does_not_answer_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let exporter = Exporter::Tcp(address.clone());
        let answer = exporter.get_within(Duration::ZERO, "/map", Question::default());
        assert_eq!(answer, Err(Failure::new(format!("{address}: no answer within 0 s"))));
    }
}
