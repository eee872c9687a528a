//! From a request to its answer: the route, the thread it is answered on, the time limit.
use crate::answer::{Answer, line};
use crate::context::Context;
use crate::guard::{self, Peer};
use crate::routes::{self, Asked, Found, Place, Route, Surface};
use crate::worker::Worker;
use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue};
use hyper::http::request::Parts;
use std::sync::Arc;
use std::time::Duration;

/// Answers requests of one surface.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) context: Arc<Context>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) surface: Surface,
    pub(crate) peer: Peer,
}

impl Dispatch {
    /// The route of a request, or what is answered instead. Nothing of the body is read for it.
    pub(crate) fn route(&self, head: &Parts) -> Result<&'static Route, Box<Answer>> {
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

    /// Answers a request that has its route.
    pub(crate) async fn answer(&self, route: &'static Route, asked: Asked) -> Answer {
        if route.place == Place::Here {
            return (route.answer)(&self.context, &asked);
        }
        let context = Arc::clone(&self.context);
        let job = move || (route.answer)(&context, &asked);
        let Ok(answer) = self.worker.run(job) else {
            return line(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait");
        };
        let limit: Duration = self.context.settings.load().limits.patience;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            _ => line(StatusCode::SERVICE_UNAVAILABLE, "the allocator did not answer in time"),
        }
    }
}

fn wrong_method(methods: &[hyper::Method]) -> Answer {
    let names: Vec<&str> = methods.iter().map(hyper::Method::as_str).collect();
    let names = names.join(", ");
    let mut answer = line(StatusCode::METHOD_NOT_ALLOWED, format_args!("use {names}"));
    if let Ok(allowed) = HeaderValue::from_str(&names) {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}
