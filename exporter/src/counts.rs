//! Counts that the exporter keeps of itself. Each thread has its own cells, so that a request
//! writes no cache line that another core writes. A reader adds the cells up.
use crate::route_names::{RouteName, RouteNames};
use hyper::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thread_local::ThreadLocal;

/// Why the exporter ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Another connection needed its place.
    Displaced,
    /// No place could be made for the connection.
    Full,
    /// The request did not arrive in time, or the client did not take the answer in time.
    Slow,
    /// The client asked for nothing for too long, or the connection lasted too long.
    Idle,
    /// The client sent something that is not HTTP.
    Malformed,
    /// The exporter's memory was used up.
    Memory,
}

/// Every reason, with its name.
pub(crate) const ENDED: [(Ended, &str); 6] = [
    (Ended::Displaced, "displaced"),
    (Ended::Full, "full"),
    (Ended::Slow, "slow"),
    (Ended::Idle, "idle"),
    (Ended::Malformed, "malformed"),
    (Ended::Memory, "memory"),
];

/// The classes of status, from 1xx to 5xx.
const CLASSES: usize = 5;

/// The counts of one thread.
struct Cells {
    /// Answers by the number of the route and the class of status.
    requests: Vec<[AtomicU64; CLASSES]>,
    ended: [AtomicU64; ENDED.len()],
    connections: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Cells {
    fn new(routes: usize) -> Cells {
        let requests = (0..routes).map(|_| Default::default()).collect();
        let zero = AtomicU64::default;
        let ended = Default::default();
        Cells { requests, ended, connections: zero(), received: zero(), sent: zero() }
    }
}

/// Adds to a cell that only the calling thread writes.
fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(count), Relaxed);
}

/// All counts of one exporter.
pub(crate) struct Counts {
    routes: RouteNames,
    cells: ThreadLocal<Cells>,
}

/// The number of answers of one kind so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The path of the route, or `other`, because text that clients invent must not become a label.
    pub path: &'static str,
    /// `GET` (which includes `HEAD`), `POST` or `other`.
    pub method: &'static str,
    /// The class of the status, as `2xx`.
    pub status: &'static str,
    /// The number of answers.
    pub count: u64,
}

/// All counts at one moment. No count decreases while the exporter runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Answers by path, method and class of status. Kinds without an answer are left out.
    pub requests: Vec<Requests>,
    /// Connections that the exporter ended, by reason. Every reason is listed.
    pub ended: Vec<(&'static str, u64)>,
    /// The number of connections so far.
    pub connections: u64,
    /// Bytes read from clients.
    pub received: u64,
    /// Bytes written to clients.
    pub sent: u64,
}

impl Counts {
    pub(crate) fn new(routes: RouteNames) -> Counts {
        Counts { routes, cells: ThreadLocal::new() }
    }

    fn mine(&self) -> &Cells {
        self.cells.get_or(|| Cells::new(self.routes.count()))
    }

    /// Counts one answer of the route with this number; `None` if the request has no route.
    pub(crate) fn answered(&self, route: Option<usize>, status: StatusCode) {
        let cells = self.mine();
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        let row = cells.requests.get(route.unwrap_or(self.routes.of_none()));
        if let Some(cell) = row.and_then(|row| row.get(class)) {
            add(cell, 1);
        }
    }

    /// Counts one connection that the exporter ended.
    pub(crate) fn ended(&self, reason: Ended) {
        add(&self.mine().ended[reason as usize], 1);
    }

    /// Counts one connection.
    pub(crate) fn connected(&self) {
        add(&self.mine().connections, 1);
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.mine().received, bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.mine().sent, bytes as u64);
    }

    fn sum(&self, cell: impl Fn(&Cells) -> &AtomicU64) -> u64 {
        self.cells.iter().map(|cells| cell(cells).load(Relaxed)).sum()
    }

    /// Returns all counts. `/metrics` reads them from `context.counts`.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut requests = Vec::new();
        for number in 0..self.routes.count() {
            let RouteName { path, method } = self.routes.get(number);
            for (class, status) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().enumerate() {
                let count = self.sum(|cells| &cells.requests[number][class]);
                if count != 0 {
                    requests.push(Requests { path, method, status, count });
                }
            }
        }
        let ended = ENDED.map(|(reason, name)| (name, self.sum(|all| &all.ended[reason as usize])));
        Snapshot {
            requests,
            ended: ended.into(),
            connections: self.sum(|cells| &cells.connections),
            received: self.sum(|cells| &cells.received),
            sent: self.sum(|cells| &cells.sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_threads_count_is_added_up_and_stays() {
        let names = ["/", "/-/healthy"].map(|path| RouteName { path, method: "GET" });
        let counts = Arc::new(Counts::new(RouteNames::new(names.into_iter())));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counts = Arc::clone(&counts);
                std::thread::spawn(move || {
                    counts.answered(Some(1), StatusCode::OK);
                    counts.answered(None, StatusCode::NOT_FOUND);
                    counts.ended(Ended::Slow);
                    counts.connected();
                    counts.received(10);
                    counts.sent(100);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let snapshot = counts.snapshot();
        let requests = [
            Requests { path: "/-/healthy", method: "GET", status: "2xx", count: 4 },
            Requests { path: "other", method: "other", status: "4xx", count: 4 },
        ];
        assert_eq!(snapshot.requests, requests);
        assert_eq!(snapshot.ended[2], ("slow", 4));
        assert_eq!((snapshot.connections, snapshot.received, snapshot.sent), (4, 40, 400));
    }

    #[test]
    fn every_reason_has_its_cell() {
        for (place, (reason, _)) in ENDED.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
    }
}
