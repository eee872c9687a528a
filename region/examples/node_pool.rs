//! Nodes of one size, which come and go, in a region with the method `Pool`.
//! `cargo run -p lumalloc-region --example node_pool`.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::collections::VecDeque;
use std::ptr::NonNull;

use lumalloc_region::{Heap, Pool, Region};

/// A job in a queue.
struct Job {
    number: u64,
    result: [u64; 4],
}

fn main() {
    let pool: Region<Pool, Heap> = Region::open(Heap).expect("memory");
    let mut queue: VecDeque<NonNull<Job>> = VecDeque::new();
    let mut sum = 0;
    for number in 0..100_000 {
        let job = pool.alloc(size_of::<Job>()).expect("memory").cast::<Job>();
        // SAFETY: the block is new and long enough, and aligned to 16.
        unsafe { job.write(Job { number, result: [number; 4] }) };
        queue.push_back(job);
        if queue.len() > 100 {
            let job = queue.pop_front().expect("a job");
            // SAFETY: the block holds a job, and is this program's.
            let done = unsafe { job.as_ref() };
            sum += done.number + done.result.iter().sum::<u64>();
            // SAFETY: the job is used no more.
            unsafe { pool.free(job.cast()) }.expect("a block");
        }
    }
    let stat = pool.stat();
    println!("sum {sum}, {} jobs wait in {} bytes", stat.busy, stat.extent);
}
