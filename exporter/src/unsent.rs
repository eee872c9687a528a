//! Bodies that clients have not taken yet. Their bytes are counted and bounded.
use crate::answer::{Answer, line};
use crate::single_flight::{Flight, SingleFlight};
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

/// Longer bodies are never sent, unless the limit of the settings is higher.
const LONGEST: usize = 256 << 20;

/// The number of bytes that wait to be taken.
#[derive(Default)]
pub(crate) struct Unsent {
    bytes: Arc<AtomicUsize>,
    /// Guards bodies that are longer than the limit by themselves: there is one at a time, and it
    /// does not keep others from being sent.
    long: SingleFlight,
}

/// A body that is counted as long as a part of it is in use.
struct Charged {
    bytes: Bytes,
    _share: Share,
}

/// What a body is counted in.
enum Share {
    /// So many of the bytes that wait.
    Bytes { account: Arc<AtomicUsize>, count: usize },
    /// The one that is longer than the limit.
    Long(#[expect(dead_code, reason = "dropping it ends it")] Flight),
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Share::Bytes { account, count } = self {
            account.fetch_sub(*count, Relaxed);
        }
    }
}

impl Unsent {
    /// Returns the number of bytes now.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Counts the body of an answer. Returns an answer 503 instead if too many bytes wait, and 507
    /// if so long a body is never sent.
    pub(crate) fn charge(&self, answer: Answer, most: usize) -> Answer {
        if answer.body().size_hint().lower() <= SMALL {
            return answer;
        }
        let (head, body) = answer.into_parts();
        match self.hold(whole(body), most) {
            Ok(bytes) => Answer::from_parts(head, Full::new(bytes)),
            Err(refused) => *refused,
        }
    }

    /// Counts bytes as long as a part of them is in use, or returns the answer that refuses them.
    pub(crate) fn hold(&self, bytes: Bytes, most: usize) -> Result<Bytes, Box<Answer>> {
        let share = self.share(bytes.len(), most)?;
        Ok(Bytes::from_owner(Charged { bytes, _share: share }))
    }

    fn share(&self, count: usize, most: usize) -> Result<Share, Box<Answer>> {
        let full = || line(StatusCode::SERVICE_UNAVAILABLE, "too many answers wait to be taken");
        if count > most.max(LONGEST) {
            let reason = format_args!("the answer has {count} bytes, more than {LONGEST}");
            return Err(line(StatusCode::INSUFFICIENT_STORAGE, reason).into());
        }
        if count > most {
            return self.long.enter().map(Share::Long).ok_or_else(|| full().into());
        }
        let now = self.bytes.fetch_add(count, Relaxed) + count;
        let share = Share::Bytes { account: Arc::clone(&self.bytes), count };
        if now > most { Err(full().into()) } else { Ok(share) }
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
    use crate::testing::said;

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

    #[test]
    fn a_body_longer_than_the_limit_is_sent_alone_and_keeps_no_other_from_being_sent() {
        let unsent = Unsent::default();
        let long = |length: usize| body(TEXT, vec![b'x'; length]);
        let busy = "too many answers wait to be taken\n";
        let other = unsent.charge(long(4000), 5000);
        let first = unsent.charge(long(6000), 5000);
        assert_eq!((first.status(), other.status()), (StatusCode::OK, StatusCode::OK));
        assert_eq!(unsent.bytes(), 4000);
        let second = unsent.charge(long(6000), 5000);
        assert_eq!(said(second), (503, busy.into()));
        drop(first);
        assert_eq!(unsent.charge(long(6000), 5000).status(), StatusCode::OK);
    }

    #[test]
    fn a_body_that_is_too_long_for_any_moment_is_refused() {
        let unsent = Unsent::default();
        let refused = unsent.share(LONGEST + 1, 5000).err().unwrap();
        let text = "the answer has 268435457 bytes, more than 268435456\n";
        assert_eq!(said(*refused), (507, text.into()));
        assert!(unsent.share(LONGEST, 5000).is_ok());
        // Unless the settings allow more.
        assert!(unsent.share(LONGEST + 1, LONGEST + 1).is_ok());
    }
}
