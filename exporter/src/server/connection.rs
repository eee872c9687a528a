//! One connection. Its requests are answered one after the other, until it ends, is too slow, or
//! has to make room.
use super::phase::{Late, Watch};
use super::watched::Watched;
use crate::counts::Ended;
use crate::dispatch::Dispatch;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

/// The most bytes of the buffer for a request's head and for what is read ahead. It begins with
/// 8 KiB. Browsers send all cookies of a host, whatever the port they are of.
const BUFFER: usize = 32 << 10;
/// The most headers of a request.
const HEADERS: usize = 64;

/// Answers the requests on a stream until it ends.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    watch: Arc<Watch>,
    dispatch: Dispatch,
) {
    let answer = service_fn(|request| {
        let (dispatch, watch) = (dispatch.clone(), Arc::clone(&watch));
        async move {
            let answer = dispatch.serve(request, || watch.arrived()).await;
            watch.answered();
            Ok::<_, Infallible>(answer)
        }
    });
    let exporter = Arc::clone(&dispatch.context);
    let stream = Watched { stream, watch: Arc::clone(&watch), exporter };
    let mut protocol = http1::Builder::new();
    // A client may say that its request is whole by closing its side.
    protocol.max_buf_size(BUFFER).max_headers(HEADERS).half_close(true);
    let connection = protocol.serve_connection(TokioIo::new(stream), answer);
    if let Some(reason) = until_over(connection, &watch, &dispatch).await {
        dispatch.context.counts.ended(reason);
    }
}

/// Drives a connection. Returns why the exporter ended it, if it did.
async fn until_over(
    connection: impl Future<Output = hyper::Result<()>>,
    watch: &Watch,
    dispatch: &Dispatch,
) -> Option<Ended> {
    let limits = dispatch.context.settings.load().limits;
    let mut connection = pin!(connection);
    let mut closed = pin!(watch.closed());
    let mut alarm = pin!(sleep(Duration::ZERO));
    let mut set_for: Option<Instant> = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(reason) = closed.as_mut().poll(cx) {
            return Poll::Ready(reason);
        }
        if let Poll::Ready(done) = connection.as_mut().poll(cx) {
            let is_malformed = done.is_err_and(|error| error.is_parse());
            return Poll::Ready(is_malformed.then_some(Ended::Malformed));
        }
        let Some((until, late)) = watch.deadline(&limits) else { return Poll::Pending };
        if set_for != Some(until) {
            set_for = Some(until);
            alarm.as_mut().reset(until.into());
        }
        alarm.as_mut().poll(cx).map(|()| match late {
            Late::Slow => Some(Ended::Slow),
            Late::Idle => Some(Ended::Idle),
        })
    })
    .await
}
