//! Measures what reading statistics costs threads that allocate: their processor time with and
//! without a reader, in alternating slices of the same work.
//!
//! ```text
//! cargo run --release -p lumalloc-ctl --example reading -- [SECONDS]
//! ```
//!
//! A reading is an epoch and every key of `stats`, as JSON, which is more than a scrape asks for.
//! Readings are done far more often than in practice, so that their cost stands out from the noise,
//! and the result is scaled back. A block of four slices (without, with, with, without) gives one
//! ratio, in which drift cancels. The true median lies in the given interval with 95 % certainty,
//! whatever the noise. Wall time would include the core that the reader takes, so only processor
//! time is compared. Waiting for locks takes no processor time and is counted separately.

#![allow(unsafe_code)]

use lumalloc::{observe, raw};
use lumalloc_ctl::{keys, read_json};
use serde_json::Value;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const THREADS: usize = 8;
/// Blocks that a thread holds at a time.
const SLOTS: usize = 2048;
/// Blocks that pass between threads: each is freed by the thread that next swaps its place.
const BETWEEN: usize = 1024;
const SLICE: Duration = Duration::from_millis(50);

/// How often the main thread reads during a slice.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    Never,
    Once,
    WithoutPause,
}

/// The measurements of one slice.
#[derive(Clone, Copy, Default)]
struct Slice {
    /// Nanoseconds of processor time of all threads that allocate.
    workers: u64,
    /// Nanoseconds of processor time of the reader.
    reader: u64,
    readings: u64,
    wall: Duration,
    waits: u64,
}

/// The data that the threads share.
struct Work {
    operations: AtomicUsize,
    stop: AtomicBool,
    /// Processor time of the workers since the slice began, in nanoseconds.
    spent: AtomicU64,
    running: AtomicUsize,
    begin: Barrier,
    between: [AtomicUsize; BETWEEN],
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Ok(40), |text| text.parse::<u64>());
    let Ok(seconds) = seconds else {
        eprintln!("reading: SECONDS is a number");
        return ExitCode::FAILURE;
    };
    let work = Work {
        operations: AtomicUsize::new(50_000),
        stop: AtomicBool::new(false),
        spent: AtomicU64::new(0),
        running: AtomicUsize::new(0),
        begin: Barrier::new(THREADS + 1),
        between: [const { AtomicUsize::new(0) }; BETWEEN],
    };
    let (work, reader) = (&work, &thread::current());
    thread::scope(|scope| {
        (0..THREADS).for_each(|seed| drop(scope.spawn(move || worker(work, reader, seed))));
        calibrate(work);
        let half = Duration::from_secs(seconds) / 2;
        compare(work, "once a slice", Pace::Once, half);
        compare(work, "without a pause", Pace::WithoutPause, half);
        work.stop.store(true, Relaxed);
        work.begin.wait();
    });
    ExitCode::SUCCESS
}

/// Sets the number of operations so that a slice takes [`SLICE`].
fn calibrate(work: &Work) {
    slice(work, Pace::Never);
    for _ in 0..3 {
        let wall = slice(work, Pace::Never).wall;
        let scale = SLICE.as_secs_f64() / wall.as_secs_f64();
        let operations = work.operations.load(Relaxed) as f64 * scale;
        work.operations.store(operations as usize, Relaxed);
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let arenas = lumalloc::control::narenas();
    let operations = work.operations.load(Relaxed);
    let keys = count(&read());
    println!(
        "{THREADS} threads, {cores} cores, {arenas} arenas; {operations} replacements a slice"
    );
    println!("a reading: an epoch and {keys} keys");
}

/// Runs slices without and with a reader for a time, and prints the results.
fn compare(work: &Work, name: &str, pace: Pace, time: Duration) {
    let (mut blocks, begin) = (Vec::new(), Instant::now());
    while begin.elapsed() < time {
        blocks.push([Pace::Never, pace, pace, Pace::Never].map(|pace| slice(work, pace)));
    }
    let sum = |of: fn(&Slice) -> u64, which: [usize; 2]| {
        blocks.iter().flat_map(|block| which.map(|n| of(&block[n]))).sum::<u64>()
    };
    let (without, with) = ([0, 3], [1, 2]);
    let mut ratios: Vec<f64> = blocks
        .iter()
        .map(|[a, b, c, d]| (b.workers + c.workers) as f64 / (a.workers + d.workers) as f64)
        .collect();
    let readings = sum(|slice| slice.readings, with) as f64;
    let rate = readings * 1e9 / sum(|slice| slice.wall.as_nanos() as u64, with) as f64;
    println!("read {name}: {rate:.1} a second, {} blocks of slices", blocks.len());
    let percent = median(&mut ratios).map(|ratio| (ratio - 1.0) * 100.0);
    for often in [rate, 10.0, 1.0] {
        let [low, median, high] = percent.map(|percent| percent / rate * often);
        println!(
            "  {often:5.1} a second cost the threads {median:6.3} % of their time \
             (95 %: {low:6.3} to {high:6.3})"
        );
    }
    let reader = sum(|slice| slice.reader, with) as f64 / readings / 1e6;
    let waits = |which| sum(|slice| slice.waits, which);
    println!("  a reading takes {reader:.2} ms of the reader's own time");
    println!("  locks found taken: {} without, {} with", waits(without), waits(with));
}

/// The median, with the bounds that it lies between with a certainty of 95 %.
fn median(of: &mut [f64]) -> [f64; 3] {
    of.sort_by(f64::total_cmp);
    let middle = of.len() as f64 / 2.0;
    // The rank of the true median is binomial: 1.96 standard deviations of √n / 2 cover 95 %.
    let away = 0.98 * (of.len() as f64).sqrt();
    [middle - away, middle, middle + away].map(|n| of[(n.max(0.0) as usize).min(of.len() - 1)])
}

/// Lets all threads do their work once, and reads meanwhile.
fn slice(work: &Work, pace: Pace) -> Slice {
    let waits = waits();
    work.spent.store(0, Relaxed);
    work.running.store(THREADS, Relaxed);
    let (begin, own) = (Instant::now(), processor_time());
    work.begin.wait();
    let mut readings = 0;
    loop {
        match pace {
            Pace::Never => thread::park(),
            Pace::Once if readings == 0 => thread::park_timeout(SLICE / 4),
            Pace::Once => thread::park(),
            Pace::WithoutPause => {}
        }
        // Acquire: pairs with the Release of the workers that are done.
        if work.running.load(Ordering::Acquire) == 0 {
            break;
        }
        if pace != Pace::Never && (pace != Pace::Once || readings == 0) {
            black_box(read());
            readings += 1;
        }
    }
    let (wall, reader) = (begin.elapsed(), processor_time() - own);
    let workers = work.spent.load(Relaxed);
    Slice { workers, reader, readings, wall, waits: self::waits() - waits }
}

/// Does one reading: more than a scrape does.
fn read() -> Value {
    keys::EPOCH.write(0).expect("an epoch");
    read_json("stats").expect("a branch")
}

fn count(value: &Value) -> usize {
    value.as_object().map_or(1, |branch| branch.values().map(count).sum())
}

/// How often a lock was found taken.
fn waits() -> u64 {
    let work = observe::totals().work;
    work.wait_cache + work.wait_bin + work.wait_pages + work.wait_registry + work.wait_metadata
}

/// Nanoseconds of processor time of the calling thread.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is writable.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "a thread has a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Replaces random blocks in each slice: 16 bytes to 32 KiB, small ones most often.
fn worker(work: &Work, reader: &Thread, seed: usize) {
    let mut random = seed as u64 + 1;
    let mut own = vec![0; SLOTS];
    loop {
        work.begin.wait();
        if work.stop.load(Relaxed) {
            break;
        }
        let begin = processor_time();
        for n in 0..work.operations.load(Relaxed) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let dice = (random >> 33) as usize;
            let block = allocate(16 << (dice % 12 * (dice / 12 % 12) / 11) | dice >> 27);
            let old = match n % 16 {
                // AcqRel: pairs with the same swap in the other threads.
                0 => work.between[dice % BETWEEN].swap(block, Ordering::AcqRel),
                _ => std::mem::replace(&mut own[dice % SLOTS], block),
            };
            free(old);
        }
        work.spent.fetch_add(processor_time() - begin, Relaxed);
        // Release: pairs with the Acquire of the reader.
        if work.running.fetch_sub(1, Ordering::Release) == 1 {
            reader.unpark();
        }
    }
    own.into_iter().for_each(free);
}

fn allocate(size: usize) -> usize {
    let block = raw::malloc(size);
    // SAFETY: the block has at least 16 bytes; null is caught here.
    *unsafe { block.as_mut() }.expect("memory") = 1;
    block.expose_provenance()
}

fn free(block: usize) {
    // SAFETY: the block is live and not used any more, or null.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
}
