//! Measures what statistics cost: an epoch over many arenas and threads, and a read by MIB. The
//! example `reading` of `lumalloc-ctl` measures what they cost threads that allocate meanwhile.
//!
//! ```text
//! MALLOC_CONF=narenas:64 cargo run --release -p lumalloc-namespace --example epoch -- [THREADS]
//! ```

#![allow(unsafe_code)]

use lumalloc::raw::{self, Flags};
use lumalloc_namespace::{Entry, snapshot, tree};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let arenas = lumalloc::control::narenas();
    let all = (Arc::new(Barrier::new(threads + 1)), Arc::new(Barrier::new(threads + 1)));
    let parked: Vec<_> = (0..threads)
        .map(|n| {
            let (ready, over) = (Arc::clone(&all.0), Arc::clone(&all.1));
            let work = move || {
                let blocks = touch(n as u32 % arenas);
                ready.wait();
                over.wait();
                blocks.into_iter().for_each(free);
            };
            thread::Builder::new().stack_size(64 << 10).spawn(work).expect("a thread")
        })
        .collect();
    all.0.wait();
    epochs(threads);
    all.1.wait();
    parked.into_iter().for_each(|thread| thread.join().expect("a thread"));
    reads();
}

/// Allocates blocks of twenty size classes, from the thread's cache and from one arena.
fn touch(arena: u32) -> Vec<usize> {
    let sizes = (0..20).map(|n| 16 << (n % 10) | n);
    let pair = |size| [raw::malloc(size), raw::allocate(size, Flags::NONE.arena(arena))];
    sizes.flat_map(pair).map(|block| block.expose_provenance()).collect()
}

fn free(block: usize) {
    // SAFETY: `block` is live and not used any more.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
}

fn epochs(threads: usize) {
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let begin = Instant::now();
            snapshot::refresh();
            begin.elapsed()
        })
        .collect();
    times.sort();
    let arenas = snapshot::current().totals.arenas_open;
    println!(
        "epoch, {arenas} arenas, {threads} threads: median {} µs, best {} µs, worst {} µs",
        times[25].as_micros(),
        times[0].as_micros(),
        times[49].as_micros()
    );
}

fn reads() {
    for name in ["stats.allocated", "stats.arenas.0.bins.3.mutex.num_ops"] {
        let mib = tree::complete(name.as_bytes()).expect(name);
        let rounds = 1_000_000;
        let begin = Instant::now();
        for _ in 0..rounds {
            let entry = Entry::find(std::hint::black_box(mib.as_slice())).expect(name);
            std::hint::black_box(entry.read()).expect(name);
        }
        println!("read by MIB, {name}: {} ns", begin.elapsed().as_nanos() / rounds);
    }
}
