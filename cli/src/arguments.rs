//! The command line.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::events::arguments::EventsArguments;
use crate::failure::{Failure, OWN_FAILURE, reason};
use crate::map::arguments::MapArguments;
use crate::profile::arguments::{FlameGraphArguments, HeapArguments, MprofArguments};
use crate::region::arguments::RegionArguments;
use crate::replay::arguments::ReplayArguments;
use crate::standard_streams;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, value_parser};

/// lumalloc, an allocator that you can see into
#[derive(Debug, Parser)]
#[command(name = "lumalloc", version, args_conflicts_with_subcommands = true)]
#[command(override_usage = "\
lumalloc [OPTIONS]
       lumalloc run [OPTIONS] -- PROGRAM [ARGS]...
       lumalloc map [OPTIONS] [SOURCE]
       lumalloc mprof [OPTIONS] [PROGRAM [DATA]]
       lumalloc heap [OPTIONS] FILE
       lumalloc flamegraph [OPTIONS] FILE
       lumalloc events [OPTIONS] FILE
       lumalloc replay [OPTIONS] TRACE
       lumalloc region <stat|walk|check|compact> [OPTIONS] FILE
       lumalloc serve [OPTIONS]")]
#[command(after_help = "\
Without a subcommand it shows the allocator at work: an HTTP key-value service under load, on
lumalloc and on the system's allocator by turns, then a table that compares them.")]
pub(crate) struct Arguments {
    /// None: the demonstration.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// How the demonstration runs.
    #[command(flatten)]
    pub(crate) demo: DemoArguments,
}

/// The subcommands; the hidden ones are the demonstration's own children.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run any program on lumalloc, by preloading liblumalloc.so
    Run(RunArguments),
    /// Show the heap of a process as a map
    Map(MapArguments),
    /// Show the four tables of mprof(1) from a file mprof.data
    Mprof(MprofArguments),
    /// Show a heap profile: totals, stacks, functions, types, sizes, threads and arenas
    Heap(HeapArguments),
    /// Draw a heap profile as a flame graph
    #[command(name = "flamegraph")]
    FlameGraph(FlameGraphArguments),
    /// Show each allocation and each deletion that the heap monitor recorded
    Events(EventsArguments),
    /// Make the calls of a trace of vmalloc(3) on regions or malloc
    Replay(ReplayArguments),
    /// Look at a region of vmmopen in a file, check it, or compact it
    Region(RegionArguments),
    /// Run the demonstration's service under load until interrupted, for dashboards
    Serve(ForeverArguments),
    /// The demonstration's service
    #[command(name = "demo-serve", hide = true)]
    Service(ServeArguments),
    /// The demonstration's load generator
    #[command(name = "demo-load", hide = true)]
    Load(LoadArguments),
}

/// Options of the demonstration.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Measured seconds of each round (warm-up comes on top)
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: u32,
    /// Rounds on each allocator; the table shows the medians
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = value_parser!(u32).range(1..=99))]
    pub(crate) rounds: u32,
    /// Seconds without traffic at the end of each round
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = value_parser!(u32).range(0..=3600))]
    pub(crate) idle: u32,
    /// Service and load.
    #[command(flatten)]
    pub(crate) size: SizeArguments,
    /// Port of the service on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Where the service on lumalloc shows its page and metrics; any port when that one is taken
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    pub(crate) exporter: SocketAddr,
}

/// How much the service has to do.
#[derive(Debug, Args)]
pub(crate) struct SizeArguments {
    /// Keep-alive connections of the load generator
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = value_parser!(u32).range(1..=4096))]
    pub(crate) connections: u32,
    /// Bound of what the service stores, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    #[arg(value_parser = value_parser!(u32).range(8..=65536))]
    pub(crate) memory: u32,
}

/// `lumalloc serve`.
#[derive(Debug, Args)]
pub(crate) struct ForeverArguments {
    /// Service and load.
    #[command(flatten)]
    pub(crate) size: SizeArguments,
    /// Let the service leak memory, for somebody to find where; with a heap profile (prof:true)
    #[arg(long)]
    pub(crate) leak: bool,
    /// What is shown, and where.
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
}

/// The exporter of the service.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShownArguments {
    /// Address of the page, the settings and the metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    pub(crate) exporter: SocketAddr,
    /// Address of the metrics alone, which may be open to others
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// File with the token for what is not on a loopback address, mode 0600
    #[arg(long, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
    /// A name that requests may have as their Host
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Directory of the files that POST /dump and /monitor/start write; without it they write none
    #[arg(long, value_name = "PATH")]
    pub(crate) dump_directory: Option<PathBuf>,
}

/// `lumalloc run`.
#[derive(Debug, Args)]
#[command(override_usage = "lumalloc run [OPTIONS] -- PROGRAM [ARGS]...")]
#[command(after_help = "\
The library is taken from --library, else $LUMALLOC_LIBRARY, else beside this executable, else in
../lib, a directory of it or ../lib64.
$LUMALLOC_EXPORTER means the same as --exporter, which wins; --exporter '' serves
nowhere. Behind the address, after commas: dumps:DIRECTORY (where recordings of the heap monitor and
dumps are written), metrics:ADDRESS:PORT (the metrics alone, there too), token:FILE (what is not on
a loopback address needs one: a word of at least 16 characters, mode 0600), host:NAME (a name that
requests may ask by, beside addresses and localhost), and program:NAME (only a program of this name
serves). The exit status is the program's; 127 when it is not found, 126 when it cannot be executed,
125 when lumalloc itself fails, as for wrong arguments.")]
pub(crate) struct RunArguments {
    /// Options for the allocator, put after those in $LUMALLOC_CONF
    #[arg(long, value_name = "K:V,...", value_parser = conf)]
    pub(crate) conf: Vec<String>,
    /// Serve metrics and settings there: ADDRESS:PORT, as 127.0.0.1:9464, or unix:PATH; see below
    #[arg(long, value_name = "ADDRESS[,OPTION]...")]
    pub(crate) exporter: Option<OsString>,
    /// The shared library to preload
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// The service, as the demonstration starts it.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Port on 127.0.0.1, 0 for a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Bound of the stored bytes in MiB
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(8..=65536))]
    pub(crate) memory: u32,
    /// Seconds a value lives
    #[arg(long, default_value_t = 600, value_parser = value_parser!(u32).range(1..))]
    pub(crate) ttl: u32,
    /// Whether the service leaks
    #[arg(long)]
    pub(crate) leak: bool,
    /// Whether there is an exporter
    #[arg(long)]
    pub(crate) show: bool,
    /// Whether another port than the exporter's will do
    #[arg(long)]
    pub(crate) any_port: bool,
    /// Its settings.
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
}

/// The load generator, as the demonstration starts it.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Port of the service on 127.0.0.1
    #[arg(long)]
    pub(crate) port: u16,
    /// Measured seconds
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u32,
    /// Keep-alive connections
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: u32,
    /// Seed of keys, sizes and operations
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What may be meant by a second file.
const TIP: &str = "to compare the profile with an older one, use '--diff <FILE>'";

/// Names an argument that is not known as it was written: clap names `-b` of `-bogus`. Says how two
/// profiles are compared.
pub(crate) fn as_written(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_heap = words.get(1).is_some_and(|word| word == "heap");
    if is_heap && !named.starts_with('-') && error.kind() == clap::error::ErrorKind::UnknownArgument
    {
        let tips = ContextValue::StyledStrs(vec![StyledStr::from(TIP)]);
        error.insert(ContextKind::Suggested, tips);
        return error;
    }
    let is_it = |word: &&str| {
        word.starts_with(named.as_str()) && !word.starts_with("--") && named.starts_with('-')
    };
    let word = words.iter().filter_map(|word| word.to_str()).find(is_it).map(str::to_owned);
    if let (clap::error::ErrorKind::UnknownArgument, Some(word)) = (error.kind(), word) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(word));
    }
    error
}

/// Writes what stands in place of arguments: the help, the version, or what is wrong with them.
/// Returns the exit status: 2 for wrong arguments, and for those of `run` that of a failure of its
/// own, because 2 may be the program's.
pub(crate) fn show(answer: &clap::Error, words: &[OsString]) -> ExitCode {
    let is_run = words.get(1).is_some_and(|word| word == "run");
    let written = match answer.use_stderr() {
        true => answer.print(),
        false => {
            standard_streams::output().and_then(|mut out| answer.print().and_then(|()| out.flush()))
        }
    };
    match written {
        Err(error) if !answer.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            Failure::new(format!("standard output: {}", reason(&error))).show()
        }
        _ if is_run && answer.use_stderr() => ExitCode::from(OWN_FAILURE),
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}

/// Checks the form of `K:V,...`. The library checks what the keys mean.
fn conf(text: &str) -> Result<String, String> {
    for pair in text.split(',') {
        let well_formed = pair.split_once(':').is_some_and(|(key, _)| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b))
        });
        if !well_formed {
            return Err(format!("'{pair}' is not KEY:VALUE"));
        }
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Command, RunArguments, as_written, conf};
    use crate::map::heap::parse_address;
    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};
    use std::ffi::OsString;

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("lumalloc").chain(words.iter().copied()))
    }

    fn run(words: &[&str]) -> RunArguments {
        match parse(words).unwrap().command {
            Some(Command::Run(run)) => run,
            other => panic!("not run: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_arguments_mean_the_demonstration() {
        let arguments = parse(&[]).unwrap();
        assert!(arguments.command.is_none());
        assert_eq!((arguments.demo.seconds, arguments.demo.rounds, arguments.demo.port), (4, 2, 0));
    }

    #[test]
    fn demonstration_options_are_bounded() {
        assert_eq!(parse(&["--seconds", "1"]).unwrap().demo.seconds, 1);
        for words in [["--seconds", "0"], ["--rounds", "0"], ["--memory", "1"], ["--port", "65536"]]
        {
            assert_eq!(parse(&words).unwrap_err().kind(), ErrorKind::ValueValidation, "{words:?}");
        }
    }

    #[test]
    fn arguments_that_are_not_known_are_named_as_written() {
        let first = |words: &[&str]| {
            let all: Vec<OsString> = words.iter().map(OsString::from).collect();
            let error = as_written(parse(words).unwrap_err(), &all).to_string();
            error.lines().next().unwrap_or_default().to_owned()
        };
        for (words, named) in [
            (&["mprof", "-bogus"][..], "-bogus"),
            (&["heap", "x", "-b"], "-b"),
            (&["heap", "x", "-y", "--", "-yes"], "-y"),
            (&["heap", "--bogus"], "--bogus"),
            (&["mprof", "a", "b", "c"], "c"),
        ] {
            assert_eq!(first(words), format!("error: unexpected argument '{named}' found"));
        }
    }

    #[test]
    fn run_takes_everything_after_the_program() {
        let dashed =
            run(&["run", "--conf", "a:1,b.c:x", "--conf", "d:", "--", "ls", "--conf", "x"]);
        assert_eq!(dashed.conf, ["a:1,b.c:x", "d:"]);
        assert_eq!(dashed.command, ["ls", "--conf", "x"]);
        assert_eq!(run(&["run", "ls", "-l", "--help"]).command, ["ls", "-l", "--help"]);
    }

    #[test]
    fn run_refuses_what_it_does_not_know() {
        let unknown = parse(&["run", "--bogus", "ls"]).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::UnknownArgument);
        let nothing = parse(&["run"]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::MissingRequiredArgument);
        assert_eq!(parse(&["runn"]).unwrap_err().kind(), ErrorKind::InvalidSubcommand);
    }

    #[test]
    fn a_second_profile_is_to_follow_diff() {
        let words = ["lumalloc", "heap", "a.heap", "b.heap"].map(OsString::from);
        let error = as_written(parse(&["heap", "a.heap", "b.heap"]).unwrap_err(), &words);
        let text = error.to_string();
        let expected = "error: unexpected argument 'b.heap' found\n\n  \
                        tip: to compare the profile with an older one, use '--diff <FILE>'\n\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_map_is_a_picture_or_json_or_a_place() {
        let map = |words: &[&str]| match parse(words).unwrap().command {
            Some(Command::Map(map)) => map,
            other => panic!("not map: {other:?}"),
        };
        assert!(map(&["map"]).source.is_none());
        assert_eq!(map(&["map", "--at", "7f00"]).at, Some(parse_address("7f00").unwrap()));
        assert_eq!(map(&["map", "--diff", "a.json", "b.json"]).source, Some("b.json".into()));
        for words in [
            ["map", "--pid=1", "host:1"],
            ["map", "--at=0x1", "--json"],
            ["map", "--json", "--diff=x"],
        ] {
            assert_eq!(parse(&words).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{words:?}");
        }
        let wrong = parse(&["map", "--at", "x"]).unwrap_err().to_string();
        let line = "error: invalid value 'x' for '--at <ADDRESS>': \
                    'x' is not an address like 0x7f0000001000";
        assert_eq!(wrong.lines().next(), Some(line));
        assert_eq!(parse(&["map", "--cell=0"]).unwrap_err().kind(), ErrorKind::ValueValidation);
    }

    #[test]
    fn conf_must_be_pairs() {
        for bad in ["", "narenas", ":1", "a:1,", "a b:1", "a:1,,b:2"] {
            assert!(conf(bad).is_err(), "{bad:?}");
        }
        assert_eq!(conf("narenas:2,x").unwrap_err(), "'x' is not KEY:VALUE");
        assert_eq!(conf("prof_prefix:dumps/a:b").as_deref(), Ok("prof_prefix:dumps/a:b"));
    }
}
