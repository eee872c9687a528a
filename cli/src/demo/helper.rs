//! A child process of the demonstration, which runs another part of this executable.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::sample::Side;
use crate::failure::{Failure, Outcome, reason};
use crate::switch;

/// A helper that is silent for longer than this has failed.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a helper that closed its output may take to end.
const LAST_MOMENTS: Duration = Duration::from_secs(1);
/// The most bytes of a helper's standard error that are kept.
const COMPLAINTS: usize = 16 << 10;
/// The variable with the allocator's options.
const OPTIONS: &str = "LUMALLOC_CONF";

/// A running helper. Dropping it kills and reaps the process. Its standard input stays open as long
/// as this process lives. The helper ends when its standard input ends.
pub(crate) struct Helper {
    name: String,
    process: Child,
    lines: Lines<BufReader<pipe::Receiver>>,
    complaints: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Helper {
    /// Starts this executable again with these arguments, on this side's allocator.
    pub(crate) fn start(name: &str, side: Side, arguments: &[String]) -> Outcome<Self> {
        Self::start_with(name, side, arguments, None)
    }

    /// Starts this executable again. The options stand before those of the environment, which win.
    pub(crate) fn start_with(
        name: &str,
        side: Side,
        arguments: &[String],
        options: Option<&str>,
    ) -> Outcome<Self> {
        let variable = switch::VARIABLE.to_str().expect("the name is ASCII");
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("lumalloc")
            .args(arguments)
            .env(variable, side.name())
            // Another allocator would take the place of the system's.
            .env_remove("LD_PRELOAD")
            .envs(options.map(|options| (OPTIONS, before_others(options))));
        Self::spawn(name, &mut command)
    }

    fn spawn(name: &str, command: &mut Command) -> Outcome<Self> {
        let failed =
            |error: io::Error| Failure::new(format!("cannot start {name}: {}", reason(&error)));
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C reaches only this process, which then ends the helpers.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let output = process.stdout.take().expect("it is piped");
        let errors = process.stderr.take().expect("it is piped");
        let complaints = Arc::default();
        let pipes =
            receiver(output.into()).and_then(|output| Ok((output, receiver(errors.into())?)));
        let (output, errors) = match pipes {
            Ok(pipes) => pipes,
            Err(error) => {
                end(&mut process);
                return Err(failed(error));
            }
        };
        let listener = tokio::spawn(listen(errors, Arc::clone(&complaints)));
        let lines = BufReader::new(output).lines();
        Ok(Self { name: name.to_owned(), process, lines, complaints, listener })
    }

    /// Returns the process number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the next message of the helper.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Outcome<T> {
        self.next_within(SILENCE).await
    }

    async fn next_within<T: DeserializeOwned>(&mut self, silence: Duration) -> Outcome<T> {
        match tokio::time::timeout(silence, self.lines.next_line()).await {
            Err(_) => {
                let (name, seconds) = (&self.name, silence.as_secs());
                Err(Failure::new(format!("{name} said nothing for {seconds} s")))
            }
            Ok(Ok(Some(line))) => serde_json::from_str(&line)
                .map_err(|error| Failure::new(format!("{} talks nonsense: {error}", self.name))),
            Ok(_) => Err(self.post_mortem().await),
        }
    }

    /// Whether the helper has ended, or ends within a moment.
    pub(crate) async fn is_ending(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < LAST_MOMENTS {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Returns why the helper ended, with the last line of its standard error if there was one.
    pub(crate) async fn post_mortem(&mut self) -> Failure {
        let ended = self.is_ending().await;
        // Waits for what is still in the pipe. Nothing more can come.
        let _ = tokio::time::timeout(LAST_MOMENTS, &mut self.listener).await;
        let words = self.last_words();
        let name = &self.name;
        match (words, self.process.try_wait()) {
            (Some(words), _) => Failure::new(format!("{name} failed: {words}")),
            (None, Ok(Some(status))) if ended => {
                Failure::new(format!("{name} ended early: {status}"))
            }
            _ => Failure::new(format!("{name} closed its output")),
        }
    }

    fn last_words(&self) -> Option<String> {
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        last_line(&complaints)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        end(&mut self.process);
        self.listener.abort();
    }
}

fn before_others(options: &str) -> OsString {
    let mut all = OsString::from(options);
    if let Some(others) = env::var_os(OPTIONS).filter(|others| !others.is_empty()) {
        all.push(",");
        all.push(others);
    }
    all
}

/// Kills and reaps a process. Both do nothing to a process that was reaped before.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn receiver(end: OwnedFd) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(end)
}

/// Collects standard error, so that the pipe never fills and the reason is known.
async fn listen(mut errors: pipe::Receiver, complaints: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        let mut all = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(&piece[..length]);
        let excess = all.len().saturating_sub(COMPLAINTS);
        all.drain(..excess);
    }
}

/// Returns the last line that is not empty, without the command's name before it.
fn last_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.strip_prefix("lumalloc: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        assert_eq!(last_line(b""), None);
        assert_eq!(last_line(b"\n \n"), None);
        assert_eq!(last_line(b"a\nlumalloc: port 1 is taken\n\n").unwrap(), "port 1 is taken");
        assert_eq!(last_line(b"<lumalloc>: double free").unwrap(), "<lumalloc>: double free");
    }

    /// What a helper is blamed for that is this script.
    fn blamed(script: &str, silence: Duration) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let mut shell = Command::new("sh");
            let mut helper = Helper::spawn("the helper", shell.args(["-c", script])).unwrap();
            let next = helper.next_within::<u8>(silence).await;
            next.unwrap_err().message
        })
    }

    #[test]
    fn whatever_a_helper_does_wrong_is_said() {
        let long = Duration::from_secs(600);
        for (script, message) in [
            ("exec >&- 2>&-; exec sleep 1000", "the helper closed its output"),
            ("echo lumalloc: why >&2; exit 1", "the helper failed: why"),
            ("echo no", "the helper talks nonsense: expected ident at line 1 column 2"),
        ] {
            assert_eq!(blamed(script, long), message);
        }
        let silent = blamed("exec sleep 1000", Duration::ZERO);
        assert_eq!(silent, "the helper said nothing for 0 s");
    }

    #[test]
    fn a_helper_that_does_not_start_is_said() {
        let helper = Helper::spawn("the helper", &mut Command::new("/nowhere/helper"));
        let message = "cannot start the helper: no such file or directory";
        assert_eq!(helper.err(), Some(Failure::new(message)));
    }
}
