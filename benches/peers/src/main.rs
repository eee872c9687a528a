//! The Rust workloads on one allocator: `lumalloc-bench-peer WORKLOAD SCALE [IDLE]`.
//!
//! Which allocator is decided by the feature the binary was built with. The output is that of the C
//! program in `benches/c`: a line `origin NAME`, then `result OPERATIONS WALL_NS`; with IDLE, a
//! number of seconds, before it `idle RSS_BEFORE RSS_AFTER` in KiB.

mod allocator;
mod rest;
mod workload;

use std::process::ExitCode;

fn run(name: &str, scale: &str) -> Result<(), String> {
    let scale: u64 = scale.parse().map_err(|_| "the scale is no number".to_owned())?;
    if !(1..=100).contains(&scale) {
        return Err("the scale is a percentage, 1 to 100".to_owned());
    }
    let workload = workload::all()
        .into_iter()
        .find(|workload| workload.name() == name)
        .ok_or_else(|| format!("no workload called {name}"))?;
    println!("origin {}", allocator::NAME);
    let span = workload::measure(workload, scale);
    if let Some((before, after)) = rest::taken() {
        println!("idle {before} {after}");
    }
    println!("result {} {}", span.operations, span.wall_ns);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [name, scale] => run(name, scale),
        [name, scale, idle] => rest::wanted(idle).and_then(|()| run(name, scale)),
        _ => Err("usage: lumalloc-bench-peer WORKLOAD SCALE [IDLE]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("lumalloc-bench-peer: {message}");
            ExitCode::FAILURE
        }
    }
}
