//! Measures how long a heap profile of many stacks takes to write, in both formats in turns.
//!
//! ```text
//! cargo run --release -p lumalloc-ctl --example dump_cost -- [DUMPS]
//! ```
//!
//! Each of 100,000 blocks in use is a sample with a stack of its own: a path through 17 calls of
//! two functions. The profiles go to a file in memory. The program's memory in use before and after
//! shows that writing takes none of it.

#![allow(unsafe_code)]

use lumalloc::observe;
use lumalloc_ctl::{Key, keys::prof};
use std::hint::black_box;
use std::io::Seek;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const STACKS: usize = 100_000;
/// Calls of a path, so that there are enough paths.
const DEPTH: u32 = STACKS.ilog2() + 1;
const OPTIONS: &str = "prof:true,lg_prof_sample:0";

fn main() {
    if std::env::var("LUMALLOC_CONF").as_deref() != Ok(OPTIONS) {
        let again = std::env::current_exe().expect("this program");
        let error = Command::new(again)
            .args(std::env::args_os().skip(1))
            .env("LUMALLOC_CONF", OPTIONS)
            .exec();
        panic!("this program does not start again: {error}");
    }
    let dumps = std::env::args().nth(1).map_or(Ok(27), |text| text.parse());
    let dumps: usize = dumps.expect("a number of dumps");
    let blocks: Vec<Vec<u8>> = {
        let mut blocks = Vec::with_capacity(STACKS);
        (0..STACKS).for_each(|path| left(path, DEPTH, &mut blocks));
        blocks
    };
    let mut file = memory_file();
    let mut times = [Vec::with_capacity(dumps), Vec::with_capacity(dumps)];
    let mut bytes = [0; 2];
    let before = observe::totals().allocated;
    for _ in 0..dumps {
        for (format, key) in [prof::WRITE_HEAP_V2, prof::WRITE_PPROF].into_iter().enumerate() {
            times[format].push(dump(&mut file, key));
            bytes[format] = file.stream_position().expect("a position");
        }
    }
    let after = observe::totals().allocated;
    println!("{} stacks, {dumps} dumps in each format in turns", blocks.len());
    println!("format    median, ms  least  most  KiB");
    for ((name, times), bytes) in ["heap_v2", "pprof"].iter().zip(&mut times).zip(bytes) {
        times.sort_by(f64::total_cmp);
        let (least, most) = (times[0], times[dumps - 1]);
        println!("{name:8} {:11.1} {least:6.1} {most:5.1} {:4}", times[dumps / 2], bytes >> 10);
    }
    println!("allocated by the program before and after: {before}, {after}");
}

/// Goes down one level of a path, whose bits say which function each call is of.
#[inline(never)]
fn left(path: usize, depth: u32, blocks: &mut Vec<Vec<u8>>) {
    go_on(path, depth, blocks);
    black_box(blocks);
}

/// As [`left`].
#[inline(never)]
fn right(path: usize, depth: u32, blocks: &mut Vec<Vec<u8>>) {
    go_on(path, depth, blocks);
    black_box(path);
}

#[inline(always)]
fn go_on(path: usize, depth: u32, blocks: &mut Vec<Vec<u8>>) {
    if depth == 0 {
        blocks.push(vec![1; 16]);
    } else if path >> (depth - 1) & 1 == 0 {
        left(path, depth - 1, blocks);
    } else {
        right(path, depth - 1, blocks);
    }
}

fn memory_file() -> std::fs::File {
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(c"profile".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(descriptor >= 0, "no file in memory");
    // SAFETY: the descriptor was just opened, and nobody else has it.
    unsafe { std::fs::File::from_raw_fd(descriptor) }
}

/// Writes a profile over the file. Returns how long that took, in milliseconds.
fn dump(file: &mut std::fs::File, key: Key<lumalloc_ctl::Write<u32>>) -> f64 {
    file.rewind().and_then(|()| file.set_len(0)).expect("an empty file");
    let descriptor = u32::try_from(file.as_raw_fd()).expect("an open file");
    let begin = Instant::now();
    key.write(descriptor).expect("a profile");
    begin.elapsed().as_secs_f64() * 1e3
}
