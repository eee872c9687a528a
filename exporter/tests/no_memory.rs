//! A process that has no memory left: at its own limit, from which the exporter is exempt, and at
//! the limit of the system, where the exporter answers from its reserve. The exporter never ends
//! the process.
#![allow(unsafe_code, reason = "limits of the process")]
mod client;

use client::any;
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use lumalloc::control::{arenas, limits, profile, thread};
use lumalloc_ctl::Error;
use lumalloc_exporter::Exporter;
use lumalloc_exporter::namespace::{Linked, Namespace};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Allocates ever smaller blocks until no memory is left.
fn use_up() -> Vec<Vec<u8>> {
    let mut all = Vec::with_capacity(1 << 16);
    let mut size = 64 << 20;
    while size >= 4096 {
        let mut block = Vec::<u8>::new();
        if all.len() == all.capacity() || block.try_reserve_exact(size).is_err() {
            size /= 2;
        } else {
            all.push(block);
        }
    }
    all
}

const HEAD: &str = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";

/// Returns the status of an answer, which is read to its end, or 0 if the connection was closed.
/// Takes no memory of the heap.
fn get(address: SocketAddr, path: &str) -> u16 {
    ask(address, &["GET ", path, HEAD, "\r\n"], &mut [0; 4096]).0
}

/// Posts a value of one digit or seven. Returns the status and the body. Takes no heap memory.
fn post<'a>(
    address: SocketAddr,
    path: &str,
    value: &str,
    buffer: &'a mut [u8; 4096],
) -> (u16, &'a str) {
    let length = match value.len() {
        1 => "Content-Length: 1\r\n\r\n",
        7 => "Content-Length: 7\r\n\r\n",
        other => panic!("{other} digits"),
    };
    let (status, text) = ask(address, &["POST ", path, HEAD, length, value], buffer);
    (status, client::body(text))
}

/// Returns the status of an answer and the beginning of its text.
fn ask<'a>(address: SocketAddr, parts: &[&str], buffer: &'a mut [u8; 4096]) -> (u16, &'a str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(client::LONG)).unwrap();
    for part in parts {
        let _ = stream.write_all(part.as_bytes());
    }
    let mut used = 0;
    while let Ok(count @ 1..) = stream.read(&mut buffer[used..]) {
        used += count;
        if used == buffer.len() {
            // The rest of a long answer.
            let mut rest = [0; 4096];
            while let Ok(1..) = stream.read(&mut rest) {}
        }
    }
    let text = std::str::from_utf8(&buffer[..used]).unwrap_or_default();
    (if used == 0 { 0 } else { client::status(text) }, text)
}

fn healthy(address: SocketAddr) -> u16 {
    get(address, "/-/healthy")
}

/// Asks for everything, many times, with idle connections open. Returns how many requests were
/// answered and refused. Health is always answered.
fn besiege(address: SocketAddr) -> (usize, usize) {
    let (mut answered, mut refused) = (0, 0);
    let idle: [_; 100] = std::array::from_fn(|_| TcpStream::connect(address));
    for _ in 0..20 {
        assert_eq!(healthy(address), 200);
        for path in ["/stats", "/stats?format=json", "/nothing"] {
            match get(address, path) {
                200 | 404 => answered += 1,
                503 => refused += 1,
                other => panic!("{path}: {other}"),
            }
        }
    }
    assert_eq!(healthy(address), 200);
    drop(idle);
    (answered, refused)
}

const CHILD: &str = "LUMALLOC_TEST_NO_MEMORY";

/// Runs a test in a separate process with the profiler, where no other test needs memory.
fn alone(name: &str, test: fn(SocketAddr)) {
    alone_with("prof:true", name, test);
}

/// As [`alone`], with these options.
fn alone_with(options: &str, name: &str, test: fn(SocketAddr)) {
    if std::env::var_os(CHILD).is_some() {
        let exporter = Exporter::builder().listen(any()).start().unwrap();
        let address = exporter.address().unwrap();
        assert_eq!(get(address, "/stats"), 200);
        return test(address);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").env("LUMALLOC_CONF", options);
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}\n{errors}", done.status);
    assert!(errors.contains("besieged"), "{errors}");
}

/// Returns the arena of the exporter.
fn own_arena() -> u32 {
    let is_own =
        |arena: &u32| arenas::name(*arena).is_some_and(|name| name.starts_with(b"exporter\0"));
    (0..lumalloc::control::narenas()).find(is_own).unwrap()
}

/// The exporter is exempt from the limit.
#[test]
fn at_the_hard_limit_all_is_answered() {
    alone("at_the_hard_limit_all_is_answered", |address| {
        limits::set_hard(limits::held());
        let (answered, refused) = besiege(address);
        limits::set_hard(0);
        eprintln!("besieged: {answered} answered, {refused} refused");
        assert_eq!((answered, refused), (60, 0));
    });
}

/// A client that sets too low a limit can see so, and undo it.
#[test]
fn a_limit_below_what_is_held_is_forced_and_undone_by_http() {
    alone("a_limit_below_what_is_held_is_forced_and_undone_by_http", |address| {
        let held = vec![1u8; 32 << 20];
        let buffer = &mut [0; 4096];
        let (status, text) = post(address, "/ctl/limit.hard", "1000000", buffer);
        let told = text
            .strip_prefix("limit.hard: 1000000 bytes are refused: ")
            .and_then(|rest| {
                rest.strip_suffix(
                    " are held now (limit.held), and what needs new pages would fail (EBUSY); \
                     ?force=1 writes it all the same\n",
                )
            })
            .and_then(|number| number.parse::<usize>().ok());
        assert!(status == 409 && told.is_some_and(|told| told > held.len()), "{status} {text}");
        assert_eq!(limits::hard(), 0);

        assert_eq!(post(address, "/ctl/limit.hard?force=1", "1000000", buffer).0, 200);
        assert_eq!(limits::hard(), 1_000_000);
        let mut more = Vec::<u8>::new();
        assert!(more.try_reserve_exact(32 << 20).is_err());
        for path in ["/", "/metrics", "/stats", "/ctl", "/doctor", "/-/ready"] {
            assert_eq!(get(address, path), 200, "{path}");
        }
        // A still lower limit needs force. To have no limit does not.
        assert_eq!(post(address, "/ctl/limit.hard", "5", buffer).0, 409);
        assert_eq!(post(address, "/ctl/limit.hard?force=0", "5", buffer).0, 409);
        assert_eq!(post(address, "/ctl/limit.hard", "0", buffer).0, 200);
        assert_eq!(limits::hard(), 0);
        assert!(more.try_reserve_exact(32 << 20).is_ok());
        eprintln!("besieged: all answered");
    });
}

/// The test sets a limit of the exporter's own arena, which the exporter refuses to set.
#[test]
fn readiness_is_memory_for_other_answers() {
    alone("readiness_is_memory_for_other_answers", |address| {
        let own = own_arena();
        assert_eq!(arenas::is_limit_exempt(own), Some(true));
        let buffer = &mut [0; 4096];
        let path = format!("/ctl/arena.{own}.limit");
        let reason = "arena.<i>.limit: it is the exporter's own arena, which must go on when others \
                      are at a limit\n";
        assert_eq!(post(address, &path, "1000000", buffer), (403, reason));

        // Enough for connections, but less than a job may need.
        assert!(arenas::set_limit(own, 4 << 20));
        let (status, text) = ask(address, &["GET ", "/-/ready", HEAD, "\r\n"], buffer);
        let reason = "lumalloc: not ready: there is no memory for other answers\n";
        assert_eq!(
            (status, client::body(text)),
            (503, reason),
            "also before anything is asked for"
        );
        assert_eq!((get(address, "/metrics"), healthy(address)), (503, 200));
        // Enough for most answers, but less than the names of this program's functions need.
        assert!(arenas::set_limit(own, 7 << 20));
        let function = (healthy as fn(SocketAddr) -> u16 as *const ()).addr();
        assert_eq!(get(address, &format!("/debug/pprof/symbol?{function:#x}")), 503);
        assert_eq!(get(address, "/map?most=50000"), 503);
        assert_eq!((get(address, "/stats"), healthy(address)), (200, 200));
        assert!(arenas::set_limit(own, 0));
        assert_eq!(get(address, &format!("/debug/pprof/symbol?{function:#x}")), 200);
        assert_eq!(get(address, "/map?most=50000"), 200);
        assert_eq!(get(address, "/-/ready"), 200);
        eprintln!("besieged: all answered");
    });
}

/// It is answered on the thread of the server that has the routes.
#[test]
fn readiness_of_a_service_takes_no_memory_of_the_program() {
    alone("readiness_of_a_service_takes_no_memory_of_the_program", |_| {
        let service = Exporter::builder().service().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ready = || {
            let request = Request::get("/-/ready").body(Empty::<Bytes>::new()).unwrap();
            runtime.block_on(hyper::service::Service::call(&service, request)).unwrap().status()
        };
        assert_eq!(ready(), 200);
        let own = own_arena();
        // The exporter has enough, and the program less than a job may need.
        assert!(arenas::set_limit(own, 1 << 30));
        limits::set_hard(limits::held() + (1 << 20));
        let before = limits::hard_reached();
        let status = ready();
        let reached = limits::hard_reached() - before;
        limits::set_hard(0);
        assert_eq!((status.as_u16(), reached), (200, 0));
        eprintln!("besieged: all answered");
    });
}

/// A part for each arena makes an answer long. What the text needs is known before it begins, and
/// it is also known while it grows.
#[test]
fn long_answers_of_many_arenas_are_refused_without_memory() {
    alone("long_answers_of_many_arenas_are_refused_without_memory", |address| {
        let own = own_arena();
        let small = arenas::create().unwrap();
        assert!((0..60).all(|_| arenas::create().is_some()));
        // Enough for the least that a job may need.
        assert!(arenas::set_limit(own, 8 << 20));
        let long = ["/stats?format=json", "/ctl/stats", "/ctl/stats.arenas?format=text"];
        for path in long {
            assert_eq!((get(address, path), healthy(address)), (503, 200), "{path}");
        }
        for path in ["/ctl/opt", "/stats?format=json&opts=a"] {
            assert_eq!(get(address, path), 200, "{path}");
        }
        assert!(arenas::set_limit(own, 0));
        for path in long {
            let mut buffer = [0; 4096];
            let (status, text) = ask(address, &["GET ", path, HEAD, "\r\n"], &mut buffer);
            assert_eq!(status, 200, "{path}: {text}");
        }
        let printed = std::thread::spawn(move || {
            thread::set_arena(small).unwrap();
            assert!(arenas::set_limit(small, 1 << 20));
            let namespace: &dyn Namespace = &Linked;
            let printed = namespace.print(c"J").map(|text| text.len());
            assert!(arenas::set_limit(small, 0));
            (printed, namespace.print(c"J").map(|text| text.len() > 1 << 20))
        });
        assert_eq!(printed.join().unwrap(), (Err(Error::NoMemory), Ok(true)));
        eprintln!("besieged: all answered");
    });
}

/// Arenas that may be made, but were not, have no part in an answer.
#[test]
fn answers_ask_for_the_memory_of_arenas_that_exist() {
    alone_with("narenas:4000", "answers_ask_for_the_memory_of_arenas_that_exist", |address| {
        assert!(lumalloc::control::narenas() >= 4000);
        let own = own_arena();
        assert!(arenas::set_limit(own, 32 << 20));
        for path in ["/stats", "/stats?format=json", "/ctl/stats", "/ctl/stats?format=text"] {
            assert_eq!(get(address, path), 200, "{path}");
        }
        assert!(arenas::set_limit(own, 0));
        eprintln!("besieged: all answered");
    });
}

/// Returns a number of bytes of this process, as the system says.
fn bytes(of: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(of)).unwrap();
    line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Asks for what may need much memory. Before that, `/stats` has been answered.
fn ask_for_much(address: SocketAddr) {
    let function = (healthy as fn(SocketAddr) -> u16 as *const ()).addr();
    for _ in 0..3 {
        assert_eq!(get(address, &format!("/debug/pprof/symbol?{function:#x}")), 200);
        assert_eq!(get(address, &format!("/map?at={function:#x}")), 200);
        assert_eq!(get(address, "/map?most=50000"), 200);
        assert_eq!(get(address, "/flamegraph?lines=true"), 200);
    }
    // The memory of one answer is given back before the next one is made.
    assert_eq!(get(address, "/stats"), 200);
}

/// Neither what may be needed nor what was needed stays with the exporter.
#[test]
fn answers_take_no_addresses_for_ever() {
    alone("answers_take_no_addresses_for_ever", |address| {
        assert!(profile::set_active(true));
        let before = bytes("VmSize");
        ask_for_much(address);
        let more = bytes("VmSize").saturating_sub(before);
        assert!(more < 16 << 20, "{more} bytes more are mapped");
        eprintln!("besieged: {more} bytes more are mapped");
    });
}

/// The system does not take the memory of pages that are locked.
#[test]
fn answers_take_no_locked_memory_for_ever() {
    alone("answers_take_no_locked_memory_for_ever", |address| {
        assert!(profile::set_active(true));
        // SAFETY: changes nothing but whether pages stay in memory.
        if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
            return eprintln!("not besieged: the system locks no memory");
        }
        assert_eq!(get(address, "/stats"), 200);
        let (before, most) = (bytes("VmRSS"), bytes("VmHWM"));
        for _ in 0..3 {
            assert_eq!(get(address, "/map?most=50000"), 200);
            assert_eq!(get(address, "/stats"), 200);
        }
        let peak = bytes("VmHWM").saturating_sub(most);
        assert!(peak < 24 << 20, "{peak} bytes were in memory for the question if they can be");
        ask_for_much(address);
        let more = bytes("VmRSS").saturating_sub(before);
        assert!(more < 16 << 20, "{more} bytes more are in memory");
        eprintln!("besieged: {more} bytes more are in memory");
    });
}

/// What an answer may need is not counted as held.
#[test]
fn scrapes_leave_the_program_its_room() {
    alone("scrapes_leave_the_program_its_room", |address| {
        let room = vec![1u8; 1 << 20];
        let arena = arenas::lookup(room.as_ptr()).unwrap();
        drop(room);
        assert!(lumalloc::control::purge(arena));
        limits::set_hard(limits::held() + (4 << 20));
        let scrapes = std::thread::spawn(move || {
            (0..200).all(|_| get(address, "/metrics") == 200 && get(address, "/stats") == 200)
        });
        let mut has_room = true;
        while has_room && !scrapes.is_finished() {
            let mut block = Vec::<u8>::new();
            has_room = block.try_reserve_exact(1 << 20).is_ok();
            std::hint::black_box(&block);
            drop(block);
            lumalloc::control::purge(arena);
        }
        limits::set_hard(0);
        assert!(has_room, "the program had no memory");
        assert!(scrapes.join().unwrap());
        assert_eq!(limits::hard_reached(), 0, "the program had to wait for memory");
        eprintln!("besieged: the program had its room");
    });
}

/// The address space is bounded, and used up.
#[test]
fn without_addresses_health_is_answered() {
    alone("without_addresses_health_is_answered", |address| {
        let bound = libc::rlimit { rlim_cur: 1 << 30, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `setrlimit` reads a plain structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const bound) }, 0);
        let all = use_up();
        assert!(all.len() > 10);
        let (answered, refused) = besiege(address);
        drop(all);
        eprintln!("besieged: {answered} answered, {refused} refused");
    });
}
