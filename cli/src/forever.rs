//! `lumalloc serve`: the demonstration's service under its load until a signal ends it, so that
//! dashboards have something to show.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::arguments::ForeverArguments;
use crate::demo::helper::Helper;
use crate::demo::interrupted;
use crate::demo::round::start_load;
use crate::demo::sample::Side;
use crate::failure::{Failure, Outcome, tell};
use crate::load::event::Event;
use crate::service::Listening;

/// The load starts again after so many seconds, and writes all keys anew.
const SECONDS: u32 = 3600;

/// Serves until a signal ends it.
pub(crate) fn serve(arguments: &ForeverArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = interrupted() => Ok(()),
            // Dropped when interrupted, and the children with it.
            Err(failure) = run(arguments) => Err(failure),
        }
    })
}

async fn run(arguments: &ForeverArguments) -> Outcome<Infallible> {
    let mut service = start_service(arguments)?;
    let Listening { port, exporter } = service.next().await?;
    tell(format_args!("the service: http://127.0.0.1:{port}/\n"));
    if let Some(exporter) = exporter {
        tell(format_args!("its allocator: http://{exporter}/ and /metrics\n"));
        if arguments.leak {
            tell(format_args!("{}", ways_to_the_leak(exporter)));
        }
    }
    if let Some(metrics) = arguments.shown.metrics {
        tell(format_args!("metrics for others: http://{metrics}/metrics\n"));
    }
    loop {
        let mut load = start_load(port, SECONDS, arguments.size.connections)?;
        while let Event::Progress { .. } = match load.next().await {
            Ok(event) => event,
            // A service that died ends its load too. The failure must name the cause, not the
            // effect.
            Err(_) if service.is_ending().await => return Err(service.post_mortem().await),
            Err(failure) => return Err(failure),
        } {}
    }
}

fn start_service(arguments: &ForeverArguments) -> Outcome<Helper> {
    let shown = &arguments.shown;
    let mut words = vec![
        "demo-serve".to_owned(),
        format!("--memory={}", arguments.size.memory),
        "--show".to_owned(),
        format!("--exporter={}", shown.exporter),
    ];
    words.extend(arguments.leak.then(|| "--leak".to_owned()));
    words.extend(shown.metrics.map(|address| format!("--metrics={address}")));
    words.extend(shown.allow_host.iter().map(|name| format!("--allow-host={name}")));
    let paths = [
        ("token-file", "the token file", &shown.token_file),
        ("dump-directory", "the dump directory", &shown.dump_directory),
    ];
    for (option, what, path) in paths {
        let Some(path) = path else { continue };
        let Some(path) = path.to_str() else {
            return Err(Failure::new(format!("{what}'s name is not UTF-8")));
        };
        words.push(format!("--{option}={path}"));
    }
    let options = arguments.leak.then_some("prof:true");
    Helper::start_with("the service", Side::Lumalloc, &words, options)
}

/// How to find what leaks. The names of functions and lines are in this executable.
fn ways_to_the_leak(exporter: SocketAddr) -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "lumalloc".into());
    let program = program.display();
    format!(
        "The service leaks. To find the line that does:
  the page     mark this moment, wait, and draw the growth: http://{exporter}/#profile
  a terminal   curl -so leak.pb.gz http://{exporter}/debug/pprof/heap
               {program} heap --by site leak.pb.gz
               {program} mprof {program} leak.pb.gz
  Go's tool    go tool pprof 'http://{exporter}/debug/pprof/heap?lines=true'
"
    )
}
