//! One process of the service: started, asked for bursts, ended.

use super::ways::Way;
use crate::programs::launch::{Sample, child_of, has_mapped, preloaded, read_usage};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that takes longer than this is killed.
const TIME_LIMIT_SECONDS: &str = "600";

/// What the service says of a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) millis: f64,
    /// MiB that the program holds at its end.
    pub(super) allocated: f64,
}

/// What the service says at its end, and its launcher.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Last {
    /// MiB that the program holds.
    pub(super) allocated: f64,
    /// Of all events, in milliseconds, sorted.
    pub(super) latencies: Vec<f64>,
    pub(super) usage: Sample,
}

pub(super) struct Service {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(super) process: String,
}

impl Service {
    pub(super) fn start(
        launch: &Path,
        (program, events): (&Path, u32),
        way: &Way,
    ) -> Result<Self, String> {
        let mut command = Command::new(launch);
        command.env_clear().arg(TIME_LIMIT_SECONDS).arg(program).arg(events.to_string());
        way.set(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let wanted = preloaded(&command);
        let mut child = command.spawn().map_err(|error| format!("the launcher: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output of the launcher")?;
        let output = BufReader::new(output);
        let mut service = Self { child, input, output, process: String::new() };
        service.read_to("ready")?;
        service.process = child_of(service.child.id())?;
        if has_mapped(&service.process, wanted.as_deref()) {
            Ok(service)
        } else {
            Err("the service has not mapped the allocator".to_owned())
        }
    }

    /// Lets it do a burst, and waits for the end.
    pub(super) fn burst(&mut self) -> Result<Said, String> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        input.write_all(b"\n").map_err(|error| format!("its input: {error}"))?;
        let line = self.read_to("burst ")?;
        read_burst(&line)
    }

    /// Ends it.
    pub(super) fn finish(mut self) -> Result<Last, String> {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).map_err(|error| error.to_string())?;
        read_last(&rest)
    }

    /// Reads up to a line that begins with `start`, and returns it.
    fn read_to(&mut self, start: &str) -> Result<String, String> {
        let mut line = String::new();
        while !line.starts_with(start) {
            line.clear();
            if self.output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err(format!("it ended without a line \"{start}\""));
            }
            if let Some(usage) = line.strip_prefix("usage ") {
                return Err(format!("it ended at once: {usage}"));
            }
        }
        Ok(line)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Without its input the service ends.
        self.input = None;
        let _ = self.child.wait();
    }
}

fn mib(bytes: &str) -> Option<f64> {
    Some(bytes.parse::<f64>().ok()? / f64::from(1 << 20))
}

/// Reads the line `burst NUMBER MILLISECONDS ALLOCATED P50 P99 P99.9`.
fn read_burst(line: &str) -> Result<Said, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = match words.as_slice() {
        ["burst", _, millis, allocated, _, _, _] => {
            millis.parse().ok().and_then(|millis| Some(Said { millis, allocated: mib(allocated)? }))
        }
        _ => None,
    };
    said.ok_or_else(|| format!("it said of a burst: {line}"))
}

/// Reads the lines `quiet`, `latencies` and `usage` at the end.
fn read_last(said: &str) -> Result<Last, String> {
    let line = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
    let usage = read_usage(line("usage ").unwrap_or_default(), 0.0)?;
    let quiet = line("quiet ").and_then(|rest| mib(rest.split_whitespace().nth(1)?));
    let allocated = quiet.ok_or("it did not say what it holds at the end")?;
    let numbers = line("latencies ").unwrap_or_default().split_whitespace();
    let micros: Result<Vec<f64>, _> = numbers.map(str::parse::<f64>).collect();
    let mut latencies: Vec<f64> =
        micros.map_err(|error| format!("latencies: {error}"))?.iter().map(|us| us / 1e3).collect();
    if latencies.is_empty() {
        return Err("it gave no latencies".to_owned());
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Last { allocated, latencies, usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_read() {
        let said = read_burst("burst 2 800 2097152 10 20 30\n").unwrap();
        assert_eq!(said, Said { millis: 800.0, allocated: 2.0 });
        assert!(read_burst("burst 2 800 2097152\n").is_err());
        assert!(read_burst("burst 2 soon 2097152 10 20 30\n").is_err());
    }

    #[test]
    fn the_end_is_read_and_latencies_are_sorted() {
        let usage = "usage 0 1500000 500000 2048 70 2\n";
        let last = read_last(&format!("quiet 3 3145728\nlatencies 3000 1000 2000\n{usage}"));
        let last = last.unwrap();
        assert_eq!((last.allocated, last.usage.cpu_s), (3.0, 2.0));
        assert_eq!(last.latencies, [1.0, 2.0, 3.0]);
        let why = |text: String| read_last(&text).unwrap_err();
        assert_eq!(why(format!("quiet 3 1048576\n{usage}")), "it gave no latencies");
        assert!(why(format!("quiet 3 1\nlatencies 1 x\n{usage}")).starts_with("latencies: "));
        assert_eq!(why("usage 139 1 1 1 1 1".to_owned()), "ended with status 139");
    }
}
