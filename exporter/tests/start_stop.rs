//! Exporters start and stop, many at a time. No descriptor, thread or arena is left.
mod client;

use client::{any, get, status};
use lumalloc::control::{arenas, narenas};
use lumalloc_exporter::Exporter;
use std::collections::BTreeMap;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const THREADS: usize = 8;
const ROUNDS: usize = 25;

/// Counts the descriptors by kind.
fn descriptors() -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if let Ok(to) = std::fs::read_link(entry.path()) {
            let kind = to.to_string_lossy().split(':').next().unwrap().to_string();
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    kinds
}

/// Counts the threads of exporters. A thread that was joined may still be in the system's list.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks.filter(|task| name(task).is_ok_and(|name| name.starts_with("lumalloc-"))).count()
}

/// Waits until no thread of an exporter runs.
fn none_runs() {
    client::wait_until("no thread is left", || threads() == 0);
}

fn arenas_named_exporter() -> usize {
    let named =
        |arena: &u32| arenas::name(*arena).is_some_and(|name| name.starts_with(b"exporter\0"));
    (0..narenas()).filter(named).count()
}

fn once(round: usize) {
    let exporter = Exporter::builder().listen(any()).metrics_on(any()).start().unwrap();
    // Some exporters are asked, others are stopped at once.
    if round.is_multiple_of(3) {
        assert_eq!(status(&get(exporter.address().unwrap(), "/stats")), 200);
    }
    if round % 3 == 1 {
        let _open = std::net::TcpStream::connect(exporter.metrics_address().unwrap()).unwrap();
    }
}

#[test]
fn nothing_is_left_of_two_hundred() {
    once(0);
    none_runs();
    let before = descriptors();
    std::thread::scope(|all| {
        for _ in 0..THREADS {
            all.spawn(|| (0..ROUNDS).for_each(once));
        }
    });
    assert_eq!(descriptors(), before);
    none_runs();
    assert_eq!(arenas_named_exporter(), 1);
}
