//! One process: how it is started for a case on a peer, and how its output is read.

use crate::cases::{Case, Door};
use crate::peers::Environment;
use crate::prepare::{Contender, Programs};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run that takes longer is killed and has failed. A full run takes about a second.
const TIME_LIMIT_SECONDS: &str = "30";
/// The limit for a run that idles, or that runs under a tool.
const LONG_TIME_LIMIT_SECONDS: &str = "90";

/// The exit code of a killed process: 128 and SIGKILL.
const KILLED: f64 = 137.0;
/// The error of a process that was killed: it took too much time or memory.
pub(crate) const WAS_KILLED: &str = "killed: out of time or of memory";

/// A program with the environment that selects its allocator.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The file or feature that the program must name as the origin of its allocator.
    origin: String,
}

impl Program {
    /// The program of a case on a peer. The variables of `more` are added to those of the peer.
    pub(crate) fn of(
        programs: &Programs,
        contender: &Contender,
        case: Case,
        more: Environment,
    ) -> Result<Self, String> {
        let (mut command, origin) = match case.door {
            Door::C => {
                let mut command = Command::new(&programs.c);
                contender.preload(&mut command);
                let name = contender.shared_object.as_deref().and_then(Path::file_name);
                let origin = name.map_or("libc.so.6".into(), |name| name.to_string_lossy());
                (command, origin.into_owned())
            }
            Door::Rust => {
                let binary = contender.rust_binary.as_ref();
                let mut command = Command::new(binary.ok_or("this peer was not built for Rust")?);
                command.envs(contender.peer.environment.iter().copied());
                let feature = contender.peer.rust.map_or("nobody", |(feature, _)| feature);
                (command, feature.to_owned())
            }
        };
        command.envs(more.iter().copied());
        let variable = |(name, value): (&OsStr, Option<&OsStr>)| Some((name.into(), value?.into()));
        let environment = command.get_envs().filter_map(variable).collect();
        Ok(Self { path: command.get_program().into(), environment, origin })
    }

    /// The command that starts the program under the launcher, which reports its usage. A third
    /// argument is the time to idle.
    pub(crate) fn launched(&self, programs: &Programs, arguments: &[&str]) -> Command {
        let mut command = Command::new(&programs.launch);
        let limit = if arguments.len() > 2 { LONG_TIME_LIMIT_SECONDS } else { TIME_LIMIT_SECONDS };
        command.arg(limit).arg(&self.path).args(arguments);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// The command that starts the program under the launcher and a tool, given with its arguments.
    pub(crate) fn under(
        &self,
        programs: &Programs,
        tool: &[OsString],
        arguments: &[&str],
    ) -> Command {
        let mut command = Command::new(&programs.launch);
        command.arg(LONG_TIME_LIMIT_SECONDS).args(tool).arg(&self.path).args(arguments);
        command.env_clear().stdin(Stdio::null());
        command
    }

    /// Runs a command to its end and reads its output.
    pub(crate) fn finish(&self, mut command: Command) -> Result<Answer, String> {
        let done =
            command.output().map_err(|error| format!("the launcher did not start: {error}"))?;
        let said = String::from_utf8_lossy(&done.stderr);
        // Such a line says that an option was not understood, so the run is not what its name says.
        if let Some(warning) = said.lines().find(|line| line.starts_with("<lumalloc>: ")) {
            return Err(warning.to_owned());
        }
        let answer = Answer::read(&String::from_utf8_lossy(&done.stdout), &self.origin);
        answer.map_err(|why| {
            let last = said.lines().last().unwrap_or_default();
            if last.is_empty() { why } else { format!("{why}: {last}") }
        })
    }

    /// Reads the output of a process that the caller has waited for.
    pub(crate) fn read(&self, output: &str) -> Result<Answer, String> {
        Answer::read(output, &self.origin)
    }
}

/// What a process and its launcher reported.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) operations: f64,
    /// Wall time of the measured part.
    pub(crate) wall_ns: f64,
    /// User time of the whole process.
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    pub(crate) peak_rss_kib: f64,
    pub(crate) faults: f64,
    /// RSS in KiB before and after idling, if it idled.
    pub(crate) idle: Option<(f64, f64)>,
}

impl Answer {
    /// Reads the lines `origin`, `result`, `usage` and perhaps `idle` of a run.
    fn read(output: &str, expected_origin: &str) -> Result<Self, String> {
        let line = |key: &str| -> Option<Vec<&str>> {
            let found = output.lines().find_map(|line| line.strip_prefix(key));
            found.map(|rest| rest.split_whitespace().collect())
        };
        let numbers = |key: &str| -> Vec<f64> {
            let words = line(key).unwrap_or_default();
            words.iter().filter_map(|word| word.parse().ok()).collect()
        };
        let usage = numbers("usage ");
        let &[code, user_us, system_us, peak_rss_kib, minor, major] = usage.as_slice() else {
            return Err("the launcher printed no usage".to_owned());
        };
        if code == KILLED {
            return Err(WAS_KILLED.to_owned());
        }
        if code != 0.0 {
            return Err(format!("ended with status {code}"));
        }
        if line("origin ").is_none_or(|words| words != [expected_origin]) {
            return Err(format!("malloc did not come from {expected_origin}"));
        }
        let &[operations, wall_ns] = numbers("result ").as_slice() else {
            return Err("the program printed no result".to_owned());
        };
        let idle = match numbers("idle ").as_slice() {
            &[before, after] => Some((before, after)),
            _ => None,
        };
        let (user_ns, system_ns) = (user_us * 1000.0, system_us * 1000.0);
        let faults = minor + major;
        Ok(Self { operations, wall_ns, user_ns, system_ns, peak_rss_kib, faults, idle })
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn a_run_is_read() {
        let output = "origin liba.so\nidle 300 200\nresult 1000 5000\nusage 0 3 1 2048 70 2\n";
        let answer = Answer::read(output, "liba.so").unwrap();
        assert_eq!((answer.operations, answer.wall_ns), (1000.0, 5000.0));
        assert_eq!((answer.user_ns, answer.system_ns), (3000.0, 1000.0));
        assert_eq!((answer.peak_rss_kib, answer.faults), (2048.0, 72.0));
        assert_eq!(answer.idle, Some((300.0, 200.0)));
    }

    #[test]
    fn an_allocator_that_is_not_the_one_asked_for_is_noticed() {
        let output = "origin libc.so.6\nresult 1000 5000\nusage 0 3 1 2048 70 2\n";
        let why = Answer::read(output, "liba.so").unwrap_err();
        assert_eq!(why, "malloc did not come from liba.so");
    }

    #[test]
    fn a_death_is_a_failure() {
        let output = "origin liba.so\nusage 134 3 1 2048 70 2\n";
        assert_eq!(Answer::read(output, "liba.so").unwrap_err(), "ended with status 134");
        let late = Answer::read("usage 137 3 1 2048 70 2\n", "liba.so");
        assert_eq!(late.unwrap_err(), "killed: out of time or of memory");
    }
}
