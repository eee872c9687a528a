//! The command line.

use crate::measure::Kind;
use crate::options::{self, Options};
use crate::peers::REFERENCE;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
lumalloc beside its peers.

    cargo run --release -p lumalloc-bench -- COMMAND [OPTIONS]

    suite             ratios, idle, calls, instructions
    ratios            time, peak RSS, faults
    idle              RSS after 20 seconds of idling
    calls             system calls about memory
    instructions      of each operation, by callgrind
    programs          real programs: time, peak RSS, faults
    traces record     what some of those ask of malloc
    traces replay     the same, asked of every allocator
    profilers         what recording allocations costs, beside heaptrack; --rounds N
    sampling          what sampling costs loops that only allocate; --rounds N
    bursts            a service after bursts: RSS over time, latencies
    bursts options    the same under options of lumalloc
    regions           regions of lumalloc-region beside malloc; --rounds N
    scaling           what our slow paths count, by threads; --check, --update: the bounds
    report            tables and plots from what was measured before
    list              the workloads and the peers

    --rounds N        rounds, interleaved over the peers (default 5)
    --scale PERCENT   how much of each workload (default 100)
    --quick           3 rounds at 10 per cent: does it run, not how fast
    --peers A,B       these and no others; all: every one but old builds
    --without A,B     not these
                      lumalloc-old: the checkout that LUMALLOC_OLD names
    --only A,B        these cases: pair, rust/pair, c/, group-a (default: all)
    --merge           keep what was measured before of other cases, by the same peers
    --out DIR         where the results go (default: benches/results)
";

/// What the command line asks for.
pub(crate) enum Command {
    /// Print [`HELP`].
    Help,
    /// Print the tables of workloads and peers.
    List,
    /// Measure, then report.
    Measure(Vec<Kind>, Options),
    /// Report earlier measurements.
    Report(Options),
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
    match arguments.split_first() {
        None => Ok(Command::Help),
        Some((command, rest)) => match command.as_str() {
            "-h" | "--help" | "help" => Ok(Command::Help),
            "list" => Ok(Command::List),
            "suite" => Ok(Command::Measure(Kind::ALL.to_vec(), parse_options(command, rest)?)),
            "report" => parse_options(command, rest).map(Command::Report),
            other => match Kind::ALL.into_iter().find(|kind| kind.name() == other) {
                Some(kind) => Ok(Command::Measure(vec![kind], parse_options(command, rest)?)),
                None => Err(format!("no command called {other}; try --help")),
            },
        },
    }
}

fn parse_options(command: &str, arguments: &[String]) -> Result<Options, String> {
    let options = options::parse(command, arguments)?;
    if options.peers.iter().all(|peer| peer.name != REFERENCE) {
        return Err(format!(
            "every ratio is taken against {REFERENCE}: it has to be among the peers"
        ));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::{Command, parse};
    use crate::measure::Kind;
    use crate::options::Options;
    use crate::peers::PEERS;

    fn ratios(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match parse(&words)? {
            Command::Measure(kinds, options) if kinds == [Kind::Ratios] => Ok(options),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn commands_and_pieces() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let Ok(Command::Measure(kinds, options)) = parse(&words("suite --merge --peers all"))
        else {
            panic!("a measurement")
        };
        assert_eq!(kinds, Kind::ALL);
        assert!(options.merge && options.as_given.contains(&"--merge".to_owned()));
        assert_eq!(options.peers.len(), PEERS.len() - 2, "all but the old builds");
        assert!(!ratios("ratios").unwrap().merge);
        assert!(matches!(parse(&words("report --out here")), Ok(Command::Report(_))));
    }

    #[test]
    fn the_peer_of_all_ratios_has_to_be_there() {
        let why = ratios("ratios --without mimalloc").err().unwrap();
        assert_eq!(why, "every ratio is taken against mimalloc: it has to be among the peers");
    }
}
