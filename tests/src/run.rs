//! Child processes of the tests: with or without the preloaded library, limited in time, always
//! reaped.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::build::{is_foreign, liblumalloc};
use crate::machine;

/// A child that takes longer hangs. This is far more than any child needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(5);

/// A child process to be run to its end.
///
/// It gets a process group of its own. The whole group is killed when the time is over, and the
/// rest of the group is killed when the child ends.
pub struct Run {
    command: Command,
    name: OsString,
    limit: Duration,
    /// Variables for the loader of an emulated program.
    handed_on: Vec<(String, OsString)>,
}

impl Run {
    /// A program with the library under test preloaded.
    pub fn preloaded(program: impl AsRef<OsStr>) -> Run {
        Run::plain(program).env("LD_PRELOAD", liblumalloc())
    }

    /// A program without the library, and without any variables of the tests.
    pub fn plain(program: impl AsRef<OsStr>) -> Run {
        let words = machine::words(program.as_ref());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // Cargo's path of libraries leads to a build of the library for its own unit tests.
        let unwanted = ["LD_PRELOAD", "LD_LIBRARY_PATH"];
        for variable in
            [&unwanted[..], &["MALLOC_CONF", "LUMALLOC_CONF", "LUMALLOC_EXPORTER"]].concat()
        {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        Run { command, name: program.as_ref().to_owned(), limit: LIMIT, handed_on: Vec::new() }
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        self.command.args(args);
        self
    }

    /// Sets the name of the child in messages, in place of its path.
    pub fn called(mut self, name: &str) -> Run {
        self.name = name.into();
        self
    }

    /// Sets the options, in the form of `LUMALLOC_CONF`.
    pub fn conf(mut self, conf: &str) -> Run {
        let variable = if is_foreign() { "MALLOC_CONF" } else { "LUMALLOC_CONF" };
        if !conf.is_empty() {
            self.command.env(variable, conf);
        }
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        if machine::is_emulated() && name.starts_with("LD_") {
            self.handed_on.push((name.to_owned(), value.as_ref().to_owned()));
            let (name, value) = machine::hand_on(&self.handed_on);
            self.command.env(name, value);
        } else {
            self.command.env(name, value);
        }
        self
    }

    /// Sets the working directory.
    pub fn dir(mut self, dir: &Path) -> Run {
        self.command.current_dir(dir);
        self
    }

    /// Sets the time after which the child is taken to hang.
    pub fn limit(mut self, limit: Duration) -> Run {
        self.limit = limit;
        self
    }

    /// Runs the child to its end. Panics if it does not start or hangs.
    pub fn output(mut self) -> Output {
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("{:?} does not start: {error}", self.name),
        };
        let stdout = collect(child.stdout.take().expect("stdout is a pipe"));
        let stderr = collect(child.stderr.take().expect("stderr is a pipe"));
        let status = wait(&mut child, self.limit);
        let stdout = stdout.join().expect("the reader of stdout ends");
        let mut stderr = stderr.join().expect("the reader of stderr ends");
        if machine::is_emulated() {
            stderr = machine::without_notice(stderr);
        }
        let Some(status) = status else {
            let errors = String::from_utf8_lossy(&stderr);
            panic!("{:?} hangs: not finished after {:?}\n{errors}", self.name, self.limit);
        };
        Output { status, stdout, stderr }
    }

    /// Runs the child to its end, requires success, and returns the standard output.
    pub fn stdout(self) -> String {
        let name = self.name.clone();
        let output = self.output();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let end = text.lines().count().saturating_sub(40);
        let last: Vec<&str> = text.lines().skip(end).collect();
        let how = ending(output.status);
        assert!(output.status.success(), "{name:?}: {how}\n{}\n{errors}", last.join("\n"));
        text
    }
}

/// Runs `cmd` with the library and the options `conf`, which may be empty.
pub fn run_preloaded<S: AsRef<OsStr>>(cmd: &[S], conf: &str) -> Output {
    Run::preloaded(&cmd[0]).args(&cmd[1..]).conf(conf).output()
}

/// Runs `cmd` with the system's allocator.
pub fn run_plain<S: AsRef<OsStr>>(cmd: &[S]) -> Output {
    Run::plain(&cmd[0]).args(&cmd[1..]).output()
}

/// How a child ended, in words: `exit 0`, `signal 6`.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "neither exit nor signal".to_owned(),
    }
}

/// The path of `program` in the first directory of `PATH`, or of root's usual directories, that has
/// it.
pub fn find_program(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let mut candidates = std::env::split_paths(&path).chain(usual).map(|dir| dir.join(program));
    let found = candidates.find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| panic!("{program} is not installed; tests/run prepare installs it"))
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Waits for the end; `None` if the child had to be killed. In both cases its whole group is
/// killed, before the child is reaped, while the group's number is still in use.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    while !is_over(child.id()) && begin.elapsed() < limit {
        thread::sleep(POLL);
    }
    let in_time = is_over(child.id());
    kill_group(child.id());
    let status = child.wait().expect("a child can be waited for");
    in_time.then_some(status)
}

/// Whether the child has ended, reaped or not. Its first thread may end while others go on.
fn is_over(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let first_ended = stat.map_or(true, |text| {
        text.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
    });
    let others = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    first_ended && others() <= 1
}

/// Kills the process group of a child that is not reaped yet.
fn kill_group(leader: u32) {
    let mut kill = Command::new("/bin/sh");
    kill.args(["-c", "kill -KILL \"$0\"", &format!("-{leader}")]);
    let output = kill.output().expect("a shell starts");
    assert!(output.status.success(), "kill: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_tells_exit_from_signal() {
        assert_eq!(ending(Run::plain("sh").args(["-c", "exit 3"]).output().status), "exit 3");
        let abort = Run::plain("sh").args(["-c", "kill -ABRT $$"]).output();
        assert_eq!(ending(abort.status), "signal 6");
    }

    #[test]
    #[should_panic(expected = "hangs")]
    fn a_hanging_child_is_found() {
        Run::plain("sleep").args(["1000"]).limit(Duration::from_millis(50)).output();
    }

    #[test]
    fn grandchildren_left_behind_are_killed() {
        let script = "sleep 1000 >&- 2>&- & echo $!";
        let output = Run::plain("sh").args(["-c", script]).output();
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        let begin = Instant::now();
        while !is_over(pid) {
            assert!(begin.elapsed() < LIMIT, "it lives on");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn a_plain_child_has_no_preload() {
        assert_eq!(Run::plain("sh").args(["-c", "echo ${LD_PRELOAD-none}"]).stdout(), "none\n");
    }
}
