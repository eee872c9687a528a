//! The demonstration's load generator. It is a separate process, so its memory is not the
//! service's.
//!
//! Keep-alive connections ([`connection`]) each send one request after the other: 80 % GET, 15 %
//! PUT, 5 % DELETE, over keys of very different popularity ([`keys`]). Values have 64 bytes to 64
//! KiB ([`values`]), and their contents are checked when they come back. The load generator reports
//! to the demonstration line by line ([`event`]). The same seed gives the same traffic.

pub(crate) mod connection;
pub(crate) mod event;
mod keys;
mod random;
mod traffic;
mod values;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::arguments::LoadArguments;
use crate::failure::{Failure, Outcome, no_runtime};
use crate::service::{end_of_input, say};
use event::{Event, Phase, Summary};
use traffic::{Plan, Tally, Worker};

/// How often a progress line is sent.
const TICK: Duration = Duration::from_millis(100);

/// So many connections are opened at a time. The system resets those that do not fit into the queue
/// of a listener, which has 1024 places or less.
const AT_A_TIME: u32 = 100;

/// Fills the service, warms it up, measures it, and reports.
pub(crate) fn generate(arguments: &LoadArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| no_runtime(&error))?;
    runtime.block_on(async {
        tokio::select! {
            outcome = drive(arguments) => outcome,
            ended = end_of_input() => ended,
        }
    })
}

async fn drive(arguments: &LoadArguments) -> Outcome {
    let plan = Arc::new(Plan::new(arguments.seed, arguments.connections));
    let mut workers = Vec::new();
    report_while(&plan, Phase::Fill, fill(&plan, arguments, &mut workers)).await?;
    let mut running = JoinSet::new();
    for worker in workers {
        running.spawn(worker.run());
    }
    let (measured, warm) = durations(arguments.seconds);
    failing_early(&mut running, report_while(&plan, Phase::Warm, pause(warm))).await?;
    plan.measuring.store(true, Ordering::Relaxed);
    let start = Instant::now();
    failing_early(&mut running, report_while(&plan, Phase::Measure, pause(measured))).await?;
    plan.stop.store(true, Ordering::Relaxed);
    let seconds = start.elapsed().as_secs_f64();
    let mut tallies = Vec::new();
    collect(&mut running, &mut tallies).await?;
    say(&Event::Result(summary(&tallies, seconds)))?;
    // The connections stay open until the demonstration has read the service's statistics.
    end_of_input().await
}

/// Opens all connections, and fills the service over them.
async fn fill(plan: &Arc<Plan>, arguments: &LoadArguments, workers: &mut Vec<Worker>) -> Outcome {
    let mut connected = Vec::new();
    for first in (0..arguments.connections).step_by(AT_A_TIME as usize) {
        let mut connecting = JoinSet::new();
        for number in first..arguments.connections.min(first + AT_A_TIME) {
            connecting.spawn(Worker::connect(Arc::clone(plan), number, arguments.port));
        }
        collect(&mut connecting, &mut connected).await?;
    }
    let mut filling = JoinSet::new();
    for mut worker in connected {
        filling.spawn(async move {
            worker.fill().await?;
            Ok(worker)
        });
    }
    collect(&mut filling, workers).await
}

/// Returns the measured time, and the time before it, which is a quarter, at most a second.
fn durations(seconds: u32) -> (Duration, Duration) {
    let measured = Duration::from_secs(seconds.into());
    (measured, (measured / 4).min(Duration::from_secs(1)))
}

async fn pause(time: Duration) -> Outcome {
    tokio::time::sleep(time).await;
    Ok(())
}

/// Waits for all tasks. The first failure is returned for all of them.
async fn collect<T: 'static>(tasks: &mut JoinSet<Outcome<T>>, all: &mut Vec<T>) -> Outcome {
    while let Some(joined) = tasks.join_next().await {
        all.push(joined.map_err(|error| Failure::new(format!("a connection died: {error}")))??);
    }
    Ok(())
}

/// Runs `work`. If a task ends before it, returns that task's failure.
async fn failing_early(
    tasks: &mut JoinSet<Outcome<Tally>>,
    work: impl Future<Output = Outcome>,
) -> Outcome {
    tokio::select! {
        outcome = work => outcome,
        Some(joined) = tasks.join_next() => match joined {
            Ok(Err(failure)) => Err(failure),
            _ => Err(Failure::new("a connection ended too early")),
        },
    }
}

/// Runs `work`, with a progress line at every tick.
async fn report_while(plan: &Plan, phase: Phase, work: impl Future<Output = Outcome>) -> Outcome {
    let mut work = std::pin::pin!(work);
    let (mut before, mut last) = (plan.requests.load(Ordering::Relaxed), Instant::now());
    say(&Event::Progress { phase, rate: None })?;
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(TICK) => {}
        }
        let (now, requests) = (Instant::now(), plan.requests.load(Ordering::Relaxed));
        let rate = (requests - before) as f64 / (now - last).as_secs_f64();
        say(&Event::Progress { phase, rate: Some(rate) })?;
        (before, last) = (requests, now);
    }
}

fn summary(tallies: &[Tally], seconds: f64) -> Summary {
    let mut all = Tally::new();
    for tally in tallies {
        all.add(tally);
    }
    all.summary(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn a_connection_that_dies_is_said() {
        runtime().block_on(async {
            let mut tasks: JoinSet<Outcome<u8>> = JoinSet::new();
            let id = tasks.spawn(async { panic!("on purpose") }).id();
            let message =
                format!("a connection died: task {id} panicked with message \"on purpose\"");
            let outcome = collect(&mut tasks, &mut Vec::new()).await;
            assert_eq!(outcome, Err(Failure::new(message)));
        });
    }

    #[test]
    fn connections_do_not_end_before_the_load() {
        let early = |ending: Outcome<Tally>| {
            runtime().block_on(async {
                let mut tasks = JoinSet::new();
                tasks.spawn(async { ending });
                failing_early(&mut tasks, std::future::pending()).await
            })
        };
        assert_eq!(early(Ok(Tally::new())), Err(Failure::new("a connection ended too early")));
        assert_eq!(early(Err(Failure::new("its reason"))), Err(Failure::new("its reason")));
    }
}
