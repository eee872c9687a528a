//! One connection: its requests, one after the other.
use crate::answer::{Answer, line};
use crate::dispatch::Dispatch;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use tokio::io::{AsyncRead, AsyncWrite};

/// Answers what comes over a stream until it ends.
pub(super) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, dispatch: Dispatch) {
    let patience = dispatch.context.settings.load().limits.patience;
    let answer = service_fn(|request| {
        let dispatch = dispatch.clone();
        async move { Ok::<_, Infallible>(whole(&dispatch, request).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(patience);
    // A peer that breaks off concerns nobody else.
    let _ = protocol.serve_connection(TokioIo::new(stream), answer).await;
}

/// Reads the body, up to the limit, and answers.
async fn whole(dispatch: &Dispatch, request: Request<Incoming>) -> Answer {
    let limit = dispatch.context.settings.load().limits.body;
    let (head, body) = request.into_parts();
    let route = match dispatch.route(&head) {
        Ok(route) => route,
        Err(refused) => return *refused,
    };
    match Limited::new(body, limit).collect().await {
        Ok(body) => dispatch.answer(route, Request::from_parts(head, body.to_bytes())).await,
        Err(error) if error.is::<LengthLimitError>() => {
            line(StatusCode::PAYLOAD_TOO_LARGE, format_args!("a body has at most {limit} bytes"))
        }
        Err(_) => line(StatusCode::BAD_REQUEST, "the body did not arrive"),
    }
}
