//! The value of `LUMALLOC_EXPORTER`: `ADDRESS:PORT` or `unix:PATH`, then options after commas.
//! `liblumalloc_exporter.so` does what it says, and `lumalloc run` looks at it before.
//!
//! | option | meaning |
//! |---|---|
//! | `metrics:ADDRESS:PORT` | the numbers alone are served there too |
//! | `token:FILE` | clients over TCP must send the word in this file |
//! | `dumps:DIRECTORY` | where `POST /dump` and `POST /monitor/start` write |
//! | `host:NAME` | requests may have this `Host`; may be there several times |
//! | `program:NAME` | only a program of this name serves |
//!
//! In paths, `%p` stands for the number of the process.
use crate::guard;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The name of the variable.
pub const VARIABLE: &str = "LUMALLOC_EXPORTER";

/// The address to listen on.
#[derive(Debug)]
pub enum Place {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// The value of the variable.
#[derive(Debug)]
pub struct Wish {
    /// Where everything is served.
    pub place: Place,
    /// Where the numbers alone are served too.
    pub metrics: Option<SocketAddr>,
    /// The file with the token.
    pub token: Option<PathBuf>,
    /// The directory that files are written to.
    pub dumps: Option<PathBuf>,
    /// Names that requests may have as their `Host`.
    pub hosts: Vec<String>,
    /// The name of the program that serves.
    pub program: Option<OsString>,
}

impl Wish {
    /// Reads the value of the variable.
    ///
    /// # Errors
    /// A line that says what is wrong, after `origin`: the name of the variable, or of the option
    /// that sets it.
    pub fn read(text: &OsStr, origin: &str) -> Result<Wish, String> {
        let mut items = text.as_bytes().split(|&byte| byte == b',');
        let place = items.next().unwrap_or_default();
        let place = address(place).ok_or_else(|| {
            let place = OsStr::from_bytes(place).display();
            format!("{origin}: {place:?} is neither ADDRESS:PORT, as 127.0.0.1:9464, nor unix:PATH")
        })?;
        let (metrics, token, dumps, program) = (None, None, None, None);
        let mut wish = Wish { place, metrics, token, dumps, hosts: Vec::new(), program };
        for item in items {
            if item.is_empty() {
                return Err(format!("{origin}: nothing stands before or behind one of the commas"));
            }
            if let Some(host) = item.strip_prefix(b"host:").filter(|host| !is_host(host)) {
                let host = OsStr::from_bytes(host).display();
                return Err(format!(
                    "{origin}: host:{host} is no name of a host: it has letters, digits and -._ \
                     alone, as redis or redis.example.org"
                ));
            }
            wish.option(item).ok_or_else(|| {
                let item = OsStr::from_bytes(item).display();
                format!(
                    "{origin}: {item:?} is none of metrics:ADDRESS:PORT, token:FILE, \
                     dumps:DIRECTORY, host:NAME and program:NAME"
                )
            })?;
        }
        match (&wish.place, wish.metrics) {
            (Place::Tcp(place), Some(metrics)) if is_same(*place, metrics) => Err(format!(
                "{origin}: {place} and metrics:{metrics} are the same port: give metrics another"
            )),
            _ => Ok(wish),
        }
    }

    fn option(&mut self, item: &[u8]) -> Option<()> {
        let colon = item.iter().position(|&byte| byte == b':')?;
        let (name, value) = item.split_at_checked(colon)?;
        let value = value.get(1..).filter(|value| !value.is_empty())?;
        match name {
            b"metrics" => self.metrics = Some(tcp(value)?),
            b"token" => self.token = Some(path(value)),
            b"dumps" => self.dumps = Some(path(value)),
            b"host" => self.hosts.push(str::from_utf8(value).ok()?.to_owned()),
            b"program" => self.program = Some(OsStr::from_bytes(value).to_owned()),
            _ => return None,
        }
        Some(())
    }
}

fn address(text: &[u8]) -> Option<Place> {
    match text.strip_prefix(b"unix:") {
        Some([]) => None,
        Some(socket) => Some(Place::Unix(path(socket))),
        None => tcp(text).map(Place::Tcp),
    }
}

fn tcp(text: &[u8]) -> Option<SocketAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a name can stand in a `Host`, with a port or not.
fn is_host(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else { return false };
    let name = guard::without_port(text);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    !name.is_empty() && name.bytes().all(is_name) || literal.parse::<IpAddr>().is_ok()
}

/// Whether only one of two addresses can be listened on.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let [one_ip, other_ip] = [one, other].map(|address| address.ip().to_canonical());
    let is_any = one_ip.is_unspecified() || other_ip.is_unspecified();
    one.port() != 0 && one.port() == other.port() && (one_ip == other_ip || is_any)
}

/// Returns a path with the number of the process in place of `%p`.
fn path(text: &[u8]) -> PathBuf {
    let number = std::process::id().to_string();
    let mut whole = Vec::with_capacity(text.len() + number.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"%p") {
            whole.extend_from_slice(number.as_bytes());
            rest = after;
        } else {
            whole.push(byte);
            rest = after;
        }
    }
    OsString::from_vec(whole).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_of_one_port_are_refused_with_the_reason() {
        let refusal = |text: &str| Wish::read(text.as_ref(), "--exporter").err();
        for (place, metrics) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("127.0.0.1:9464", "0.0.0.0:9464"),
            ("127.0.0.1:9464", "[::]:9464"),
            ("[::]:9464", "10.1.2.3:9464"),
        ] {
            let reason = format!(
                "--exporter: {place} and metrics:{metrics} are the same port: give metrics another"
            );
            assert_eq!(refusal(&format!("{place},metrics:{metrics}")), Some(reason));
        }
        for fine in [
            "127.0.0.1:9464,metrics:0.0.0.0:9465",
            "127.0.0.1:9464,metrics:127.0.0.2:9464",
            "127.0.0.1:0,metrics:0.0.0.0:0",
            "unix:/run/x.sock,metrics:0.0.0.0:9464",
        ] {
            assert_eq!(refusal(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_host_that_no_request_can_have_is_told() {
        let read =
            |host: &str| Wish::read(format!("127.0.0.1:9464,host:{host}").as_ref(), "--exporter");
        for wrong in ["*", "*.example.org", "http://foo", "a b", "a/b", "a:b", "é", "a@b"] {
            let reason = format!(
                "--exporter: host:{wrong} is no name of a host: it has letters, digits and -._ \
                 alone, as redis or redis.example.org"
            );
            assert_eq!(read(wrong).err(), Some(reason));
        }
        for fine in ["redis", "redis:9465", "a-b.example.org", "a_b", "10.0.0.1", "[::1]", "::1"] {
            assert_eq!(read(fine).unwrap().hosts, [fine]);
        }
    }

    #[test]
    fn a_comma_with_nothing_is_told() {
        for text in ["127.0.0.1:9464,", "127.0.0.1:9464,,host:x"] {
            let reason = "--exporter: nothing stands before or behind one of the commas";
            assert_eq!(Wish::read(text.as_ref(), "--exporter").err(), Some(reason.into()));
        }
    }
}
