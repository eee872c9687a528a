//! A service with bursts: `bursts EVENTS`. Each line of its standard input starts a burst, in which
//! an event is due every 1.6 ms. Between bursts nothing runs. Two threads of tokio do the work.
//!
//! ```text
//! ready
//! burst NUMBER MILLISECONDS ALLOCATED P50 P99 P99.9    when a burst is done
//! quiet NUMBER ALLOCATED                               when the quiet time after it ends
//! latencies MICROSECONDS...                            of all events, at the end of the input
//! ```
//! The percentiles are those of the events of the burst. An event's latency is the time in
//! microseconds from when it was due to its end, without the time that all events wait. Bytes are
//! those that the program holds.

mod counted;
mod event;

use counted::{Counted, allocated};
use event::{Cache, WAIT};
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Duration, Instant, sleep_until};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const APART: Duration = Duration::from_micros(1600);
const EVENTS: u64 = 1500;
/// After so many bursts the program ends.
const BURSTS: usize = 8;

/// What the events share.
struct Service {
    cache: Cache,
    /// Microseconds of each event, made before the first burst.
    latencies: Vec<AtomicU32>,
}

/// Handles an event that is due, and notes its latency.
async fn event(service: Arc<Service>, number: u64, due: Instant) {
    std::hint::black_box(event::handle(number, &service.cache).await);
    let latency = due.elapsed().saturating_sub(WAIT);
    service.latencies[number as usize].store(latency.as_micros() as u32, Relaxed);
}

/// Runs one burst, with the events of these numbers.
async fn burst(service: &Arc<Service>, numbers: Range<u64>) {
    let mut due = Instant::now();
    let mut events = Vec::new();
    for number in numbers {
        sleep_until(due).await;
        events.push(tokio::spawn(event(service.clone(), number, due)));
        due += APART;
    }
    for event in events {
        // An event that panicked has ended the process.
        let _ = event.await;
    }
}

/// The smallest latency that this share of the events does not exceed.
fn percentile(sorted: &[u32], share: f64) -> u32 {
    sorted[((sorted.len() as f64 * share).ceil() as usize).max(1) - 1]
}

/// Does a burst, and returns what is said of it.
fn line(runtime: &Runtime, service: &Arc<Service>, (number, events): (u64, u64)) -> String {
    let (first, end) = (number * events, (number + 1) * events);
    let begun = Instant::now();
    runtime.block_on(burst(service, first..end));
    let (millis, held) = (begun.elapsed().as_millis(), allocated());
    let latencies = &service.latencies[first as usize..end as usize];
    let mut sorted: Vec<u32> = latencies.iter().map(|one| one.load(Relaxed)).collect();
    sorted.sort_unstable();
    let [half, most, nearly_all] = [0.5, 0.99, 0.999].map(|share| percentile(&sorted, share));
    format!("burst {} {millis} {held} {half} {most} {nearly_all}", number + 1)
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn main() -> std::io::Result<()> {
    let events = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(EVENTS);
    let latencies = (0..BURSTS as u64 * events).map(|_| AtomicU32::new(0)).collect();
    let service = Arc::new(Service { cache: Cache::new(), latencies });
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let mut done = 0;
    say("ready")?;
    for input in std::io::stdin().lock().lines().take(BURSTS) {
        input?;
        if done > 0 {
            say(&format!("quiet {done} {}", allocated()))?;
        }
        say(&line(&runtime, &service, (done, events)))?;
        done += 1;
    }
    say(&format!("quiet {done} {}", allocated()))?;
    let mut all = "latencies".to_owned();
    for micros in &service.latencies[..(done * events) as usize] {
        let _ = write!(all, " {}", micros.load(Relaxed));
    }
    say(&all)
}
