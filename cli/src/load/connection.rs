//! One keep-alive HTTP/1.1 connection. The client does only what is needed, so that it costs little
//! beside the service that it measures.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::failure::{Failure, Outcome, reason};

const MAX_HEADERS: usize = 32;
/// The longest head of an answer that can be expected.
const MAX_HEAD: usize = 16 << 10;

/// A connection to 127.0.0.1.
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

/// An answer. The body lies in the connection's buffer.
pub(crate) struct Answer<'a> {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The whole body.
    pub(crate) body: &'a [u8],
}

/// The status, where the body starts, and its length.
type Head = (u16, usize, usize);

impl Connection {
    /// Connects to a port.
    pub(crate) async fn open(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        Ok(Self { stream, answer: Vec::with_capacity(72 << 10) })
    }

    /// Sends a whole request and waits for the whole answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Outcome<Answer<'_>> {
        self.stream.write_all(request).await.map_err(broken)?;
        self.answer.clear();
        let (status, start, length) = loop {
            if let Some(head) = parse_head(&self.answer)? {
                break head;
            }
            self.read().await?;
        };
        while self.answer.len() < start + length {
            self.read().await?;
        }
        if self.answer.len() > start + length {
            return Err(Failure::new("the service sent more than it announced"));
        }
        Ok(Answer { status, body: &self.answer[start..] })
    }

    async fn read(&mut self) -> Outcome {
        match self.stream.read_buf(&mut self.answer).await.map_err(broken)? {
            0 => Err(Failure::new("the service closed a connection")),
            _ => Ok(()),
        }
    }
}

fn broken(error: std::io::Error) -> Failure {
    Failure::new(format!("the connection to the service broke: {}", reason(&error)))
}

/// Returns the head, once it is complete.
fn parse_head(bytes: &[u8]) -> Outcome<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let no_http = |why: &dyn std::fmt::Display| Failure::new(format!("not an HTTP answer: {why}"));
    let start = match response.parse(bytes).map_err(|error| no_http(&error))? {
        httparse::Status::Complete(start) => start,
        httparse::Status::Partial if bytes.len() > MAX_HEAD => {
            return Err(no_http(&"the head does not end"));
        }
        httparse::Status::Partial => return Ok(None),
    };
    let status = response.code.unwrap_or_default();
    let mut length = 0;
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            length = std::str::from_utf8(header.value)
                .ok()
                .and_then(|value| value.trim().parse().ok())
                .ok_or_else(|| no_http(&"bad content-length"))?;
        }
    }
    Ok(Some((status, start, length)))
}

/// A service for tests, which does not do what it should.
#[cfg(test)]
pub(crate) mod broken {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};

    /// What the service does with the first request, which has no body.
    pub(crate) enum Deed {
        /// It writes this, and closes the connection.
        Write(Vec<u8>),
        /// It resets the connection.
        Reset,
    }

    /// Serves one connection. Returns the port.
    pub(crate) fn served(deed: Deed) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            match deed {
                Deed::Write(bytes) => {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        request.extend(byte);
                    }
                    stream.write_all(&bytes).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    // The system would reset a connection of which something was not read.
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                // What was not read is the reason for a reset.
                Deed::Reset => drop(stream.peek(&mut [0])),
            }
        });
        port
    }
}

#[cfg(test)]
mod tests {
    use super::broken::{Deed, served};
    use super::*;

    #[test]
    fn heads_are_parsed_when_complete() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(parse_head(&text[..20]), Ok(None));
        assert_eq!(parse_head(text), Ok(Some((200, text.len() - 5, 5))));
        assert_eq!(parse_head(b"HTTP/1.1 204 No Content\r\n\r\n"), Ok(Some((204, 27, 0))));
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        let why = |bytes: &[u8]| parse_head(bytes).unwrap_err().message;
        assert_eq!(why(b"SSH-2.0-x\r\n\r\n"), "not an HTTP answer: invalid HTTP version");
        let negative = b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n";
        assert_eq!(why(negative), "not an HTTP answer: bad content-length");
        let mut endless = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        endless.resize(MAX_HEAD + 100, b'x');
        assert_eq!(why(&endless), "not an HTTP answer: the head does not end");
    }

    #[test]
    fn what_breaks_a_connection_is_said() {
        let said = |deed: Deed| {
            let port = served(deed);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut connection = Connection::open(port).await.unwrap();
                connection.ask(b"GET / HTTP/1.1\r\n\r\n").await.err().map(|why| why.message)
            })
        };
        let writes = |text: &str| Deed::Write(text.as_bytes().to_vec());
        let more = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab";
        for (deed, message) in [
            (writes(more), "the service sent more than it announced"),
            (writes("HTTP/1.1 200 OK\r\n"), "the service closed a connection"),
            (writes("SSH-2.0-x\r\n\r\n"), "not an HTTP answer: invalid HTTP version"),
            (Deed::Reset, "the connection to the service broke: connection reset by peer"),
        ] {
            assert_eq!(said(deed).as_deref(), Some(message));
        }
    }
}
