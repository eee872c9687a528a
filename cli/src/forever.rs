//! `lumalloc serve`: the demonstration's service under its load until a signal ends it, so that
//! dashboards have something to show.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::arguments::ForeverArguments;
use crate::demo::helper::Helper;
use crate::demo::interruption::interrupted;
use crate::demo::round::start_load;
use crate::demo::sample::Side;
use crate::failure::{Failure, Outcome, no_runtime, tell};
use crate::load::event::Event;
use crate::service::Listening;

/// The load starts again after so many seconds, and writes all keys anew.
const SECONDS: u32 = 3600;

/// Serves until a signal ends it.
pub(crate) fn serve(arguments: &ForeverArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| no_runtime(&error))?;
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
    let listening: Listening = service.next().await?;
    tell(format_args!("{}", addresses(&listening, arguments)));
    let port = listening.port;
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

/// Where the service and its allocator can be seen.
fn addresses(listening: &Listening, arguments: &ForeverArguments) -> String {
    let mut text = format!("the service: http://127.0.0.1:{}/\n", listening.port);
    if let Some(exporter) = listening.exporter {
        text += &format!("its allocator: http://{exporter}/ and /metrics\n");
        if arguments.leak {
            text += &ways_to_the_leak(exporter);
        }
    }
    if let Some(metrics) = arguments.shown.metrics {
        text += &format!("metrics for others: http://{metrics}/metrics\n");
    }
    text
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
            let shown = path.display();
            return Err(Failure::new(format!("{what}'s name is not UTF-8: {shown}")));
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
  Go's tool    go tool pprof -symbolize=none -top -lines \\
               '-hide=^(<|<T as )?(alloc|core|std|hashbrown)::' \\
               'http://{exporter}/debug/pprof/heap?lines=true'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    fn arguments(words: &str) -> ForeverArguments {
        match Arguments::try_parse_from(words.split(' ')).unwrap().command {
            Some(Command::Serve(arguments)) => arguments,
            other => panic!("not serve: {other:?}"),
        }
    }

    #[test]
    fn each_address_is_told() {
        let exporter = Some("127.0.0.1:9464".parse().unwrap());
        let told =
            |words, exporter| addresses(&Listening { port: 80, exporter }, &arguments(words));
        let service = "the service: http://127.0.0.1:80/\n";
        assert_eq!(told("lumalloc serve", None), service);
        let allocator = "its allocator: http://127.0.0.1:9464/ and /metrics\n";
        assert_eq!(told("lumalloc serve", exporter), format!("{service}{allocator}"));
        let program = std::env::current_exe().unwrap();
        let program = program.display();
        let expected = format!(
            "{service}{allocator}The service leaks. To find the line that does:
  the page     mark this moment, wait, and draw the growth: http://127.0.0.1:9464/#profile
  a terminal   curl -so leak.pb.gz http://127.0.0.1:9464/debug/pprof/heap
               {program} heap --by site leak.pb.gz
               {program} mprof {program} leak.pb.gz
  Go's tool    go tool pprof -symbolize=none -top -lines \\
               '-hide=^(<|<T as )?(alloc|core|std|hashbrown)::' \\
               'http://127.0.0.1:9464/debug/pprof/heap?lines=true'
metrics for others: http://10.0.0.1:9465/metrics
"
        );
        let words = "lumalloc serve --leak --metrics 10.0.0.1:9465";
        assert_eq!(told(words, exporter), expected);
        let (_, command) = expected.split_once("Go's tool ").unwrap();
        let (command, _) = command.split_once("\nmetrics").unwrap();
        let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "\\").collect();
        let page = include_str!("../../docs/finding-a-leak.md");
        assert!(page.contains(&format!("\n{}\n", words.join(" "))), "{command}");
    }

    #[test]
    fn names_that_no_option_can_hold_are_refused() {
        let path = PathBuf::from(OsStr::from_bytes(b"/tmp/\xff"));
        let mut arguments = arguments("lumalloc serve");
        arguments.shown.dump_directory = Some(path.clone());
        let refused = |arguments: &ForeverArguments| {
            start_service(arguments).err().map(|failure| failure.message)
        };
        let message = "the dump directory's name is not UTF-8: /tmp/\u{fffd}";
        assert_eq!(refused(&arguments).as_deref(), Some(message));
        arguments.shown.token_file = Some(path);
        let message = "the token file's name is not UTF-8: /tmp/\u{fffd}";
        assert_eq!(refused(&arguments).as_deref(), Some(message));
    }
}
