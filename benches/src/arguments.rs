//! The command line.

use crate::measure::Kind;
use crate::peers::{self, PEERS, Peer, REFERENCE};
use std::path::PathBuf;

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

/// The options of a measurement.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) scale: u32,
    pub(crate) peers: Vec<&'static Peer>,
    pub(crate) only: Vec<String>,
    pub(crate) merge: bool,
    pub(crate) out: Option<PathBuf>,
    /// The arguments that influence the numbers, for the record. `--out` is not among them.
    pub(crate) as_given: Vec<String>,
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
    let mut options = Options {
        rounds: 5,
        scale: 100,
        peers: PEERS.iter().filter(|peer| peer.by_default).collect(),
        only: Vec::new(),
        merge: false,
        out: None,
        as_given: vec![command.to_owned()],
    };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        if option == "--quick" {
            (options.rounds, options.scale) = (3, 10);
            options.as_given.push(option.clone());
            continue;
        }
        if option == "--merge" {
            options.merge = true;
            options.as_given.push(option.clone());
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{option} wants a value, or is unknown"))?;
        match option.as_str() {
            "--rounds" => options.rounds = number(option, value, 1000)? as usize,
            "--scale" => options.scale = number(option, value, 100)?,
            "--peers" => options.peers = named(value)?,
            "--without" => {
                let without = named(value)?;
                options.peers.retain(|peer| without.iter().all(|other| other.name != peer.name));
            }
            "--only" => options.only.extend(value.split(',').map(str::to_owned)),
            "--out" => options.out = Some(PathBuf::from(value)),
            _ => return Err(format!("no option called {option}; try --help")),
        }
        if option != "--out" {
            options.as_given.extend([option.clone(), value.clone()]);
        }
    }
    if options.peers.iter().all(|peer| peer.name != REFERENCE) {
        return Err(format!(
            "every ratio is taken against {REFERENCE}: it has to be among the peers"
        ));
    }
    Ok(options)
}

/// The number given to an option, from 1 to `most`.
pub(crate) fn number(option: &str, value: &str, most: u32) -> Result<u32, String> {
    match value.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option} wants a number from 1 to {most}, not {value}")),
    }
}

/// The peers of a list; for `all` every one but the old builds.
pub(crate) fn named(list: &str) -> Result<Vec<&'static Peer>, String> {
    if list == "all" {
        return Ok(PEERS.iter().filter(|peer| !peer.is_old()).collect());
    }
    list.split(',').map(peers::by_name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Command, Options, parse};
    use crate::measure::Kind;
    use crate::peers::PEERS;

    fn ratios(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match parse(&words)? {
            Command::Measure(kinds, options) if kinds == [Kind::Ratios] => Ok(options),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn options_are_read_and_recorded() {
        let options = ratios("ratios --rounds 7 --without lumalloc --out somewhere").unwrap();
        assert_eq!(options.rounds, 7);
        assert!(options.peers.iter().all(|peer| peer.name != "lumalloc"));
        assert_eq!(options.as_given.join(" "), "ratios --rounds 7 --without lumalloc");
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
    fn mistakes_are_named() {
        assert!(ratios("ratios --rounds 0").is_err());
        assert!(ratios("ratios --peers nobody").is_err());
        assert!(ratios("ratios --without mimalloc").is_err());
        assert!(ratios("ratios --sideways 3").is_err());
        assert!(ratios("ratios --only").is_err());
    }
}
