//! The RSS of processes over time, read from outside.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(250);
/// The bytes of a page, in which `statm` counts.
const PAGE: f64 = 4096.0;

/// Samples of one process: seconds since the watch began, and MiB.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve(pub(super) Vec<(f64, f64)>);

impl Curve {
    /// The MiB of the last sample up to this time; `None` before the first one.
    pub(super) fn at(&self, seconds: f64) -> Option<f64> {
        let number = self.0.partition_point(|sample| sample.0 <= seconds);
        Some(self.0[..number].last()?.1)
    }
}

struct Watched {
    statm: String,
    curve: Curve,
}

/// Samples the RSS of some processes until it ends.
pub(super) struct Watch {
    begun: Instant,
    watched: Arc<Mutex<Vec<Watched>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn begin() -> Self {
        let begun = Instant::now();
        let watched = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, over) = (watched.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            while !over.load(Relaxed) {
                locked(&shared).iter_mut().for_each(|one| sample(one, begun));
                thread::sleep(EVERY);
            }
        });
        Self { begun, watched, is_over, thread: Some(thread) }
    }

    /// The seconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Watches one more process. Returns its number.
    pub(super) fn add(&self, process: &str) -> usize {
        let statm = format!("/proc/{process}/statm");
        let mut watched = locked(&self.watched);
        watched.push(Watched { statm, curve: Curve::default() });
        watched.len() - 1
    }

    /// Takes one more sample of a process now.
    pub(super) fn look(&self, number: usize) {
        sample(&mut locked(&self.watched)[number], self.begun);
    }

    /// The samples of a process so far.
    pub(super) fn curve(&self, number: usize) -> Curve {
        locked(&self.watched)[number].curve.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }
}

fn locked(watched: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that has ended gets no more samples.
fn sample(one: &mut Watched, begun: Instant) {
    let said = fs::read_to_string(&one.statm).unwrap_or_default();
    if let Some(mib) = resident(&said).filter(|mib| *mib > 0.0) {
        one.curve.0.push((begun.elapsed().as_secs_f64(), mib));
    }
}

/// The resident MiB in the text of `statm`: its second number, in pages.
fn resident(statm: &str) -> Option<f64> {
    let pages: f64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_of_statm_counts() {
        assert_eq!(resident("9000 512 300 1 0 800 0\n"), Some(2.0));
        assert_eq!(resident(""), None);
    }

    #[test]
    fn a_curve_holds_until_the_next_sample() {
        let curve = Curve(vec![(1.0, 10.0), (2.0, 20.0)]);
        let at: Vec<_> = [0.9, 1.0, 1.9, 2.0, 9.0].map(|time| curve.at(time)).into();
        assert_eq!(at, [None, Some(10.0), Some(10.0), Some(20.0), Some(20.0)]);
    }

    #[test]
    fn this_process_is_watched_and_no_process_gives_no_sample() {
        let watch = Watch::begin();
        let (one, none) = (watch.add("self"), watch.add("0"));
        watch.look(one);
        watch.look(none);
        assert!(watch.curve(one).at(watch.now()).unwrap() > 0.5);
        assert_eq!(watch.curve(none), Curve::default());
    }
}
