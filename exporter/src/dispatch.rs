//! From a request to its answer: access, the route, the body, the thread that answers, the time
//! limit.
use crate::answer::{Answer, line, no_memory};
use crate::asked::{Asked, Before};
use crate::client::Client;
use crate::clock::Clock;
use crate::context::Context;
use crate::deadline;
use crate::guard::{self, Peer};
use crate::memory::Kind;
use crate::route::{Place, Route, Surface};
use crate::routes::{self, Found};
use crate::single_flight::Flight;
use crate::worker::{Busy, Worker};
use bytes::{Buf, BufMut, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{ALLOW, CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks whether a client that waits has left.
const LOOK: Duration = Duration::from_secs(1);
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// What paths of Go's net/http/pprof begin with.
const GO_PATHS: &str = "/debug/pprof/";
/// The header without which `go tool pprof` does not show the text of an error.
const GO_ERROR: HeaderName = HeaderName::from_static("x-go-pprof");

/// Answers requests of one surface.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) context: Arc<Context>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) clock: Clock,
    pub(crate) surface: Surface,
    pub(crate) peer: Peer,
    pub(crate) client: Client,
}

impl Dispatch {
    /// Answers a request. Calls `arrived` when all of the request has been read.
    pub(crate) async fn serve<B>(&self, request: Request<B>, arrived: impl FnOnce()) -> Answer
    where
        B: Body,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let is_for_go = head.uri.path().starts_with(GO_PATHS);
        let (route, answer) = match self.route(&head) {
            Ok(route) => (Some(route), self.asked(route, head, body, arrived).await),
            Err(refused) => (None, *refused),
        };
        let most = self.context.settings.load().limits.unsent;
        let mut answer = self.context.unsent.charge(answer, most);
        // Last, because the answer that is sent may be another one by now.
        self.context.counts.answered(route.map(routes::number), answer.status());
        let is_error = answer.status().is_client_error() || answer.status().is_server_error();
        let headers = answer.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        if is_for_go && is_error {
            headers.insert(GO_ERROR, HeaderValue::from_static("1"));
        }
        answer
    }

    /// Returns the route of a request, or the answer that refuses it. Reads nothing of the body.
    fn route(&self, head: &Parts) -> Result<&'static Route, Box<Answer>> {
        let settings = self.context.settings.load();
        guard::admit(&settings, self.peer, head).map_err(|refusal| refusal.answer())?;
        let found = routes::find(self.surface, head.uri.path(), &head.method);
        let is_open = matches!(found, Found::Route(route) if route.open);
        if self.surface == Surface::Admin && !is_open {
            guard::identify(&settings, self.peer, head).map_err(|refusal| refusal.answer())?;
        }
        match found {
            Found::Route(route) => Ok(route),
            Found::WrongMethod(methods) => Err(wrong_method(&methods).into()),
            Found::Nothing => Err(line(StatusCode::NOT_FOUND, "no such path").into()),
        }
    }

    /// Reads the body up to the limit, and answers the request.
    async fn asked<B>(
        &self,
        route: &'static Route,
        head: Parts,
        body: B,
        arrived: impl FnOnce(),
    ) -> Answer
    where
        B: Body,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let limit = self.context.settings.load().limits.body.max(route.body);
        match whole(body, limit).await {
            Ok(body) => {
                arrived();
                if let Some(refused) = refuse_body(route, &body) {
                    return refused;
                }
                self.answer(route, Request::from_parts(head, body)).await
            }
            Err(Unread::TooLong) => {
                let reason = format!("a body has at most {limit} bytes");
                line(StatusCode::PAYLOAD_TOO_LARGE, reason)
            }
            Err(Unread::NoMemory) => line(UNAVAILABLE, "there is no memory for the body"),
            Err(Unread::Broken) => line(StatusCode::BAD_REQUEST, "the body did not arrive"),
        }
    }

    async fn answer(&self, route: &'static Route, mut asked: Asked) -> Answer {
        if route.place == Place::Here {
            return (route.answer)(&self.context, &asked);
        }
        if let Some(first) = route.first {
            match (first.wait)(&asked) {
                Err(bad) => return bad.into(),
                Ok(None) => {}
                Ok(Some(wait)) => match self.first(route, first.read, &asked, wait).await {
                    Ok(before) => drop(asked.extensions_mut().insert(before)),
                    Err(answer) => return *answer,
                },
            }
        }
        // A request that has waited for its second reading is not refused.
        let is_second = asked.extensions().get::<Before>().is_some();
        let is_alone = route.alone && !is_second;
        self.read(route, is_alone, route.answer, asked).await
    }

    /// Makes the first reading, and waits. A request that would be one too many to wait gets 409.
    async fn first(
        &self,
        route: &'static Route,
        first: fn(&Context, &Asked) -> Answer,
        asked: &Asked,
        wait: Duration,
    ) -> Result<Before, Box<Answer>> {
        let Ok(_waits) = self.context.waits.try_acquire() else {
            let reason = "too many requests wait for what changes: try again";
            return Err(line(StatusCode::CONFLICT, reason).into());
        };
        let answer = self.read(route, route.alone, first, asked.clone()).await;
        if answer.status() != StatusCode::OK {
            return Err(answer.into());
        }
        let Ok(body) = answer.into_body().collect().await;
        let most = self.context.settings.load().limits.unsent;
        let before = self.context.unsent.hold(body.to_bytes(), most)?;
        let until = Instant::now() + wait;
        while Instant::now() < until {
            let next = until.min(Instant::now() + LOOK);
            let _ = self.clock.within(next, std::future::pending::<()>()).await;
            // A client may close its side because its request is whole. So it loses its place only
            // if no other is left.
            if self.context.waits.available_permits() == 0 && self.client.has_closed() {
                return Err(line(StatusCode::CONFLICT, "the client has closed its side").into());
            }
        }
        Ok(Before(before))
    }

    /// Has the reading thread answer. With `is_alone`, refuses while another such request is
    /// served.
    async fn read(
        &self,
        route: &'static Route,
        is_alone: bool,
        work: fn(&Context, &Asked) -> Answer,
        asked: Asked,
    ) -> Answer {
        let flight = match is_alone.then(|| self.context.flight.enter()) {
            Some(None) => {
                return line(
                    StatusCode::CONFLICT,
                    "another dump or profile is being written: try again",
                );
            }
            Some(flight) => flight,
            None => None,
        };
        let limits = self.context.settings.load().limits;
        let until = deadline::of(asked.headers(), &limits);
        let context = Arc::clone(&self.context);
        let job = move || read(route, work, &context, &asked, flight);
        match self.worker.run(until, route.surface == Surface::Metrics, self.client, job) {
            Ok(answer) => self.in_time(until, answer).await,
            Err(Busy::Full) => line(UNAVAILABLE, "too many requests wait"),
            Err(Busy::Gone) => line(UNAVAILABLE, "the exporter's reading thread has ended"),
        }
    }

    async fn in_time(
        &self,
        until: Instant,
        answer: tokio::sync::oneshot::Receiver<Answer>,
    ) -> Answer {
        match self.clock.within(until, answer).await {
            Some(Ok(answer)) => answer,
            _ => line(UNAVAILABLE, "the allocator did not answer in time"),
        }
    }
}

/// Why a body was not read.
enum Unread {
    TooLong,
    NoMemory,
    Broken,
}

/// Reads a whole body into memory that is allocated before the body is read.
async fn whole<B>(body: B, limit: usize) -> Result<Bytes, Unread>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(Unread::TooLong);
    }
    if hint.exact() == Some(0) {
        return Ok(Bytes::new());
    }
    let most = hint.upper().map_or(limit, |upper| limit.min(upper as usize));
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(most).map_err(|_| Unread::NoMemory)?;
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        if bytes.len() + data.remaining() > limit {
            return Err(Unread::TooLong);
        }
        bytes.put(data);
    }
    Ok(bytes.into())
}

/// Refuses a POST with a body that says something where nothing reads it. JSON's `null` says
/// nothing, as for a key that is triggered.
fn refuse_body(route: &Route, body: &[u8]) -> Option<Answer> {
    let is_read = route.takes_body || route.method != Method::POST;
    if is_read || matches!(body.trim_ascii(), b"" | b"null") {
        return None;
    }
    let reason = format_args!(
        "{} takes no body: leave it empty; parameters stand behind a ? in the path",
        route.path
    );
    Some(line(StatusCode::BAD_REQUEST, reason))
}

/// Makes an answer on the reading thread, if there is memory for it.
fn read(
    route: &'static Route,
    work: fn(&Context, &Asked) -> Answer,
    context: &Context,
    asked: &Request<Bytes>,
    _alone: Option<Flight>,
) -> Answer {
    let kind = Kind::Answer(routes::number(route));
    if !context.memory.has_for_job(kind) {
        return no_memory();
    }
    let answer = work(context, asked);
    context.memory.note(kind, answer.body().size_hint().lower() as usize);
    answer
}

fn wrong_method(methods: &[Method]) -> Answer {
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let names = names.join(", ");
    let mut answer = line(StatusCode::METHOD_NOT_ALLOWED, format_args!("use {names}"));
    if let Ok(allowed) = HeaderValue::from_str(&names) {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exporter;
    use crate::answer::{BINARY, body};
    use crate::route::First;
    use crate::testing::{get, post, said};
    use hyper::body::Frame;
    use std::pin::Pin;
    use std::task::{Context as Task, Poll};
    use tokio::task::yield_now;

    /// A difference between two readings that takes ten minutes.
    static SLOW: Route = slow(0);
    /// The same, with bodies of any length.
    static UNBOUNDED: Route = slow(usize::MAX);
    const BYTES: usize = 5000;

    const fn slow(longest: usize) -> Route {
        Route {
            path: "/slow",
            method: Method::GET,
            surface: Surface::Admin,
            place: Place::Reader,
            open: false,
            alone: true,
            takes_body: true,
            body: longest,
            first: Some(First {
                wait: |_| Ok(Some(Duration::from_secs(600))),
                read: |_, _| body(BINARY, vec![0; BYTES]),
            }),
            answer: |_, _| body(BINARY, vec![0; BYTES]),
        }
    }

    #[test]
    fn few_requests_wait_for_their_second_reading_and_what_they_keep_is_counted() {
        let service = Exporter::builder().service().unwrap();
        let dispatch = service.dispatch();
        let unsent = &dispatch.context.unsent;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let slow = || {
                let dispatch = dispatch.clone();
                tokio::spawn(async move { dispatch.answer(&SLOW, get("/slow")).await })
            };
            let mut waiting = Vec::new();
            for count in 1..=4 {
                waiting.push(slow());
                while unsent.bytes() < count * BYTES {
                    yield_now().await;
                }
            }
            let text = "too many requests wait for what changes: try again\n";
            assert_eq!(said(slow().await.unwrap()), (409, text.into()));
            // One whose client is gone makes room.
            waiting.pop().unwrap().abort();
            while unsent.bytes() > 3 * BYTES {
                yield_now().await;
            }
            let _fourth = slow();
            while unsent.bytes() < 4 * BYTES {
                yield_now().await;
            }
        });
    }

    #[test]
    fn who_has_left_makes_room_for_others_that_wait() {
        let service = Exporter::builder().service().unwrap();
        let context = &service.dispatch().context;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(async {
            let slow = |client| {
                let dispatch = Dispatch { client, ..service.dispatch().clone() };
                tokio::spawn(async move { dispatch.answer(&SLOW, get("/slow")).await })
            };
            // One profile is made at a time.
            let until_waiting = async |count| {
                while context.unsent.bytes() < count * BYTES {
                    yield_now().await;
                }
            };
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let leaves = slow(Client::of(&ours));
            until_waiting(1).await;
            for count in 2..=3 {
                slow(Client::UNKNOWN);
                until_waiting(count).await;
            }
            drop(theirs);
            tokio::time::sleep(2 * LOOK).await;
            assert!(!leaves.is_finished(), "there is a place for others");
            slow(Client::UNKNOWN);
            let text = "the client has closed its side\n";
            assert_eq!(said(leaves.await.unwrap()), (409, text.into()));
            assert_eq!(context.waits.available_permits(), 1);
        });
    }

    #[test]
    fn a_first_reading_for_which_there_is_no_room_is_refused() {
        let service = Exporter::builder().service().unwrap();
        let dispatch = service.dispatch();
        let most = dispatch.context.settings.load().limits.unsent;
        let _held = dispatch.context.unsent.hold(vec![0; most].into(), most).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(dispatch.answer(&SLOW, get("/slow")));
        assert_eq!(said(answer), (503, "too many answers wait to be taken\n".into()));
    }

    #[test]
    fn an_answer_that_is_refused_because_others_wait_is_counted_as_refused() {
        let service = Exporter::builder().service().unwrap();
        let dispatch = service.dispatch();
        let most = dispatch.context.settings.load().limits.unsent;
        let _held = dispatch.context.unsent.hold(vec![0; most].into(), most).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let list = get("/ctl").map(http_body_util::Full::new);
        let answer = runtime.block_on(dispatch.serve(list, || ()));
        assert_eq!(said(answer), (503, "too many answers wait to be taken\n".into()));
        let counts = dispatch.context.counts.snapshot().requests;
        let counts: Vec<_> = counts.iter().map(|one| (one.path, one.status, one.count)).collect();
        assert_eq!(counts, [("/ctl", "5xx", 1)]);
    }

    /// A body that breaks off, or if it did not, would be of any length.
    struct Broken;

    impl Body for Broken {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Task<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
        }
    }

    #[test]
    fn a_body_that_cannot_be_had_is_said() {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (route, answer) in [
            (&SLOW, (400, "the body did not arrive\n".into())),
            (&UNBOUNDED, (503, "there is no memory for the body\n".into())),
        ] {
            let (head, body) = Request::post("/slow").body(Broken).unwrap().into_parts();
            let arrived = || panic!("it did not arrive");
            let asked = service.dispatch().asked(route, head, body, arrived);
            assert_eq!(said(runtime.block_on(asked)), answer);
        }
    }

    #[test]
    fn go_is_told_that_the_text_of_an_error_is_for_people() {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        let alone = "another dump or profile is being written: try again\n";
        let unknown = "no such parameter: \"x\"; there are none here\n";
        let flight = service.dispatch().context.flight.enter().unwrap();
        for (path, header, status, text) in [
            ("/debug/pprof/heap", Some("1"), 409, alone),
            ("/debug/pprof/heap?debug=1", Some("1"), 409, alone),
            ("/debug/pprof/cmdline?x", Some("1"), 400, unknown),
            ("/debug/pprof/no", Some("1"), 404, "no such profile; GET /debug/pprof/ lists them\n"),
            ("/debug/pprof/symbol", None, 200, "num_symbols: 1\n"),
            ("/heap", None, 409, alone),
            ("/no", None, 404, "no such path\n"),
        ] {
            let asked = get(path).map(http_body_util::Full::new);
            let answer = runtime.block_on(service.dispatch().serve(asked, || ()));
            let told = answer.headers().get("x-go-pprof").map(|value| value.to_str().unwrap());
            assert_eq!(told, header, "{path}");
            assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8", "{path}");
            assert_eq!(said(answer), (status, text.into()), "{path}");
        }
        drop(flight);
        let asked = get("/debug/pprof/heap").map(http_body_util::Full::new);
        let answer = runtime.block_on(service.dispatch().serve(asked, || ()));
        assert_eq!(answer.headers()["x-go-pprof"], "1");
        assert_eq!(said(answer), (404, off.into()));
    }

    #[test]
    fn a_body_that_nothing_reads_is_refused() {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = |path: &str, body: &str| {
            let asked = post(path, body).map(http_body_util::Full::new);
            said(runtime.block_on(service.dispatch().serve(asked, || ())))
        };
        for path in [
            "/dump",
            "/monitor/start",
            "/monitor/stop",
            "/profile/reset",
            "/profile/start",
            "/profile/stop",
        ] {
            let refused = format!(
                "{path} takes no body: leave it empty; parameters stand behind a ? in the path\n"
            );
            for body in ["{\"lg_sample\":20}", "{}", "0", "lg_sample=20"] {
                assert_eq!(answer(path, body), (400, refused.clone()), "{path} {body}");
            }
        }
        // They do nothing here, where there is no directory and no heap profile.
        for (path, status) in [("/dump", 409), ("/monitor/start", 409), ("/profile/reset", 404)] {
            for body in ["", " \n", "null\n"] {
                assert_eq!(answer(path, body).0, status, "{path} {body}");
            }
        }
    }

    #[test]
    fn without_its_reading_thread_the_exporter_says_so() {
        let service = Exporter::builder().service().unwrap();
        let worker = Arc::new(Worker::ended());
        let dispatch = Dispatch { worker, ..service.dispatch().clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(dispatch.answer(&SLOW, get("/slow")));
        let text = "the exporter's reading thread has ended\n";
        assert_eq!(said(answer), (503, text.into()));
    }
}
