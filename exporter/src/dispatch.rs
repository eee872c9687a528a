//! From a request to its answer: the route, the thread it is answered on, the time limit.
use crate::answer::{Answer, line};
use crate::context::Context;
use crate::routes::{self, Asked, Found, Place, Surface};
use crate::worker::Worker;
use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue};
use std::sync::Arc;
use std::time::Duration;

/// Answers requests of one surface.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) context: Arc<Context>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) surface: Surface,
}

impl Dispatch {
    pub(crate) async fn answer(&self, asked: Asked) -> Answer {
        let route = match routes::find(asked.uri().path(), asked.method()) {
            Found::Route(route) => route,
            Found::WrongMethod(methods) => return wrong_method(&methods),
            Found::Nothing => return line(StatusCode::NOT_FOUND, "no such path"),
        };
        if route.surface == Surface::Admin && self.surface == Surface::Metrics {
            return line(StatusCode::NOT_FOUND, "no such path");
        }
        if route.place == Place::Here {
            return (route.answer)(&self.context, &asked);
        }
        let context = Arc::clone(&self.context);
        let job = move || (route.answer)(&context, &asked);
        let Ok(answer) = self.worker.run(job) else {
            return line(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait");
        };
        let limit: Duration = self.context.settings.load().patience;
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
