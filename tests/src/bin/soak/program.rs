//! A test program with the exporter, which is scraped all the time.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lumalloc_tests::identities::Watch;
use lumalloc_tests::memory::number;
use lumalloc_tests::resident::{Resident, check_end};
use lumalloc_tests::run::ending;
use lumalloc_tests::{cc, liblumalloc, liblumalloc_exporter};

use super::Soak;

/// Far longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The paths that are requested in turn, without a pause.
const SCRAPED: [&str; 6] =
    ["/metrics", "/metrics?collect[]=bins,arenas", "/stats", "/ctl/stats", "/doctor", "/ctl"];

/// A child that is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    socket: PathBuf,
    /// Whether the program destroys arenas.
    arenas_end: bool,
}

impl Program {
    /// Runs `tests/c/soak.c` in a mode until the soak is over. The error says what went wrong.
    pub(crate) fn soak(soak: &Soak, mode: &str, conf: &str) -> Result<(), String> {
        let program = Program::start(&soak.dir, mode, conf);
        program.wait_until_served()?;
        let end = AtomicBool::new(false);
        let resident = thread::scope(|scope| {
            let scraper = scope.spawn(|| program.scrape(&end));
            let watched = program.watch(soak, || scraper.is_finished());
            end.store(true, Ordering::Relaxed);
            let scraped = scraper.join().map_err(|_| "the scraper panicked".to_owned())?;
            watched.and_then(|resident| scraped.map(|()| resident))
        })?;
        program.finish()?;
        resident.check_growth()
    }

    fn start(dir: &Path, mode: &str, conf: &str) -> Program {
        let socket = dir.join(format!("{mode}.socket"));
        let preload = format!("{}:{}", liblumalloc().display(), liblumalloc_exporter().display());
        let library = liblumalloc();
        let program = cc("soak.c", &[library.to_str().expect("a path in UTF-8")]);
        let child = Command::new(program)
            .arg(mode)
            .env("LD_PRELOAD", preload)
            .env("LUMALLOC_CONF", conf)
            .env("LUMALLOC_EXPORTER", format!("unix:{}", socket.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Program { child, socket, arenas_end: mode == "arenas" }
    }

    /// Waits for the exporter, as long as the program runs.
    fn wait_until_served(&self) -> Result<(), String> {
        let state = format!("/proc/{}/stat", self.child.id());
        while self.get("/-/ready").is_err() {
            let stat = fs::read_to_string(&state).map_err(|error| format!("{state}: {error}"))?;
            if stat.contains(") Z ") {
                return Err("it ended at once".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The exporter's answer. It is an error if there is none, or if its status is not 200.
    fn get(&self, path: &str) -> Result<String, String> {
        let failed = |what: &dyn std::fmt::Display| format!("GET {path}: {what}");
        let ask = || {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().map_err(|error: std::io::Error| failed(&error))?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| failed(&"no answer"))?;
        if !head.starts_with("HTTP/1.0 200 ") {
            return Err(failed(&head.lines().next().unwrap_or_default()));
        }
        Ok(body.to_owned())
    }

    fn scrape(&self, end: &AtomicBool) -> Result<(), String> {
        for path in SCRAPED.iter().cycle() {
            if end.load(Ordering::Relaxed) {
                break;
            }
            self.get(path)?;
        }
        Ok(())
    }

    /// Checks the identities each second until the soak is over, or until `is_done` is true.
    fn watch(&self, soak: &Soak, is_done: impl Fn() -> bool) -> Result<Resident, String> {
        let mut resident = Resident::new(self.child.id());
        let mut watch = if self.arenas_end { Watch::where_arenas_end() } else { Watch::default() };
        while !soak.is_over() && !is_done() {
            let before = watch.checked();
            watch.check(&self.get("/stats?format=json")?)?;
            soak.identities.fetch_add(watch.checked() - before, Ordering::Relaxed);
            resident.note();
            thread::sleep(Duration::from_secs(1));
        }
        Ok(resident)
    }

    /// Stops the load, and checks the remaining memory.
    fn finish(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        let output = self.child.stdout.as_mut().expect("stdout is a pipe");
        output.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(ending(status));
        }
        if number(&text, "rounds") == 0 {
            return Err("it did nothing".into());
        }
        check_end(number(&text, "rss_kib"), number(&text, "allocated_kib"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
