//! The soak test: everything at once for a given time. `tests/soak SECONDS` starts it.
//!
//! | what runs | file |
//! |---|---|
//! | storms of allocations, one after the other, by options, refusals and hardships | here |
//! | `tests/c/soak.c` twice, with the exporter: threads and forks; arenas | [`program`] |
//! | redis-server under redis-benchmark and snapshots by forked children | [`redis`] |
//!
//! Each second the identities of each snapshot are checked, and the resident memory is noted. At
//! the end the load stops, each process purges once, and must then be small. In the last quarter of
//! the time, no process may be larger than in the second quarter.

mod program;
mod redis;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lumalloc_tests::storm::{Programs, Storm};
use lumalloc_tests::{liblumalloc, liblumalloc_exporter};
use program::Program;
use redis::Redis;

/// The data that the parts of the soak share.
struct Soak {
    dir: PathBuf,
    stop: AtomicBool,
    storms: AtomicU64,
    identities: AtomicU64,
}

impl Soak {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A directory that is removed when the soak ends.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        let dir = std::env::temp_dir().join(format!("lumalloc-soak-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for sockets");
        Directory(dir)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Files left behind do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn storms(soak: &Soak) -> Result<(), String> {
    let programs = Programs::compile();
    for number in 0.. {
        if soak.is_over() {
            break;
        }
        Storm::in_turn(number).run(&programs)?;
        soak.storms.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn threads_and_forks(soak: &Soak) -> Result<(), String> {
    Program::soak(soak, "together", "")
}

fn arenas(soak: &Soak) -> Result<(), String> {
    Program::soak(soak, "arenas", "background_thread:true,dirty_decay_ms:1000")
}

/// A part of the soak, which runs until the soak is over. The error says what went wrong.
type Part = fn(&Soak) -> Result<(), String>;

const PARTS: [(&str, Part); 4] = [
    ("storm", storms),
    ("threads and forks", threads_and_forks),
    ("arenas", arenas),
    ("redis", Redis::soak),
];

/// Runs all parts until the time is over or one has ended. Returns what went wrong.
fn run_parts(soak: &Soak, duration: Duration) -> Vec<String> {
    let begin = Instant::now();
    thread::scope(|scope| {
        let running = PARTS.map(|(name, part)| (name, scope.spawn(move || part(soak))));
        while begin.elapsed() < duration && running.iter().all(|(_, part)| !part.is_finished()) {
            thread::sleep(Duration::from_millis(200));
        }
        soak.stop.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for (name, part) in running {
            let panicked = || Err("it panicked, see above".to_owned());
            if let Err(what) = part.join().unwrap_or_else(|_| panicked()) {
                failures.push(format!("{name}: {what}"));
            }
        }
        failures
    })
}

fn soak(seconds: u64) -> Result<String, String> {
    // The libraries are built before the time begins.
    liblumalloc();
    liblumalloc_exporter();
    let directory = Directory::new();
    let soak = Soak {
        dir: directory.0.clone(),
        stop: AtomicBool::new(false),
        storms: AtomicU64::new(0),
        identities: AtomicU64::new(0),
    };
    let begin = Instant::now();
    let failures = run_parts(&soak, Duration::from_secs(seconds));
    let done = format!(
        "soak: {} s, {} identities checked, {} storms, redis, arenas, threads and forks",
        begin.elapsed().as_secs(),
        soak.identities.load(Ordering::Relaxed),
        soak.storms.load(Ordering::Relaxed)
    );
    if failures.is_empty() {
        return Ok(format!("{done}: ok"));
    }
    let names: Vec<&str> =
        failures.iter().filter_map(|failure| failure.split(':').next()).collect();
    Err(format!("{}\n{done}: FAILED: {}", failures.join("\n"), names.join(", ")))
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Ok(3600), |text| text.parse());
    let Ok(seconds) = seconds else {
        eprintln!("soak: the argument is a number of seconds");
        return ExitCode::from(2);
    };
    match soak(seconds) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(lines) => {
            println!("{lines}");
            ExitCode::FAILURE
        }
    }
}
