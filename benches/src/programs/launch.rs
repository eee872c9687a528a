//! One run: a program under the launcher, with an allocator preloaded, and its measurements.

use super::line::{Line, Values};
use super::table::{Program, Role};
use crate::prepare::Contender;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

/// The measurements of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// For a batch, its own time; for a server, the time of its clients, scaled to the same work.
    pub(crate) wall_s: f64,
    /// User and system time of the program; for a server, without its clients.
    pub(crate) cpu_s: f64,
    pub(crate) peak_rss_kib: f64,
    /// The RSS of a server after its clients are gone.
    pub(crate) left_rss_kib: Option<f64>,
    pub(crate) faults: f64,
}

/// The launcher, and the values for command lines.
pub(crate) struct Stage<'a> {
    pub(crate) launch: &'a Path,
    pub(crate) values: &'a Values,
}

/// Preloads the allocator. The C library's own is preloaded too, because a program may be linked to
/// another.
pub(crate) fn preload(command: &mut Command, contender: &Contender) {
    command.env("LD_PRELOAD", "libc.so.6");
    contender.preload(command);
}

/// Runs a program once; `set` adds to the environment of the measured process. Returns the
/// measurements, and the output of a batch, which has to be the same under every allocator.
pub(crate) fn once(
    stage: &Stage,
    program: &Program,
    set: &dyn Fn(&mut Command),
) -> Result<(Sample, String), String> {
    match &program.role {
        Role::Batch(line) => batch(stage, line, set),
        Role::Server { server, ready, clients } => {
            let sample = serve(stage, (server, ready), clients, set)?;
            Ok((sample, String::new()))
        }
    }
}

fn batch(
    stage: &Stage,
    template: &str,
    set: &dyn Fn(&mut Command),
) -> Result<(Sample, String), String> {
    let mut command = Line::new(template, stage.values).command(Some(stage.launch))?;
    set(&mut command);
    let begun = Instant::now();
    let done = command.output().map_err(|error| format!("the launcher did not start: {error}"))?;
    let wall_s = begun.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let (printed, usage) = said.rsplit_once("usage ").ok_or("the launcher printed no usage")?;
    let sample = read_usage(usage, wall_s).map_err(|why| {
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        format!("{why}: {}", errors.lines().last().unwrap_or_default())
    })?;
    Ok((sample, printed.to_owned()))
}

/// Reads the launcher's line `CODE USER_US SYSTEM_US PEAK_KIB MINOR MAJOR`.
pub(crate) fn read_usage(text: &str, wall_s: f64) -> Result<Sample, String> {
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let &[code, user_us, system_us, peak_rss_kib, minor, major] = numbers.as_slice() else {
        return Err("the launcher printed no usage".to_owned());
    };
    if code != 0.0 {
        return Err(format!("ended with status {code}"));
    }
    let cpu_s = (user_us + system_us) / 1e6;
    Ok(Sample { wall_s, cpu_s, peak_rss_kib, left_rss_kib: None, faults: minor + major })
}

/// The process that a launcher has started.
pub(crate) fn child_of(launcher: u32) -> Result<String, String> {
    let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"))
        .map_err(|error| format!("the children of the launcher: {error}"))?;
    Ok(children.trim().to_owned())
}

/// What a command preloads.
pub(crate) fn preloaded(command: &Command) -> Option<String> {
    let (_, path) = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD")?;
    Some(path?.to_string_lossy().into_owned())
}

/// Whether a process has mapped what it should preload.
pub(crate) fn has_mapped(process: &str, wanted: Option<&str>) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    wanted.is_some_and(|path| maps.contains(path))
}

/// A running server. It is stopped when this is dropped, also after a failure.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    process: String,
}

impl Server {
    fn start(mut command: Command, ready: &str) -> Result<(Self, String), String> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("the launcher: {error}"))?;
        let output = child.stdout.take().ok_or("no output of the launcher")?;
        let mut server = Self { child, output: BufReader::new(output), process: String::new() };
        let mut line = String::new();
        while !line.contains(ready) {
            line.clear();
            if server.output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err(format!("the server never said it was {ready}"));
            }
            if let Some(usage) = line.strip_prefix("usage ") {
                return Err(format!("the server ended at once: {usage}"));
            }
        }
        server.process = child_of(server.child.id())?;
        let address = line.split_whitespace().last().unwrap_or_default().to_owned();
        Ok((server, address))
    }

    fn left_rss_kib(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Ends the server normally and returns what it printed from then on.
    fn stop(mut self) -> Result<String, String> {
        self.terminate();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).map_err(|error| error.to_string())?;
        Ok(rest)
    }

    fn terminate(&mut self) {
        if !self.process.is_empty() {
            // A process that has already ended needs no signal.
            let _ = Command::new("kill").arg(&self.process).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.terminate();
        let _ = self.child.wait();
    }
}

fn serve(
    stage: &Stage,
    (template, ready): (&str, &str),
    clients: &[&str],
    set: &dyn Fn(&mut Command),
) -> Result<Sample, String> {
    let mut command = Line::new(template, stage.values).command(Some(stage.launch))?;
    set(&mut command);
    let wanted = preloaded(&command);
    let (server, address) = Server::start(command, ready)?;
    if !has_mapped(&server.process, wanted.as_deref()) {
        return Err("the server has not mapped the allocator".to_owned());
    }
    let values = Values { address, ..stage.values.clone() };
    let (mut wall_s, mut share) = (0.0, 1.0);
    for client in clients {
        let mut command = Line::new(client, &values).command(None)?;
        let begun = Instant::now();
        let done = command.output().map_err(|error| format!("{client}: {error}"))?;
        wall_s += begun.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() || said.contains("rror") {
            return Err(format!("the client failed: {}", said.trim()));
        }
        share = share_of(&said).unwrap_or(share);
    }
    let left_rss_kib = server.left_rss_kib();
    let rest = server.stop()?;
    let (_, usage) = rest.rsplit_once("usage ").ok_or("the launcher printed no usage")?;
    let sample = read_usage(usage, wall_s * share)?;
    Ok(Sample { cpu_s: sample.cpu_s * share, left_rss_kib, ..sample })
}

/// The number of requests that is one unit of work for a client that runs for a given time.
const UNIT: f64 = 100_000.0;

/// The share that `UNIT` requests are of those that wrk made; `None` for a client with a fixed
/// number of requests.
fn share_of(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains(" requests in "))?;
    let requests: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(UNIT / requests)
}

#[cfg(test)]
mod tests {
    use super::{read_usage, share_of};

    #[test]
    fn usage_is_read_and_a_death_is_a_failure() {
        let sample = read_usage("0 1500000 500000 2048 70 2\n", 3.0).unwrap();
        assert_eq!((sample.wall_s, sample.cpu_s, sample.faults), (3.0, 2.0, 72.0));
        assert_eq!(read_usage("139 1 1 1 1 1", 1.0).unwrap_err(), "ended with status 139");
        assert_eq!(read_usage("0 1", 1.0).unwrap_err(), "the launcher printed no usage");
    }

    #[test]
    fn work_by_the_clock_is_counted_in_requests() {
        let said = "Running 3s test\n  200000 requests in 3.00s, 40MB read\nRequests/sec: 66666\n";
        assert_eq!(share_of(said), Some(0.5));
        assert_eq!(share_of("SET: 1000 requests per second"), None);
    }
}
