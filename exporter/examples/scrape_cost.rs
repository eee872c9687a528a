//! Measures what scrapes cost: the CPU time of the exporter's threads for each scrape, and of a
//! service that is scraped every second.
//!
//! ```text
//! cargo run --release -p lumalloc-exporter --example scrape_cost
//! cargo run --release -p lumalloc-exporter --example scrape_cost -- service
//! cargo run --release -p lumalloc-exporter --example scrape_cost -- busy 100
//! ```
//!
//! The first command makes 64 arenas, most of them with names, and 1000 threads that each have a
//! cache and hold some memory of one arena. It makes 100 scrapes of each kind. The second command
//! runs 8 threads that allocate without a pause, in turns with a scrape every second and without,
//! in the order A B B A. It measures the CPU time of the 8 threads for equal work. The third
//! command runs 100 threads that allocate without a pause, and measures how long scrapes and forks
//! take meanwhile.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{fs, thread};

use lumalloc::Arena;
use lumalloc_exporter::Exporter;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const THREADS: usize = 1000;
const ARENAS: usize = 64;
const SCRAPES: u32 = 100;
const OPENMETRICS: &str = "Accept: application/openmetrics-text;version=1.0.0\r\n";
const GZIP: &str = "Accept-Encoding: gzip\r\n";
const DETAIL: &str = "/metrics?collect[]=arenas,bins,lextents,extents,mutexes,engine";

fn main() {
    let exporter = Exporter::builder().listen(SocketAddr::from(([127, 0, 0, 1], 0))).start();
    let exporter = exporter.expect("an exporter");
    let address = exporter.address().expect("an address");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => scrapes(address),
        ["service"] => service(address),
        ["busy", threads] => busy(address, threads.parse().expect("a number of threads")),
        _ => panic!("nothing, `service`, or `busy` and a number of threads"),
    }
}

/// Measures scrapes and forks beside so many threads that allocate and write without a pause.
fn busy(address: SocketAddr, threads: u64) {
    for seed in 0..threads {
        thread::spawn(move || {
            let mut blocks: Vec<Vec<u8>> = vec![Vec::new(); 256];
            let mut dice = seed + 1;
            loop {
                dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let size = (dice >> 33 & 0x1fff) as usize + 8;
                let times = if (dice >> 20).is_multiple_of(997) { 40 } else { 1 };
                let place = (dice >> 56) as usize;
                blocks[place] = Vec::new();
                blocks[place] = vec![1; size * times];
            }
        });
    }
    thread::sleep(Duration::from_secs(3));
    let seconds = |times: &mut [f64]| {
        times.sort_by(f64::total_cmp);
        let [least, most] = [times.first(), times.last()].map(|time| time.copied().unwrap_or(0.0));
        format!("{least:.2} to {most:.2} s, half of them up to {:.2} s", times[times.len() / 2])
    };
    let timed = |act: &dyn Fn()| {
        let begin = Instant::now();
        act();
        begin.elapsed().as_secs_f64()
    };
    let fork = || {
        // SAFETY: the child ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: nothing is run.
            unsafe { libc::_exit(0) };
        }
        assert!(child > 0, "a child");
    };
    let forks = seconds(&mut [(); 9].map(|()| timed(&fork)));
    println!("beside {threads} busy threads 9 forks take {forks}");
    let answered = Cell::new(0);
    let ask = || answered.set(answered.get() + u32::from(is_answered(address)));
    let scrapes = seconds(&mut [(); 9].map(|()| timed(&ask)));
    println!("and 9 scrapes {scrapes}; {} are answered", answered.get());
}

/// Asks once, and returns whether the answer is no refusal.
fn is_answered(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    answer.starts_with(b"HTTP/1.1 200 OK")
}

/// Returns the CPU time of a thread of this process.
fn cpu_of(thread: u32) -> Duration {
    // The clock of a thread by its number, as `pthread_getcpuclockid` computes it.
    let clock = (!(thread as libc::clockid_t)) << 3 | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is written to a valid place.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the CPU time of the exporter's threads, which are found by their names.
fn exporter_cpu() -> [Duration; 2] {
    let mut found = [Duration::ZERO; 2];
    for task in fs::read_dir("/proc/self/task").expect("threads").flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let thread = task.file_name().to_string_lossy().parse().unwrap_or(0);
        match name.trim() {
            "lumalloc-read" => found[0] += cpu_of(thread),
            "lumalloc-http" => found[1] += cpu_of(thread),
            _ => {}
        }
    }
    found
}

/// Asks once, and returns the number of bytes of the answer.
fn scrape(address: SocketAddr, path: &str, headers: &str) -> usize {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")
        .expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
    answer.len()
}

/// Measures a scrape of many arenas and threads at rest.
fn scrapes(address: SocketAddr) {
    let ready = Arc::new(Barrier::new(THREADS + 1));
    let name = |at: usize| Arena::named(&format!("tenant {at}")).expect("an arena");
    let open = lumalloc::observe::totals().arenas_open as usize;
    let tenants: Vec<Arena> = (open..ARENAS).map(name).collect();
    for seed in 0..THREADS {
        let ready = Arc::clone(&ready);
        let tenant = tenants[seed % tenants.len()];
        let stay = move || {
            let fill = || (0..40).map(|at| vec![1u8; 16 << ((at + seed) % 11)]).collect();
            let blocks: Vec<Vec<u8>> = tenant.run(fill).expect("room");
            ready.wait();
            thread::park();
            drop(blocks);
        };
        let thread = thread::Builder::new().stack_size(64 << 10).spawn(stay);
        drop(thread.expect("a thread"));
    }
    ready.wait();
    let arenas = lumalloc::observe::totals().arenas_open;
    println!("{THREADS} threads, {arenas} arenas; CPU time a scrape, mean of {SCRAPES}");
    println!("{:22} {:>9} {:>10} {:>10} {:>10}", "scrape", "bytes", "reading", "serving", "both");
    for (name, path, headers) in [
        ("text", "/metrics", String::new()),
        ("text, gzip", "/metrics", GZIP.into()),
        ("openmetrics", "/metrics", OPENMETRICS.into()),
        ("openmetrics, gzip", "/metrics", format!("{OPENMETRICS}{GZIP}")),
        ("detail: text", DETAIL, String::new()),
        ("detail: text, gzip", DETAIL, GZIP.into()),
        ("detail: openmetrics", DETAIL, OPENMETRICS.into()),
    ] {
        scrape(address, path, &headers);
        let before = exporter_cpu();
        let bytes = (0..SCRAPES).map(|_| scrape(address, path, &headers)).max().unwrap_or(0);
        let after = exporter_cpu();
        let [reading, serving] =
            [0, 1].map(|at| (after[at] - before[at]).as_secs_f64() * 1e3 / f64::from(SCRAPES));
        let both = reading + serving;
        println!("{name:22} {bytes:9} {reading:7.3} ms {serving:7.3} ms {both:7.3} ms");
    }
}

/// Returns the CPU seconds that 8 threads need for so many operations each.
fn turn(operations: u64) -> f64 {
    let used = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..8)
        .map(|seed| {
            let used = Arc::clone(&used);
            thread::spawn(move || {
                let mut blocks: Vec<Vec<u8>> = vec![Vec::new(); 256];
                let mut dice = seed + 1u64;
                for _ in 0..operations {
                    dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let place = (dice >> 56) as usize;
                    blocks[place] = Vec::with_capacity((dice >> 33 & 0x3ff) as usize + 8);
                }
                let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                // SAFETY: the clock of this thread is written to a valid place.
                unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
                used.fetch_add(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a worker"));
    used.load(Relaxed) as f64 / 1e9
}

/// Measures a service at full speed, scraped every second or not.
fn service(address: SocketAddr) {
    let stop = Arc::new(AtomicBool::new(false));
    let on = Arc::new(AtomicBool::new(false));
    let scraper = {
        let (stop, on) = (Arc::clone(&stop), Arc::clone(&on));
        thread::spawn(move || {
            let mut scrapes = 0u32;
            while !stop.load(Relaxed) {
                if on.load(Relaxed) {
                    scrape(address, "/metrics", GZIP);
                    scrapes += 1;
                }
                thread::sleep(Duration::from_secs(1));
            }
            scrapes
        })
    };
    let operations = 50_000_000;
    turn(operations / 10);
    // The first scrape looks all names up.
    scrape(address, "/metrics", GZIP);
    let mut ratios = Vec::new();
    let (begin, before) = (Instant::now(), exporter_cpu());
    let mut work = 0.0;
    for _ in 0..4 {
        let times = [false, true, true, false].map(|scraped| {
            on.store(scraped, Relaxed);
            turn(operations)
        });
        work += times.iter().sum::<f64>();
        ratios.push((times[1] + times[2]) / (times[0] + times[3]));
    }
    let after = exporter_cpu();
    stop.store(true, Relaxed);
    let scrapes = scraper.join().expect("the scraper");
    ratios.sort_by(f64::total_cmp);
    let exporter = [0, 1].map(|at| (after[at] - before[at]).as_secs_f64()).iter().sum::<f64>();
    let each = exporter / f64::from(scrapes.max(1));
    println!(
        "{scrapes} scrapes in {:.1} s, {:.3} ms of CPU each",
        begin.elapsed().as_secs_f64(),
        each * 1e3
    );
    let share = each / (work / begin.elapsed().as_secs_f64());
    println!("one a second: {:.4} % of the service's CPU time", share * 100.0);
    println!("the service's own CPU time, with scrapes / without: {ratios:.4?}");
}
