//! Access control: the checks that are made before a request's body is read.
//!
//! ```text
//!  unix socket: the peer's user     ─┐
//!  Host: an address, or a known name ├─ else 403
//!  Origin, Sec-Fetch-Site: our own  ─┘
//!  a token, where one is set        ─  else 401; not on unix sockets, nor for open routes
//! ```
use crate::answer::{Answer, line};
use crate::settings::Settings;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The client at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A client over TCP.
    Tcp,
    /// A user of this machine, or `None` if the system did not say which.
    Unix(Option<u32>),
    /// A client that another server has let in.
    Guest,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    reason: String,
}

const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;

fn refuse<T>(status: StatusCode, reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { status, reason: reason.into() })
}

impl Refusal {
    /// Returns the answer that tells the client the reason.
    pub(crate) fn answer(&self) -> Answer {
        let mut answer = line(self.status, &self.reason);
        if self.status == StatusCode::UNAUTHORIZED {
            let wants = HeaderValue::from_static("Bearer realm=\"lumalloc\"");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, wants);
        }
        answer
    }
}

/// Checks everything but the token.
pub(crate) fn admit(settings: &Settings, peer: Peer, head: &Parts) -> Result<(), Refusal> {
    if let Peer::Unix(user) = peer {
        check_user(settings, user)?;
    }
    if peer == Peer::Tcp {
        check_host(settings, head)?;
    }
    check_origin(head)
}

/// Checks the token.
pub(crate) fn identify(settings: &Settings, peer: Peer, head: &Parts) -> Result<(), Refusal> {
    let Some(token) = settings.token.as_ref().filter(|_| !matches!(peer, Peer::Unix(_))) else {
        return Ok(());
    };
    let Some(given) = single(&head.headers, header::AUTHORIZATION)? else {
        return refuse(StatusCode::UNAUTHORIZED, "a token is needed: Authorization: Bearer ...");
    };
    match token.is(bearer(given.as_bytes()).unwrap_or_default()) {
        Ok(true) => Ok(()),
        Ok(false) => refuse(StatusCode::UNAUTHORIZED, "this is not the token"),
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

/// Returns the token of an `Authorization` header.
fn bearer(given: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = given.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn check_user(settings: &Settings, user: Option<u32>) -> Result<(), Refusal> {
    match user {
        Some(0) => Ok(()),
        Some(user) if user == crate::user::effective() || settings.users.contains(&user) => Ok(()),
        Some(user) => refuse(FORBIDDEN, format!("user {user} may not ask here")),
        None => refuse(FORBIDDEN, "the system does not say who asks"),
    }
}

/// Returns the value of a header that must not be there twice.
fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, Refusal> {
    let mut all = headers.get_all(&name).iter();
    match (all.next(), all.next()) {
        (_, Some(_)) => refuse(StatusCode::BAD_REQUEST, format!("{name} is there twice")),
        (first, None) => Ok(first),
    }
}

fn check_host(settings: &Settings, head: &Parts) -> Result<(), Refusal> {
    let host = single(&head.headers, header::HOST)?;
    if host.is_none() && head.version > Version::HTTP_10 {
        return refuse(StatusCode::BAD_REQUEST, "the request has no Host");
    }
    let written = host.map(HeaderValue::as_bytes);
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    for name in [written, target].into_iter().flatten() {
        if !is_known(settings, name) {
            let name = String::from_utf8_lossy(name);
            let name: String = without_port(&name).chars().take(64).collect();
            let reason = format!(
                "Host {name:?} is not known here; allow_hosts, or host:NAME in LUMALLOC_EXPORTER, \
                 makes a name known"
            );
            return refuse(FORBIDDEN, reason);
        }
    }
    Ok(())
}

/// Whether a name, with or without a port, is an address or an allowed name. A page whose own name
/// was made to resolve to this server still sends that name.
fn is_known(settings: &Settings, host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
    }
    let name = without_port(host);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok()
        || settings.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the name of a host that may have a port.
pub(crate) fn without_port(host: &str) -> &str {
    match host.split_once(':') {
        Some((name, _)) if !name.is_empty() && is_port(&host[name.len()..]) => name,
        _ => host,
    }
}

/// Whether a text is a port with its colon, as `:9464`.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or_default();
    digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
}

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Refuses a request that a browser sends for a page of another site. A link that a person follows
/// is answered, because it changes nothing and only the person sees the answer.
fn check_origin(head: &Parts) -> Result<(), Refusal> {
    let is = |name, value: &str| head.headers.get(name).is_some_and(|is| is == value);
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    let is_link = reads && is(MODE, "navigate") && is(DESTINATION, "document");
    let site = single(&head.headers, SITE)?;
    if site.is_some_and(|site| site != "same-origin" && site != "none") && !is_link {
        return refuse(FORBIDDEN, "a page of another site asks");
    }
    let Some(origin) = single(&head.headers, header::ORIGIN)? else { return Ok(()) };
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|from| from.1);
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match (from, host) {
        (Some(from), Some(host)) if from.eq_ignore_ascii_case(host) => Ok(()),
        _ => refuse(FORBIDDEN, "a page of another origin asks"),
    }
}

#[cfg(test)]
#[path = "guard_test.rs"]
mod tests;
