//! One round: a process for each way. They are quiet at the same time, but only one has a burst at
//! any time, so that no burst takes the processors from another one.

use super::process::{Last, Said, Service};
use super::watch::{Curve, Watch};
use super::ways::Way;
use crate::warm::Peak;
use std::path::Path;
use std::thread;
use std::time::Duration;

pub(super) const BURSTS: usize = 3;
/// The quiet time after a burst that is looked at, in seconds.
pub(super) const QUIET: f64 = 15.0;
/// The least time from the end of a burst to the beginning of the next one.
const PAUSE: f64 = QUIET + 0.5;
/// No process takes more memory than this, in KiB; it is made available before each burst.
const MOST_KIB: f64 = 96.0 * 1024.0;

/// What all processes of a measurement share.
pub(super) struct Stage<'a> {
    pub(super) launch: &'a Path,
    pub(super) program: &'a Path,
    pub(super) events: u32,
}

/// What was measured of one process.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) curve: Curve,
    /// The bursts, with the time of their ends on the curve.
    pub(super) bursts: Vec<(f64, Said)>,
    pub(super) last: Last,
}

impl Run {
    /// The MiB that are resident some seconds after the end of a burst.
    pub(super) fn rss(&self, burst: usize, after: f64) -> Option<f64> {
        self.curve.at(self.bursts.get(burst)?.0 + after)
    }
}

/// A process during the round.
struct Running {
    service: Service,
    watched: usize,
    bursts: Vec<(f64, Said)>,
}

/// Runs all ways once. Each round begins with another one.
pub(super) fn all(
    stage: &Stage,
    ways: &[Way],
    round: usize,
    tell: &dyn Fn(&str),
) -> Vec<Result<Run, String>> {
    let watch = Watch::begin();
    let order: Vec<usize> = (0..ways.len()).map(|turn| (round + turn) % ways.len()).collect();
    let mut running: Vec<Option<Result<Running, String>>> = ways.iter().map(|_| None).collect();
    for burst in 0..BURSTS {
        for &way in &order {
            tell(&format!("burst {} {}", burst + 1, ways[way].name));
            let before = running[way].take().unwrap_or_else(|| start(stage, &ways[way], &watch));
            running[way] = Some(before.and_then(|one| next(stage, one, &watch)));
        }
    }
    for &way in &order {
        if let Some(Ok(one)) = &running[way] {
            wait(&watch, one);
        }
    }
    let ends = running.into_iter().map(|one| one.unwrap_or_else(|| Err("not run".to_owned())));
    ends.map(|one| one.and_then(|one| finish(one, &watch))).collect()
}

fn start(stage: &Stage, way: &Way, watch: &Watch) -> Result<Running, String> {
    let service = Service::start(stage.launch, (stage.program, stage.events), way)?;
    let watched = watch.add(&service.process);
    Ok(Running { service, watched, bursts: Vec::new() })
}

/// Waits until the quiet time of a process is over.
fn wait(watch: &Watch, one: &Running) {
    let left = one.bursts.last().map_or(0.0, |(end, _)| end + PAUSE - watch.now());
    thread::sleep(Duration::from_secs_f64(left.max(0.0)));
}

fn next(stage: &Stage, mut one: Running, watch: &Watch) -> Result<Running, String> {
    wait(watch, &one);
    let mut peak = Peak::default();
    peak.note(MOST_KIB);
    peak.supply(stage.launch);
    let said = one.service.burst()?;
    watch.look(one.watched);
    one.bursts.push((watch.now(), said));
    Ok(one)
}

fn finish(one: Running, watch: &Watch) -> Result<Run, String> {
    let last = one.service.finish()?;
    Ok(Run { curve: watch.curve(one.watched), bursts: one.bursts, last })
}
