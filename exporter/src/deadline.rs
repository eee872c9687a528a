//! How long a request may wait for its answer.
use crate::settings::Limits;
use hyper::HeaderMap;
use std::time::{Duration, Instant};

/// The header in which Prometheus says how long it waits. An answer that comes later is lost.
const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";
/// The client's time divided by this number is left for the way back of the answer.
const WAY_BACK: u32 = 20;

/// Returns the moment when an answer is given up: after the exporter's patience or the client's,
/// whichever is shorter.
pub(crate) fn of(headers: &HeaderMap, limits: &Limits) -> Instant {
    Instant::now() + patience(headers, limits)
}

fn patience(headers: &HeaderMap, limits: &Limits) -> Duration {
    let text = headers.get(SCRAPE_TIMEOUT).and_then(|value| value.to_str().ok());
    let seconds = text.and_then(|text| text.trim().parse::<f64>().ok());
    let theirs = seconds.filter(|seconds| *seconds > 0.0);
    match theirs.map(Duration::try_from_secs_f64) {
        Some(Ok(theirs)) => limits.patience.min(theirs - theirs / WAY_BACK),
        _ => limits.patience,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_patience_counts() {
        let limits = Limits { patience: Duration::from_secs(10), ..Limits::default() };
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(SCRAPE_TIMEOUT, text.parse().unwrap());
            patience(&headers, &limits)
        };
        assert_eq!(patience(&HeaderMap::new(), &limits), limits.patience);
        assert_eq!(of("2"), Duration::from_millis(1900));
        assert_eq!(of("0.5"), Duration::from_millis(475));
        for text in ["11", "1e300", "inf", "nan", "0", "-1", "", "soon"] {
            assert_eq!(of(text), limits.patience, "{text}");
        }
    }
}
