//! Bodies that clients have not taken yet. Their bytes are counted and bounded.
use crate::answer::{Answer, line};
use bytes::Bytes;
use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Body;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Waker};

/// Bodies of at most so many bytes are not counted.
const SMALL: u64 = 1024;

/// The number of bytes that wait to be taken.
#[derive(Default)]
pub(crate) struct Unsent(Arc<AtomicUsize>);

/// A body that is counted as long as a part of it is in use.
struct Charged {
    bytes: Bytes,
    account: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes.len(), Relaxed);
    }
}

impl Unsent {
    /// Returns the number of bytes now.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Counts the body of an answer. Returns an answer 503 instead if too many bytes wait.
    pub(crate) fn charge(&self, answer: Answer, most: usize) -> Answer {
        if answer.body().size_hint().lower() <= SMALL {
            return answer;
        }
        let (head, body) = answer.into_parts();
        let bytes = whole(body);
        let now = self.0.fetch_add(bytes.len(), Relaxed) + bytes.len();
        let charged = Charged { bytes, account: Arc::clone(&self.0) };
        if now > most {
            return line(StatusCode::SERVICE_UNAVAILABLE, "too many answers wait to be taken");
        }
        Answer::from_parts(head, Full::new(Bytes::from_owner(charged)))
    }
}

/// Returns the bytes of a complete body.
fn whole(mut body: Full<Bytes>) -> Bytes {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut body).poll_frame(&mut context) {
        std::task::Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{TEXT, body};

    #[test]
    fn what_waits_is_counted_until_it_is_gone() {
        let unsent = Unsent::default();
        let long = |length: usize| body(TEXT, vec![b'x'; length]);
        let small = unsent.charge(long(1024), 0);
        assert_eq!((unsent.bytes(), small.status()), (0, StatusCode::OK));
        let first = unsent.charge(long(3000), 5000);
        assert_eq!(first.headers()["content-type"], TEXT);
        let bytes = whole(first.into_body());
        assert_eq!((unsent.bytes(), bytes.len()), (3000, 3000));
        let part = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(unsent.bytes(), 3000, "a part of it is still there");
        let second = unsent.charge(long(3000), 5000);
        assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(whole(second.into_body()), "too many answers wait to be taken\n");
        assert_eq!(unsent.bytes(), 3000);
        drop(part);
        assert_eq!(unsent.bytes(), 0);
        assert_eq!(unsent.charge(long(3000), 5000).status(), StatusCode::OK);
    }
}
