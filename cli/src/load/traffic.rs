//! The requests of each connection, and its counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;

use super::connection::Connection;
use super::event::Summary;
use super::keys::{self, KEYS, Zipf};
use super::random::Random;
use super::values::Values;
use crate::failure::{Failure, Outcome};

/// Latencies are kept from a microsecond to this, which is a minute, to three digits.
const LONGEST: u64 = 60_000_000;

/// The state that all connections share.
pub(crate) struct Plan {
    seed: u64,
    connections: u32,
    zipf: Zipf,
    values: Values,
    /// Requests answered so far.
    pub(crate) requests: AtomicU64,
    /// Set when counting begins.
    pub(crate) measuring: AtomicBool,
    /// Set when all connections shall end.
    pub(crate) stop: AtomicBool,
}

impl Plan {
    /// Makes the plan of this seed.
    pub(crate) fn new(seed: u64, connections: u32) -> Self {
        Self {
            seed,
            connections,
            zipf: Zipf::new(KEYS),
            values: Values::new(seed),
            requests: AtomicU64::new(0),
            measuring: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }
}

/// One connection with its random numbers.
pub(crate) struct Worker {
    plan: Arc<Plan>,
    number: u32,
    connection: Connection,
    random: Random,
    request: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Put,
    Delete,
}

impl Operation {
    /// Draws an operation: 80 % GET, 15 % PUT, 5 % DELETE.
    fn draw(random: &mut Random) -> Self {
        match random.below(100) {
            0..80 => Self::Get,
            80..95 => Self::Put,
            _ => Self::Delete,
        }
    }

    fn verb(self) -> &'static [u8] {
        match self {
            Self::Get => b"GET /kv/",
            Self::Put => b"PUT /kv/",
            Self::Delete => b"DELETE /kv/",
        }
    }
}

impl Worker {
    /// Connects the worker with this number, and waits until the service has taken the connection:
    /// until it answers.
    pub(crate) async fn connect(plan: Arc<Plan>, number: u32, port: u16) -> Outcome<Self> {
        let connection = Connection::open(port).await?;
        let random = Random::new(plan.seed, number.into());
        let mut worker = Self { plan, number, connection, random, request: Vec::new() };
        worker.perform(Operation::Get, 0).await?;
        Ok(worker)
    }

    /// Writes this worker's part of all keys once. The popular ones come last, so that they stay.
    pub(crate) async fn fill(&mut self) -> Outcome {
        let mine = (self.number as usize..KEYS).step_by(self.plan.connections as usize);
        for rank in mine.rev() {
            self.perform(Operation::Put, rank).await?;
        }
        Ok(())
    }

    /// Sends the mix of requests until the plan says stop.
    pub(crate) async fn run(mut self) -> Outcome<Tally> {
        let (plan, mut tally) = (Arc::clone(&self.plan), Tally::new());
        while !plan.stop.load(Ordering::Relaxed) {
            let operation = Operation::draw(&mut self.random);
            let rank = plan.zipf.draw(&mut self.random);
            let (counted, start) = (plan.measuring.load(Ordering::Relaxed), Instant::now());
            let found = self.perform(operation, rank).await?;
            // A request that ends after the measured time is not counted.
            if counted && !plan.stop.load(Ordering::Relaxed) {
                tally.count(operation, found, start.elapsed().as_micros() as u64);
            }
        }
        // The connection stays open while the demonstration reads the service's statistics.
        tally._connection = Some(self.connection);
        Ok(tally)
    }

    /// Sends one request and checks its answer. Returns whether the key was there.
    async fn perform(&mut self, operation: Operation, rank: usize) -> Outcome<bool> {
        self.write_request(operation, rank);
        let answer = self.connection.ask(&self.request).await?;
        self.plan.requests.fetch_add(1, Ordering::Relaxed);
        match (operation, answer.status) {
            (Operation::Get, 200) if !self.plan.values.is_whole(answer.body) => Err(Failure::new(
                format!("a value of {} bytes came back damaged", answer.body.len()),
            )),
            (Operation::Get, 200) | (Operation::Put | Operation::Delete, 204) => Ok(true),
            (Operation::Get | Operation::Delete, 404) | (Operation::Put, 201) => Ok(false),
            (_, status) => Err(Failure::new(format!("the service answered {status}"))),
        }
    }

    fn write_request(&mut self, operation: Operation, rank: usize) {
        use std::io::Write;
        let request = &mut self.request;
        request.clear();
        request.extend_from_slice(operation.verb());
        keys::push_key(request, rank);
        request.extend_from_slice(b" HTTP/1.1\r\nhost: localhost\r\n");
        if operation == Operation::Put {
            let size = Values::draw_size(&mut self.random);
            // Writing to a vector cannot fail.
            let _ = write!(request, "content-length: {size}\r\n\r\n");
            self.plan.values.push(request, size, &mut self.random);
        } else {
            request.extend_from_slice(b"\r\n");
        }
    }
}

/// The counts of one connection, or of all.
pub(crate) struct Tally {
    latencies: Histogram<u64>,
    gets: u64,
    hits: u64,
    _connection: Option<Connection>,
}

impl Tally {
    /// Makes a tally without counts.
    pub(crate) fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are valid");
        Self { latencies, gets: 0, hits: 0, _connection: None }
    }

    /// Adds the counts of another tally.
    pub(crate) fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies).expect("all have the same bounds");
        self.gets += other.gets;
        self.hits += other.hits;
    }

    /// Returns the counts as a summary.
    pub(crate) fn summary(&self, seconds: f64) -> Summary {
        Summary {
            requests: self.latencies.len(),
            seconds,
            hit_ratio: self.hits as f64 / self.gets.max(1) as f64,
            p50: self.latencies.value_at_quantile(0.5),
            p99: self.latencies.value_at_quantile(0.99),
            p999: self.latencies.value_at_quantile(0.999),
            max: self.latencies.max(),
        }
    }

    fn count(&mut self, operation: Operation, found: bool, microseconds: u64) {
        self.latencies.saturating_record(microseconds);
        if operation == Operation::Get {
            self.gets += 1;
            self.hits += u64::from(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::connection::broken::{Deed, served};

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let (mut odd, mut even) = (Tally::new(), Tally::new());
        for microseconds in 1..=1000 {
            let tally = if microseconds % 2 == 1 { &mut odd } else { &mut even };
            tally.count(Operation::Get, microseconds <= 250, microseconds);
        }
        odd.add(&even);
        let summary = odd.summary(2.0);
        assert_eq!((summary.requests, summary.p50, summary.p99), (1000, 500, 990));
        assert_eq!((summary.p999, summary.max), (999, 1000));
        assert_eq!(summary.hit_ratio, 0.25);
    }

    #[test]
    fn large_latencies_keep_three_digits_and_never_overflow() {
        let mut tally = Tally::new();
        tally.count(Operation::Put, true, 1_234_567);
        let shown = tally.summary(1.0).max;
        assert!(shown.abs_diff(1_234_567) <= 1_235, "{shown}");
        tally.count(Operation::Put, true, u64::MAX);
        assert_eq!(tally.summary(1.0).requests, 2);
        assert_eq!(tally.summary(1.0).hit_ratio, 0.0);
    }

    #[test]
    fn nothing_counted_is_no_division_by_zero() {
        let summary = Tally::new().summary(1.0);
        assert_eq!((summary.requests, summary.p999, summary.hit_ratio), (0, 0, 0.0));
    }

    #[test]
    fn the_mix_is_as_promised() {
        let mut random = Random::new(1, 1);
        let drawn: Vec<_> = (0..100_000).map(|_| Operation::draw(&mut random)).collect();
        let part = |wanted| drawn.iter().filter(|&&drawn| drawn == wanted).count();
        assert!(part(Operation::Get).abs_diff(80_000) < 1000);
        assert!(part(Operation::Put).abs_diff(15_000) < 1000);
        assert!(part(Operation::Delete).abs_diff(5_000) < 1000);
    }

    #[test]
    fn wrong_answers_are_said() {
        let said = |answer: &str| {
            let port = served(Deed::Write(answer.into()));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let connecting = Worker::connect(Arc::new(Plan::new(1, 1)), 0, port);
            runtime.unwrap().block_on(connecting).err().map(|failure| failure.message)
        };
        let damaged = said("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx");
        assert_eq!(damaged.as_deref(), Some("a value of 1 bytes came back damaged"));
        let status = said("HTTP/1.1 500 Internal Server Error\r\n\r\n");
        assert_eq!(status.as_deref(), Some("the service answered 500"));
    }
}
