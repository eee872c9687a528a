//! What people on call do over TCP: they read and write keys, make dumps, and fetch kept snapshots.
mod client;

use client::{any, body, directory, get, raw, request, status};
use lumalloc_exporter::Exporter;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

fn post(address: SocketAddr, path: &str, value: &str) -> String {
    let length = format!("Content-Length: {}\r\n\r\n{value}", value.len());
    // The blank line that `request` adds belongs to the next request, which does not come.
    raw(address, &request("POST", path, &address.to_string(), &length))
}

#[test]
fn keys_are_read_written_and_done() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let list = get(address, "/ctl");
    assert!(list.contains("\r\ncontent-type: application/json\r\n"), "{list}");
    assert!(body(&list).contains("\"name\":\"arena.<i>.purge\""));
    assert_eq!(body(&get(address, "/ctl/arenas.page?format=text")), "4096\n");
    let before = get(address, "/ctl/arenas.muzzy_decay_ms?format=text");
    let written = post(address, "/ctl/arenas.muzzy_decay_ms", "2500");
    assert_eq!(status(&written), 200, "{written}");
    assert_eq!(body(&get(address, "/ctl/arenas.muzzy_decay_ms?format=text")), "2500\n");
    let back = post(address, "/ctl/arenas.muzzy_decay_ms?format=text", body(&before));
    assert_eq!(body(&back), body(&before));
    assert_eq!(status(&post(address, "/ctl/arena.4096.purge", "")), 200);
    let refused = post(address, "/ctl/arena.0.destroy", "");
    let reason = "arena.<i>.destroy: it discards blocks that the program may be using\n";
    assert_eq!((status(&refused), body(&refused)), (403, reason));
}

#[test]
fn what_changes_something_is_not_got() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    for (answer, method) in [
        (get(address, "/dump"), "POST"),
        (get(address, "/ctl/arena.0.purge"), "POST"),
        (post(address, "/doctor", ""), "GET"),
        (post(address, "/dumps", ""), "GET"),
        (post(address, "/ctl", ""), "GET"),
    ] {
        assert_eq!(status(&answer), 405, "{answer}");
        assert!(answer.contains(&format!("\r\nallow: {method}\r\n")), "{answer}");
    }
}

/// While no snapshot can be taken, one dump waits. The other is refused at once.
#[test]
fn two_dumps_at_once_are_one() {
    static RELEASE: AtomicBool = AtomicBool::new(false);
    static HELD: AtomicBool = AtomicBool::new(false);
    let place = directory("two-dumps");
    let exporter = Exporter::builder().listen(any()).dump_directory(&place).start().unwrap();
    let address = exporter.address().unwrap();
    let holder = thread::spawn(|| {
        lumalloc_namespace::snapshot::read(|_| {
            HELD.store(true, Relaxed);
            while !RELEASE.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
    });
    client::wait_until("the lock is held", || HELD.load(Relaxed));
    let (answers, answered) = channel();
    for _ in 0..2 {
        let answers = answers.clone();
        thread::spawn(move || answers.send(post(address, "/dump", "")));
    }
    let refused = answered.recv().unwrap();
    RELEASE.store(true, Relaxed);
    assert_eq!(
        (status(&refused), body(&refused)),
        (409, "another dump or profile is being written: try again\n")
    );
    let done = answered.recv().unwrap();
    assert_eq!(status(&done), 200, "{done}");
    holder.join().unwrap();
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 2, "one text, one JSON");
    assert_eq!(status(&post(address, "/dump", "")), 200, "and the next one may");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_peak_is_kept_and_fetched() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    get(address, "/stats");
    let block = vec![1u8; 64 << 20];
    get(address, "/stats");
    let kept = get(address, "/dumps");
    drop(block);
    let kept: serde_json::Value = serde_json::from_str(body(&kept)).unwrap();
    let newest = kept["dumps"].as_array().unwrap().last().expect("a peak");
    let one = get(address, newest["path"].as_str().unwrap());
    let snapshot: lumalloc_ctl::Snapshot = serde_json::from_str(body(&one)).unwrap();
    assert!(snapshot.totals.allocated >= 64 << 20);
}
