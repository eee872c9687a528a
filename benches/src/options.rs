//! The options that most measurements share.

use crate::peers::{self, PEERS, Peer};
use std::path::PathBuf;

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

/// Reads the arguments that follow the command. `command` is its name in the record.
pub(crate) fn parse(command: &str, arguments: &[String]) -> Result<Options, String> {
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
        if options.set_flag(option) {
            options.as_given.push(option.clone());
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{option} wants a value, or is unknown"))?;
        options.set(option, value)?;
        if option != "--out" {
            options.as_given.extend([option.clone(), value.clone()]);
        }
    }
    if options.peers.is_empty() { Err("no peer is left".to_owned()) } else { Ok(options) }
}

impl Options {
    /// Sets an option without a value. Returns `false` if it is none.
    fn set_flag(&mut self, option: &str) -> bool {
        match option {
            "--quick" => (self.rounds, self.scale) = (3, 10),
            "--merge" => self.merge = true,
            _ => return false,
        }
        true
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--rounds" => self.rounds = number(option, value, 1000)? as usize,
            "--scale" => self.scale = number(option, value, 100)?,
            "--peers" => self.peers = named(value)?,
            "--without" => {
                let without = named(value)?;
                self.peers.retain(|peer| without.iter().all(|other| other.name != peer.name));
            }
            "--only" => self.only.extend(value.split(',').map(str::to_owned)),
            "--out" => self.out = Some(PathBuf::from(value)),
            _ => return Err(format!("no option called {option}; try --help")),
        }
        Ok(())
    }
}

/// The number given to an option, from 1 to `most`.
pub(crate) fn number(option: &str, value: &str, most: u32) -> Result<u32, String> {
    match value.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option} wants a number from 1 to {most}, not {value}")),
    }
}

/// The peers of a list; for `all` every one but the old builds.
fn named(list: &str) -> Result<Vec<&'static Peer>, String> {
    if list == "all" {
        return Ok(PEERS.iter().filter(|peer| !peer.is_old()).collect());
    }
    list.split(',').map(peers::by_name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Options, parse};

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse("ratios", &words)
    }

    #[test]
    fn options_are_read_and_recorded() {
        let read = options("--rounds 7 --without glibc --only lua,z3 --merge --out x").unwrap();
        assert_eq!((read.rounds, read.scale, read.merge), (7, 100, true));
        assert_eq!(read.only, ["lua", "z3"]);
        assert!(read.peers.iter().all(|peer| peer.name != "glibc"));
        let given = "ratios --rounds 7 --without glibc --only lua,z3 --merge";
        assert_eq!(read.as_given.join(" "), given);
        let quick = options("--quick").unwrap();
        assert_eq!((quick.rounds, quick.scale, quick.merge), (3, 10, false));
    }

    #[test]
    fn mistakes_are_named() {
        let why = |line: &str| options(line).err().unwrap();
        assert_eq!(why("--rounds 0"), "--rounds wants a number from 1 to 1000, not 0");
        assert_eq!(why("--sideways 1"), "no option called --sideways; try --help");
        assert_eq!(why("--only"), "--only wants a value, or is unknown");
        assert_eq!(why("--peers glibc --without glibc"), "no peer is left");
        assert!(why("--peers nobody").contains("nobody"), "{}", why("--peers nobody"));
    }
}
