//! The options that `programs` and `traces` share.

use crate::arguments::{named, number};
use crate::peers::{PEERS, Peer};
use std::path::PathBuf;

/// The options of a measurement.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) percent: u32,
    pub(crate) peers: Vec<&'static Peer>,
    pub(crate) only: Vec<String>,
    pub(crate) out: Option<PathBuf>,
    /// Keeps earlier measurements of other cases in the report.
    pub(crate) merge: bool,
    /// The arguments that influence the numbers, for the record.
    pub(crate) as_given: Vec<String>,
}

/// Reads the arguments that follow the command. `command` is its name in the record.
pub(crate) fn parse(command: &str, arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        percent: 100,
        peers: PEERS.iter().filter(|peer| peer.by_default).collect(),
        only: Vec::new(),
        out: None,
        merge: false,
        as_given: vec![command.to_owned()],
    };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        if option == "--quick" || option == "--merge" {
            if option == "--quick" {
                (options.rounds, options.percent) = (2, 10);
            } else {
                options.merge = true;
            }
            options.as_given.push(option.clone());
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{option} wants a value, or is unknown"))?;
        match option.as_str() {
            "--rounds" => options.rounds = number(option, value, 1000)? as usize,
            "--scale" => options.percent = number(option, value, 100)?,
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
    // Only preloaded programs run here, so a peer without a shared object is left out.
    options.peers.retain(|peer| peer.preload.is_some());
    if options.peers.is_empty() { Err("no peer is left".to_owned()) } else { Ok(options) }
}

#[cfg(test)]
mod tests {
    use super::{Options, parse};

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse("programs", &words)
    }

    #[test]
    fn options_are_read_and_recorded() {
        let read = options("--rounds 7 --without glibc --only lua,z3 --out x").unwrap();
        assert_eq!((read.rounds, read.percent), (7, 100));
        assert_eq!(read.only, ["lua", "z3"]);
        assert!(read.peers.iter().all(|peer| peer.name != "glibc" && peer.preload.is_some()));
        assert_eq!(read.as_given.join(" "), "programs --rounds 7 --without glibc --only lua,z3");
    }

    #[test]
    fn mistakes_are_named() {
        let why = |line: &str| options(line).err().unwrap();
        assert_eq!(why("--rounds 0"), "--rounds wants a number from 1 to 1000, not 0");
        assert_eq!(why("--sideways 1"), "no option called --sideways; try --help");
        assert_eq!(why("--only"), "--only wants a value, or is unknown");
    }
}
