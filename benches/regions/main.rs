//! One workload on one heap: `lumalloc-bench-regions WORKLOAD HEAP OPERATIONS`.
//!
//! Prints `result OPERATIONS WALL_NS PEAK_RSS_KIB`. The program's own vectors, and the segments of
//! regions over the discipline `Heap`, come from lumalloc in every run.

#[allow(unsafe_code)]
mod heaps;
#[allow(unsafe_code)]
mod handles;
mod workloads;

use handles::{Handle, Vmbest, Vmlast, Vmpool};
use heaps::{Blocks, Regional};
use lumalloc::Lumalloc;
use lumalloc_region::{Best, Heap, Last, Pool, System};
use std::alloc::System as C;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static GLOBAL: Lumalloc = Lumalloc;

const USAGE: &str = "usage: lumalloc-bench-regions replace|pairs|build|list|line \
                     c|lumalloc|best-system|last-system|last-heap|pool-system|\
                     vmbest|vmlast|vmpool OPERATIONS";

fn run(workload: &str, heap: &str, operations: usize) -> bool {
    let work = match heap {
        "c" => workloads::named::<Blocks<C>>(workload),
        "lumalloc" => workloads::named::<Blocks<Lumalloc>>(workload),
        "best-system" => workloads::named::<Regional<Best, System>>(workload),
        "last-system" => workloads::named::<Regional<Last, System>>(workload),
        "last-heap" => workloads::named::<Regional<Last, Heap>>(workload),
        "pool-system" => workloads::named::<Regional<Pool, System>>(workload),
        "vmbest" => workloads::named::<Handle<Vmbest>>(workload),
        "vmlast" => workloads::named::<Handle<Vmlast>>(workload),
        "vmpool" => workloads::named::<Handle<Vmpool>>(workload),
        _ => None,
    };
    work.map(|work| work(operations)).is_some()
}

/// The most memory that the process has had, in KiB.
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [workload, heap, operations] = words.as_slice()
        && let Ok(operations) = operations.parse()
    {
        let begun = Instant::now();
        let is_done = run(workload, heap, operations);
        let time = begun.elapsed().as_nanos();
        if is_done && let Some(peak) = peak_rss() {
            println!("result {operations} {time} {peak}");
            return ExitCode::SUCCESS;
        }
    }
    eprintln!("{USAGE}");
    ExitCode::FAILURE
}
