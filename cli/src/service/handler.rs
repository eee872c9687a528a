//! Turns requests into answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::leak::History;
use super::stats::Stats;
use super::store::Store;
use super::{MAX_VALUE, keys};

type Answer = Response<Full<Bytes>>;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// The state that all connections share.
pub(crate) struct Service {
    /// The values.
    pub(crate) store: Store,
    /// What `serve --leak` leaks.
    history: Option<History>,
    requests: AtomicU64,
}

impl Service {
    /// Makes a service over this store, with a leak or without.
    pub(crate) fn new(store: Store, leaks: bool) -> Self {
        let history = leaks.then(History::default);
        Self { store, history, requests: AtomicU64::new(0) }
    }

    /// Answers any request. A bad request gets 4xx and a line that says what is wrong.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let path = request.uri().path();
        if let Some(key) = path.strip_prefix("/kv/") {
            if let Some(why) = keys::refusal(key) {
                return text(StatusCode::BAD_REQUEST, why);
            }
            let key = key.to_owned();
            return self.answer_key(&key, request).await;
        }
        match (path, request.method()) {
            ("/list", &Method::GET) => self.list(request.uri().query().unwrap_or_default()),
            ("/stats", &Method::GET) => self.stats(),
            ("/list" | "/stats", _) => not_allowed("GET"),
            _ => text(StatusCode::NOT_FOUND, "there are /kv/<key>, /list?prefix=... and /stats"),
        }
    }

    async fn answer_key<B>(&self, key: &str, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match *request.method() {
            Method::GET => match self.store.get(key, Instant::now()) {
                Some(value) => answer(StatusCode::OK, "application/octet-stream", value),
                None => no_such_key(),
            },
            Method::PUT => self.put(key, request.into_body()).await,
            Method::DELETE if self.store.delete(key, Instant::now()) => {
                answer(StatusCode::NO_CONTENT, "text/plain", Bytes::new())
            }
            Method::DELETE => no_such_key(),
            _ => not_allowed("GET, PUT, DELETE"),
        }
    }

    async fn put<B>(&self, key: &str, body: B) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let whole = match Limited::new(body, MAX_VALUE).collect().await {
            Ok(whole) => whole.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, "a value has at most 65536 bytes");
            }
            Err(_) => return text(StatusCode::BAD_REQUEST, "the body broke off"),
        };
        // The value is copied, because `whole` may be a slice of the connection's buffer and keep
        // all of it.
        let value = Bytes::copy_from_slice(&whole);
        if let Some(history) = &self.history {
            history.remember(key, &value);
        }
        let replaced = self.store.put(key, value, Instant::now());
        let status = if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        answer(status, "text/plain", Bytes::new())
    }

    fn list(&self, query: &str) -> Answer {
        match list_query(query) {
            Ok((prefix, limit)) => json(&self.store.list(prefix, limit, Instant::now())),
            Err(why) => text(StatusCode::BAD_REQUEST, why),
        }
    }

    fn stats(&self) -> Answer {
        json(&Stats::collect(self.store.usage(), self.requests.load(Ordering::Relaxed)))
    }
}

/// Parses `prefix=...&limit=...`, both optional.
fn list_query(query: &str) -> Result<(&str, usize), &'static str> {
    let (mut prefix, mut limit) = ("", DEFAULT_LIMIT);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("prefix", value)) if keys::is_plain(value) => prefix = value,
            Some(("prefix", _)) => {
                return Err("a prefix consists of letters, digits and - . _ ~ : @ /");
            }
            Some(("limit", value)) => {
                limit = value.parse().unwrap_or(0);
                if !(1..=MAX_LIMIT).contains(&limit) {
                    return Err("limit is a number from 1 to 1000");
                }
            }
            _ => return Err("/list knows prefix=... and limit=..."),
        }
    }
    Ok((prefix, limit))
}

fn no_such_key() -> Answer {
    text(StatusCode::NOT_FOUND, "no such key")
}

fn not_allowed(methods: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed here");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

fn json(value: &impl serde::Serialize) -> Answer {
    let mut body = serde_json::to_vec(value).expect("plain data is always JSON");
    body.push(b'\n');
    answer(StatusCode::OK, "application/json", body.into())
}

fn text(status: StatusCode, line: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", format!("{line}\n").into())
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    struct Client {
        service: Service,
        runtime: tokio::runtime::Runtime,
    }

    impl Client {
        fn new() -> Self {
            let store = Store::new(8 << 20, Duration::from_secs(60));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            Self { service: Service::new(store, false), runtime }
        }

        /// Returns the status and body of the answer.
        fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
            let body = Full::new(Bytes::copy_from_slice(body));
            let request = Request::builder().method(method).uri(path).body(body).unwrap();
            self.runtime.block_on(async {
                let answer = self.service.answer(request).await;
                let status = answer.status().as_u16();
                let bytes = answer.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8(bytes.to_vec()).unwrap())
            })
        }
    }

    #[test]
    fn a_value_lives_and_dies() {
        let client = Client::new();
        assert_eq!(client.ask("GET", "/kv/a", b""), (404, "no such key\n".into()));
        assert_eq!(client.ask("PUT", "/kv/a", b"one"), (201, String::new()));
        assert_eq!(client.ask("PUT", "/kv/a", b"two"), (204, String::new()));
        assert_eq!(client.ask("GET", "/kv/a", b""), (200, "two".into()));
        assert_eq!(client.ask("DELETE", "/kv/a", b""), (204, String::new()));
        assert_eq!(client.ask("DELETE", "/kv/a", b""), (404, "no such key\n".into()));
    }

    #[test]
    fn the_largest_value_fits_and_no_larger() {
        let client = Client::new();
        assert_eq!(client.ask("PUT", "/kv/a", &vec![b'x'; MAX_VALUE]).0, 201);
        let (status, line) = client.ask("PUT", "/kv/a", &vec![b'y'; MAX_VALUE + 1]);
        assert_eq!((status, line.as_str()), (413, "a value has at most 65536 bytes\n"));
        assert!(client.ask("GET", "/kv/a", b"").1.starts_with('x'));
    }

    #[test]
    fn lists_are_sorted_and_limited() {
        let client = Client::new();
        for key in ["u/2", "u/1", "v/1", "u/3"] {
            client.ask("PUT", &format!("/kv/{key}"), b"x");
        }
        let list = |query| client.ask("GET", &format!("/list?{query}"), b"");
        assert_eq!(list("prefix=u/"), (200, "[\"u/1\",\"u/2\",\"u/3\"]\n".into()));
        assert_eq!(list("prefix=u/&limit=1"), (200, "[\"u/1\"]\n".into()));
        assert_eq!(client.ask("GET", "/list", b"").0, 200);
    }

    #[test]
    fn bad_requests_are_told_why() {
        let client = Client::new();
        let cases = [
            ("GET", "/kv/", 400, "the key is empty\n"),
            ("GET", "/kv/%41", 400, "a key consists of letters, digits and - . _ ~ : @ /\n"),
            ("POST", "/kv/a", 405, "method not allowed here\n"),
            ("PUT", "/stats", 405, "method not allowed here\n"),
            (
                "GET",
                "/list?prefix=a%20b",
                400,
                "a prefix consists of letters, digits and - . _ ~ : @ /\n",
            ),
            ("GET", "/list?limit=0", 400, "limit is a number from 1 to 1000\n"),
            ("GET", "/list?limit=x", 400, "limit is a number from 1 to 1000\n"),
            ("GET", "/list?foo=1", 400, "/list knows prefix=... and limit=...\n"),
            ("GET", "/", 404, "there are /kv/<key>, /list?prefix=... and /stats\n"),
        ];
        for (method, path, status, line) in cases {
            assert_eq!(client.ask(method, path, b""), (status, line.into()), "{method} {path}");
        }
        let long = format!("/kv/{}", "k".repeat(257));
        let line = "the key is longer than 256 bytes\n";
        assert_eq!(client.ask("PUT", &long, b"x"), (400, line.into()));
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        let client = Client::new();
        for (path, methods) in [("/kv/a", "GET, PUT, DELETE"), ("/list", "GET"), ("/stats", "GET")]
        {
            let request = Request::post(path).body(Full::new(Bytes::new())).unwrap();
            let answer = client.runtime.block_on(client.service.answer(request));
            assert_eq!(answer.headers()[ALLOW], methods, "{path}");
        }
    }

    /// A body that never arrives.
    struct Broken;

    impl Body for Broken {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
        }
    }

    #[test]
    fn a_body_that_breaks_off_is_said_and_stores_nothing() {
        let client = Client::new();
        let request = Request::put("/kv/a").body(Broken).unwrap();
        let answer = client.runtime.block_on(client.service.answer(request));
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let body = client.runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        assert_eq!(body, "the body broke off\n");
        assert_eq!(client.ask("GET", "/kv/a", b"").0, 404);
    }

    #[test]
    fn stats_count() {
        let client = Client::new();
        client.ask("PUT", "/kv/a", b"12345");
        let (status, body) = client.ask("GET", "/stats", b"");
        let stats: Stats = serde_json::from_str(&body).unwrap();
        assert_eq!((status, stats.service.entries, stats.service.requests), (200, 1, 2));
    }
}
