//! redis-server under redis-benchmark, with snapshots by forked children.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lumalloc_tests::liblumalloc;
use lumalloc_tests::memory::rss_kib;
use lumalloc_tests::resident::{Resident, check_end};
use lumalloc_tests::run::{ending, find_program};

use super::Soak;

/// A server that is killed when it is dropped.
pub(crate) struct Redis {
    server: Child,
    socket: PathBuf,
}

impl Redis {
    /// Runs the server until the soak is over. The error says what went wrong.
    pub(crate) fn soak(soak: &Soak) -> Result<(), String> {
        let redis = Redis::start(&soak.dir);
        redis.wait_until_served()?;
        // After this round the server has about as much data as it ever will.
        redis.round(0)?;
        let end = AtomicBool::new(false);
        let resident = thread::scope(|scope| {
            let load = scope.spawn(|| redis.load(&end));
            let watched = redis.watch(soak, || load.is_finished());
            end.store(true, Ordering::Relaxed);
            let loaded = load.join().map_err(|_| "the load panicked".to_owned())?;
            watched.and(loaded)
        })?;
        redis.finish()?;
        resident.check_growth()
    }

    /// Starts a server without a port. Clients use a unix socket.
    fn start(dir: &Path) -> Redis {
        let socket = dir.join("redis.socket");
        let server = Command::new(find_program("redis-server"))
            .args(["--port", "0", "--save", "", "--daemonize", "no", "--dir"])
            .arg(dir)
            .arg("--unixsocket")
            .arg(&socket)
            .env("LD_PRELOAD", liblumalloc())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        Redis { server, socket }
    }

    fn wait_until_served(&self) -> Result<(), String> {
        for _ in 0..1000 {
            if self.ask(&["ping"]).is_ok_and(|answer| answer == "PONG\n") {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err("redis-server does not answer".into())
    }

    /// Sends a command to the server and returns its answer.
    fn ask(&self, command: &[&str]) -> Result<String, String> {
        self.client("redis-cli", command)
    }

    fn client(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let output = Command::new(find_program(program))
            .arg("-s")
            .arg(&self.socket)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        let [text, errors] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if output.status.success() && !text.contains("ERR ") {
            return Ok(text);
        }
        Err(format!("{program} {args:?}: {}\n{text}{errors}", ending(output.status)))
    }

    /// Reads the field `name:123` of `INFO memory`.
    fn info(text: &str, name: &str) -> Result<u64, String> {
        let field = text.lines().find_map(|line| line.trim_end().strip_prefix(name));
        let number = field.and_then(|rest| rest.strip_prefix(':')?.parse().ok());
        number.ok_or_else(|| format!("INFO memory has no {name}"))
    }

    /// Runs rounds and notes the resident memory between them. During a round the list comes and
    /// goes.
    fn load(&self, end: &AtomicBool) -> Result<Resident, String> {
        let mut resident = Resident::new(self.server.id());
        for round in 1.. {
            if end.load(Ordering::Relaxed) {
                break;
            }
            self.round(round)?;
            self.ask(&["memory", "purge"])?;
            resident.note();
        }
        Ok(resident)
    }

    /// Runs the benchmark with values of several sizes, sometimes with a child that writes a
    /// snapshot.
    fn round(&self, round: u32) -> Result<(), String> {
        const TESTS: &str = "set,get,incr,lpush,lpop,sadd,spop,hset,zadd,mset";
        const COMMON: [&str; 11] =
            ["-n", "20000", "-c", "20", "-r", "1000", "-P", "8", "-q", "-t", TESTS];
        if round % 4 == 1 {
            // This is refused while another snapshot is being written.
            let _ = self.ask(&["bgsave"]);
        }
        for size in ["100", "2000", "20000"] {
            self.client("redis-benchmark", &[&COMMON[..], &["-d", size]].concat())?;
        }
        // The list holds the values that lpush added and lpop did not remove.
        self.ask(&["del", "mylist"])?;
        Ok(())
    }

    fn watch(&self, soak: &Soak, is_done: impl Fn() -> bool) -> Result<(), String> {
        while !soak.is_over() && !is_done() {
            let text = self.ask(&["info", "memory"])?;
            let [allocated, active, held] = ["allocated", "active", "resident"]
                .map(|name| Redis::info(&text, &format!("allocator_{name}")));
            let (allocated, active, held) = (allocated?, active?, held?);
            if allocated > active || active > held {
                return Err(format!("not allocated <= active <= resident: {text}"));
            }
            soak.identities.fetch_add(2, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Empties the server, purges once, and checks the remaining memory.
    fn finish(mut self) -> Result<(), String> {
        self.ask(&["flushall", "sync"])?;
        self.ask(&["memory", "purge"])?;
        let used = Redis::info(&self.ask(&["info", "memory"])?, "used_memory")?;
        check_end(rss_kib(self.server.id()), used >> 10)?;
        // The connection ends before there is an answer.
        let _ = self.ask(&["shutdown", "nosave"]);
        let status = self.server.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(ending(status)) }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
