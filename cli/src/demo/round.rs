//! One round: the service on one allocator, under load and then idle.

use std::time::{Duration, Instant};

use super::helper::Helper;
use super::progress::{Now, Progress};
use super::sample::{Sample, Side};
use crate::arguments::DemoArguments;
use crate::failure::{Failure, Outcome};
use crate::load::connection::Connection;
use crate::load::event::{Event, Phase, Summary};
use crate::service::stats::Stats;
use crate::service::{Listening, process};

/// The seed of the traffic, which is the same in every round and on both sides.
const SEED: u64 = 20_260_414;
const TICK: Duration = Duration::from_millis(100);

/// Returns roughly how long a round takes.
pub(crate) fn expected(arguments: &DemoArguments) -> Duration {
    let (measured, idle) = (f64::from(arguments.seconds), f64::from(arguments.idle));
    // Start, filling and warm-up take about as long as this.
    Duration::from_secs_f64(1.0 + f64::min(measured / 4.0, 1.0) + measured + idle)
}

/// Runs a round. The helpers end with it.
pub(crate) async fn run(
    side: Side,
    arguments: &DemoArguments,
    progress: &mut Progress,
) -> Outcome<Sample> {
    let mut service = start_service(side, arguments)?;
    let Listening { port, exporter } = service.next().await?;
    if let Some(exporter) = exporter {
        progress.show_address(exporter);
    }
    let mut load = start_load(port, arguments.seconds, arguments.size.connections)?;
    let (summary, processor_seconds) = match follow(&mut load, &service, progress).await {
        Ok(followed) => followed,
        // A service that died ends its load too. The failure must name the cause, not the effect.
        Err(_) if service.is_ending().await => return Err(service.post_mortem().await),
        Err(failure) => return Err(failure),
    };
    let stats = read_stats(port).await?;
    drop(load);
    check(side, &stats)?;
    rest(&service, Duration::from_secs(arguments.idle.into()), progress).await;
    let idle = process::resident(&service.id().to_string());
    Ok(Sample { load: summary, processor_seconds, stats, idle })
}

/// Refuses the numbers of a service that is not on this side's allocator.
fn check(side: Side, stats: &Stats) -> Outcome {
    let (wanted, got) = (side.name(), &stats.allocator);
    if got != wanted {
        return Err(Failure::new(format!("the service runs on {got} instead of {wanted}")));
    }
    Ok(())
}

fn start_service(side: Side, arguments: &DemoArguments) -> Outcome<Helper> {
    let words = [
        "demo-serve".to_owned(),
        format!("--port={}", arguments.port),
        format!("--memory={}", arguments.size.memory),
        "--show".to_owned(),
        "--any-port".to_owned(),
        format!("--exporter={}", arguments.exporter),
    ];
    Helper::start(&format!("the service on {}", side.name()), side, &words)
}

/// Starts the load, always on the system's allocator, because only the service is compared.
pub(crate) fn start_load(port: u16, seconds: u32, connections: u32) -> Outcome<Helper> {
    let words = [
        "demo-load".to_owned(),
        format!("--port={port}"),
        format!("--seconds={seconds}"),
        format!("--connections={connections}"),
        format!("--seed={SEED}"),
    ];
    Helper::start("the load generator", Side::System, &words)
}

/// Shows the messages of the load generator until it is done. Returns the result, and the service's
/// processor time during the measurement.
async fn follow(
    load: &mut Helper,
    service: &Helper,
    progress: &mut Progress,
) -> Outcome<(Summary, Option<f64>)> {
    let processor = || process::processor_seconds(service.id());
    let mut before = None;
    loop {
        match load.next().await? {
            Event::Progress { phase, rate } => {
                if phase == Phase::Measure && before.is_none() {
                    before = processor();
                }
                progress.show(Now { phase: name(phase), rate, rss: rss(service) });
            }
            Event::Result(summary) => {
                let used = processor().zip(before).map(|(after, before)| after - before);
                return Ok((summary, used));
            }
        }
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Fill => "filling",
        Phase::Warm => "warming",
        Phase::Measure => "measuring",
    }
}

fn rss(service: &Helper) -> Option<u64> {
    process::resident(&service.id().to_string()).map(|resident| resident.now)
}

async fn read_stats(port: u16) -> Outcome<Stats> {
    let mut connection = Connection::open(port).await?;
    let answer = connection.ask(b"GET /stats HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    serde_json::from_slice(answer.body)
        .map_err(|error| Failure::new(format!("/stats answered {}: {error}", answer.status)))
}

/// Leaves the service idle.
async fn rest(service: &Helper, time: Duration, progress: &mut Progress) {
    let start = Instant::now();
    while start.elapsed() < time {
        progress.show(Now { phase: "idle", rate: None, rss: rss(service) });
        tokio::time::sleep(TICK.min(time.saturating_sub(start.elapsed()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::sample::examples::sample;
    use crate::service::stats::MemoryStats;

    #[test]
    fn a_service_on_the_wrong_allocator_is_refused() {
        let stats = sample(1, 1, MemoryStats::default()).stats;
        assert_eq!(check(Side::Lumalloc, &stats), Ok(()));
        let message = "the service runs on lumalloc instead of system";
        assert_eq!(check(Side::System, &stats), Err(Failure::new(message)));
    }
}
