//! What the exporter's arena holds when no client asks any more. Pages are measured, not time.
mod client;

use client::{any, body, get, raw, request, status};
use lumalloc::control::{arenas, narenas};
use lumalloc_exporter::Exporter;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Bytes of pages, in use or not, that the exporter may hold in a process with few arenas.
const QUIET: usize = 2 << 20;
/// Arenas of a process with many.
const ARENAS: usize = 100;
/// What the exporter may hold for each further arena, because each kept snapshot lists all arenas.
const BYTES_OF_ARENA: usize = 5 << 10;

fn own_arena() -> u32 {
    let is_own =
        |arena: &u32| arenas::name(*arena).is_some_and(|name| name.starts_with(b"exporter\0"));
    (0..narenas()).find(is_own).expect("the exporter's arena")
}

/// Waits until the exporter has given back what `after` needed. The memory of a connection is given
/// back a moment after the client has seen its end.
#[track_caller]
fn settles(arena: u32, most: usize, after: &str) {
    let begin = Instant::now();
    loop {
        let held = arenas::held(arena).unwrap();
        if held <= most {
            return;
        }
        assert!(begin.elapsed() < client::LONG, "{held} bytes are held after {after}");
        std::thread::yield_now();
    }
}

fn ask_all(address: SocketAddr, most: usize) {
    for path in [
        "/",
        "/metrics",
        "/metrics?collect[]=bins,arenas",
        "/ctl",
        "/ctl/stats",
        "/stats",
        "/stats?format=json",
        "/doctor",
        "/dumps",
        "/map",
        "/map?at=0x1000",
        "/-/healthy",
        "/-/ready",
        "/nothing",
    ] {
        let answer = get(address, path);
        assert_eq!(status(&answer), if path == "/nothing" { 404 } else { 200 }, "{path}");
        assert!(!body(&answer).is_empty(), "{path}");
        drop(answer);
        settles(own_arena(), most, path);
    }
    let purge = request("POST", "/ctl/arena.4096.purge", "localhost", "Content-Length: 0\r\n");
    assert_eq!(status(&raw(address, &purge)), 200);
    settles(own_arena(), most, "a purge");
}

fn ask_at_once(address: SocketAddr) {
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let idle = TcpStream::connect(address).unwrap();
                for path in ["/metrics?collect[]=bins,arenas", "/stats", "/stats?format=json"] {
                    assert!([200, 503].contains(&status(&get(address, path))), "{path}");
                }
                drop(idle);
            });
        }
    });
}

#[test]
fn the_exporter_holds_little_when_nobody_asks() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    assert_eq!(status(&get(address, "/-/healthy")), 200);
    settles(own_arena(), QUIET, "its start");
    ask_all(address, QUIET);

    ask_at_once(address);
    settles(own_arena(), QUIET, "many at once");
    ask_all(address, QUIET);

    // Long answers, and a peak of which a snapshot is kept.
    let held = vec![1u8; 64 << 20];
    let arenas: Vec<u32> = (0..ARENAS).map(|_| arenas::create().unwrap()).collect();
    ask_at_once(address);
    let most = QUIET + ARENAS * BYTES_OF_ARENA;
    settles(own_arena(), most, "long answers, many at once");
    ask_all(address, most);
    drop((held, arenas));
}
