//! Programs preloaded with `liblumalloc.so` and `liblumalloc_exporter.so`. They serve when they are
//! told to, and if that fails, they run as usual.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lumalloc_tests::run::ending;
use lumalloc_tests::serving::{VARIABLE, ask, free_port, preload, serving, start};
use lumalloc_tests::{Run, cc, liblumalloc_exporter, not_tried, scratch};

/// The output of a run on standard error. The run must have succeeded.
#[track_caller]
fn complaints(run: Run) -> String {
    let output = run.output();
    assert_eq!(ending(output.status), "exit 0");
    String::from_utf8(output.stderr).expect("text")
}

#[track_caller]
fn says(run: Run, expected: &str) {
    let expected = if expected.is_empty() {
        String::new()
    } else {
        format!("<lumalloc>: exporter: {expected}\n")
    };
    assert_eq!(complaints(run), expected);
}

fn symbols(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("nm").args(arguments).arg(liblumalloc_exporter()).output();
    let output = output.expect("nm starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn only_what_stands_before_main_is_exported() {
    let exported = symbols(&["-D", "--defined-only"]);
    let names: Vec<&str> = exported.iter().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(names, ["__libc_start_main"]);
}

#[test]
fn there_is_no_second_allocator_in_it() {
    let all = symbols(&["--demangle"]);
    assert!(all.iter().any(|line| line.contains("lumalloc_exporter::")), "the names were stripped");
    for ours in ["LUMALLOC_CACHE", " lumalloc::", "lumalloc_namespace::snapshot", " T malloc"] {
        let found: Vec<&String> = all.iter().filter(|line| line.contains(ours)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn without_a_wish_nothing_is_started() {
    let program = cc("exporter_fork.c", &[]);
    for wish in [None, Some("")] {
        let run = Run::plain(&program).env("LD_PRELOAD", preload()).args(["threads"]);
        let run = wish.into_iter().fold(run, |run, wish| run.env(VARIABLE, wish));
        assert_eq!(run.stdout(), "1 threads\n");
    }
}

#[test]
fn a_wish_that_cannot_be_read_is_one_line() {
    for (wish, expected) in [
        (
            "9464",
            "LUMALLOC_EXPORTER: \"9464\" is neither ADDRESS:PORT, as 127.0.0.1:9464, nor unix:PATH",
        ),
        (
            "unix:",
            "LUMALLOC_EXPORTER: \"unix:\" is neither ADDRESS:PORT, as 127.0.0.1:9464, nor unix:PATH",
        ),
        (
            "127.0.0.1:9464,tokens:/x",
            "LUMALLOC_EXPORTER: \"tokens:/x\" is none of metrics:ADDRESS:PORT, token:FILE, \
             dumps:DIRECTORY, host:NAME and program:NAME",
        ),
        ("127.0.0.1:9464,", "LUMALLOC_EXPORTER: nothing stands before or behind one of the commas"),
        (
            "127.0.0.1:9464,metrics:0.0.0.0:9464",
            "LUMALLOC_EXPORTER: 127.0.0.1:9464 and metrics:0.0.0.0:9464 are the same port: give \
             metrics another",
        ),
        (
            "127.0.0.1:9464,metrics:here",
            "LUMALLOC_EXPORTER: \"metrics:here\" is none of metrics:ADDRESS:PORT, token:FILE, \
             dumps:DIRECTORY, host:NAME and program:NAME",
        ),
    ] {
        says(serving("/bin/true", wish), expected);
    }
}

#[test]
fn an_address_that_cannot_be_had_is_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its number");
    let expected = format!("cannot listen on {address}: Address already in use (os error 98)");
    says(serving("/bin/true", &address.to_string()), &expected);
    let expected = "cannot listen on 0.0.0.0:9464: what is not a loopback address needs a token \
                    file (token:FILE in LUMALLOC_EXPORTER, token_file of the builder); metrics \
                    alone may be served there without one (metrics:ADDRESS:PORT, metrics_on)";
    says(serving("/bin/true", "0.0.0.0:9464"), expected);
    let expected = "cannot write to the directory for dumps /nonexistent: No such file or directory \
                    (os error 2)";
    says(serving("/bin/true", "127.0.0.1:0,dumps:/nonexistent"), expected);
    let long = format!("unix:/{}", "x".repeat(107));
    let expected =
        format!("cannot listen on {long}: the path has 108 bytes, a socket's at most 107");
    says(serving("/bin/true", &long), &expected);
}

/// The system chooses port 0's, and nobody else knows it.
#[test]
fn a_port_that_the_system_chose_is_told() {
    let said = complaints(serving("/bin/true", "127.0.0.1:0,metrics:127.0.0.1:0"));
    let ports: Vec<u16> = said.split("127.0.0.1:").skip(1).filter_map(port_of).collect();
    let [main, metrics] = ports[..] else { panic!("{said}") };
    let expected = format!(
        "<lumalloc>: exporter: it listens on http://127.0.0.1:{main}/\n\
         <lumalloc>: exporter: it serves metrics on http://127.0.0.1:{metrics}/metrics\n"
    );
    assert_eq!(said, expected);
    assert!(main != 0 && metrics != 0 && main != metrics);
    assert_eq!(complaints(serving("/bin/true", &format!("127.0.0.1:{}", free_port()))), "");
}

fn port_of(text: &str) -> Option<u16> {
    text.split('/').next()?.parse().ok()
}

/// Nobody waits 15 s for an exporter that cannot start.
#[test]
fn too_few_descriptors_are_one_line_at_once() {
    let script = "ulimit -n 8; LD_PRELOAD=$BOTH exec /bin/true";
    let run = Run::plain("/bin/sh").env(VARIABLE, "127.0.0.1:0").env("BOTH", preload());
    let expected = "cannot open what clients are answered with: Too many open files (os error 24)";
    says(run.args(["-c", script]), expected);
}

#[test]
fn another_allocator_is_one_line() {
    let run = Run::plain("/bin/true").env("LD_PRELOAD", liblumalloc_exporter());
    says(
        run.env(VARIABLE, "127.0.0.1:0"),
        "this process does not run on lumalloc: liblumalloc.so must stand first in LD_PRELOAD",
    );
}

#[test]
fn only_the_program_that_is_meant_serves() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let wish = format!("{},program:true", taken.local_addr().expect("its number"));
    assert!(complaints(serving("/bin/true", &wish)).contains("cannot listen on "));
    says(serving("/bin/uname", &wish), "");
}

/// A shell holds the port. The programs that it starts must not complain about that.
#[test]
fn programs_of_one_tree_do_not_complain() {
    let wish = format!("127.0.0.1:{}", free_port());
    says(
        serving("/bin/sh", &wish).args(["-c", "/bin/true; /bin/sh -c '/bin/true; exit'; exit"]),
        "",
    );
}

/// What the shell was told can be read by its user only.
#[test]
fn programs_of_one_tree_with_several_users_do_not_complain() {
    let as_nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let library = liblumalloc_exporter();
    let probe = Run::plain("setpriv").args(as_nobody).args(["cat"]).args([&library]);
    if !probe.output().status.success() {
        not_tried("programs of several users", "only root may change the user");
        return;
    }
    let wish = format!("127.0.0.1:{}", free_port());
    let script = format!("setpriv {} /bin/sh -c '/bin/true; exit'; exit", as_nobody.join(" "));
    says(serving("/bin/sh", &wish).args(["-c", &script]), "");
}

/// A wrapper that hands the variable on does not serve, so somebody else has the port.
#[test]
fn a_taken_port_is_reported_although_a_wrapper_has_the_variable_too() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its number");
    let run = Run::plain("/bin/sh").env(VARIABLE, address.to_string()).env("BOTH", preload());
    let script = "LD_PRELOAD=$BOTH /bin/true; exit";
    let expected = format!("cannot listen on {address}: Address already in use (os error 98)");
    says(run.args(["-c", script]), &expected);
}

/// Whatever the bound on address space denies the exporter, the program begins and ends.
#[test]
fn a_program_begins_although_there_is_no_memory_to_start_the_exporter() {
    let bounds = (20_000..30_000).step_by(50);
    let run = |kib: u32| {
        let script = format!("ulimit -v {kib}; LD_PRELOAD=$BOTH exec /bin/true");
        let run = Run::plain("/bin/sh").env(VARIABLE, "127.0.0.1:0").env("BOTH", preload());
        let output = run.args(["-c", &script]).output();
        assert_eq!(ending(output.status), "exit 0", "{kib} KiB");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said: Vec<String> = thread::scope(|scope| {
        let all: Vec<_> = bounds.map(|kib| scope.spawn(move || run(kib))).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    let is_short = |said: &&String| said.contains("exporter: ") && !said.contains("it listens on ");
    assert!(said.iter().any(|said| is_short(&said)), "memory was short: {said:?}");
}

/// The C library ignores `LD_PRELOAD` for such a program, but not libraries it is linked with.
#[test]
fn a_program_with_more_rights_than_its_caller_serves_nothing() {
    let exporter = liblumalloc_exporter();
    let dir = exporter.parent().expect("a directory").to_str().expect("text");
    let [search, path] = [format!("-L{dir}"), format!("-Wl,-rpath,{dir}")];
    let libraries = ["-l:liblumalloc.so", "-l:liblumalloc_exporter.so"];
    let flags = [&["-Wl,--no-as-needed", &*search, &*path], &libraries[..]].concat();
    let program = cc("exporter_fork.c", &flags);
    let own = scratch("exporter-secure").join("program");
    fs::copy(&program, &own).expect("a copy");
    let run = || Run::plain(&own).env(VARIABLE, "127.0.0.1:0").args(["threads"]).stdout();
    assert_eq!(run(), "3 threads\n");
    if chown(&own, None, Some(65534)).is_err() {
        not_tried("a program with its group's rights", "only root may give it to another group");
        return;
    }
    fs::set_permissions(&own, fs::Permissions::from_mode(0o2755)).expect("the group's rights");
    assert_eq!(run(), "1 threads\n");
}

/// The file of the socket goes with the process that made it, and not with a child of it.
#[test]
fn the_socket_of_a_program_that_has_ended_is_gone() {
    let dir = scratch("exporter-socket");
    let wish = format!("unix:{}/x.sock", dir.display());
    let script = "import os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()\n\
                  print(os.path.exists(sys.argv[1]))";
    let socket = dir.join("x.sock");
    let run = serving("/usr/bin/python3", &wish).args(["-c", script]).args([&socket]);
    assert_eq!(run.stdout(), "True\n");
    assert!(!socket.exists());
}

/// The C library ends the process when the last thread ends, so the exporter's have to end.
#[test]
fn a_program_whose_first_thread_exits_ends_with_its_last_thread() {
    let program = cc("exporter_fork.c", &[]);
    let run = serving(program, "127.0.0.1:0").args(["exit"]);
    assert_eq!(run.stdout(), "first\nlast\n");
}

#[test]
fn a_child_of_fork_serves_nothing_and_the_parent_goes_on() {
    let program = cc("exporter_fork.c", &[]);
    let port = free_port();
    let run = serving(program, &format!("127.0.0.1:{port}")).args(["fork", &port.to_string()]);
    assert_eq!(run.stdout(), "parent serves\nchild serves not\nparent serves\n");
}

/// The exporter answers without memory, and the lack of memory does not end the program.
#[test]
fn without_memory_it_answers_and_the_program_goes_on() {
    let program = cc("exporter_fork.c", &[]);
    let port = free_port();
    let run = serving(program, &format!("127.0.0.1:{port}")).args(["memory", &port.to_string()]);
    assert_eq!(run.stdout(), "first serves\nwithout memory serves\n");
}

/// A fault of the exporter is said in one line, with its place and its reason.
#[test]
fn an_exporter_that_stops_says_why_and_the_program_goes_on() {
    let program = cc("exporter_stopped.c", &["-rdynamic"]);
    let port = free_port();
    let run = serving(program, &format!("127.0.0.1:{port}")).args([&port.to_string()]);
    let text = run.stdout();
    let (said, rest) = text.split_once('\n').expect("two lines");
    let (place, why) = said.split_once(".rs:").expect("a place");
    assert!(place.starts_with("<lumalloc>: exporter: it stopped at "), "{text}");
    let (line, why) = why.split_once(": ").expect("a reason");
    assert!(line.parse::<u32>().is_ok(), "{text}");
    let (first, last) = ("unexpected error when polling the I/O driver: ", "; the program goes on");
    assert!(why.starts_with(first) && why.ends_with(last), "{text}");
    assert_eq!(rest, "went on\n");
}

#[test]
fn a_c_library_that_starts_no_program_is_said() {
    let mut preloaded = cc("exporter_no_start.c", &["-shared", "-fPIC"]).into_os_string();
    preloaded.push(":");
    preloaded.push(liblumalloc_exporter());
    let output = Run::plain("/bin/true").env("LD_PRELOAD", preloaded).output();
    let says = "<lumalloc>: exporter: the C library has no __libc_start_main\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), says);
    assert_eq!(ending(output.status), "exit 127");
}

/// The exporter and the program have descriptors of their own.
#[test]
fn a_program_that_closes_all_files_is_served_on() {
    let program = cc("exporter_fork.c", &[]);
    let port = free_port();
    let run = serving(program, &format!("127.0.0.1:{port}")).args(["close", &port.to_string()]);
    let expected = "the first is 3\nclosed serves\nnothing was written to the program's files\n";
    assert_eq!(run.stdout(), expected);
}

/// The allocator of Python is read, changed and printed over a unix socket.
#[test]
fn python_serves_its_allocator() {
    let dir = scratch("exporter-python");
    let wish = format!("unix:{}/%p.sock,dumps:{}", dir.display(), dir.display());
    let script = "import sys\nkept = [bytes(1000) for _ in range(20000)]\nprint('x', flush=True)\n\
                  sys.stdin.read()";
    let python = start("/usr/bin/python3", &["-c", script], &wish, "");
    let socket = dir.join(format!("{}.sock", python.0.id()));
    let ask = |request: &str| ask(UnixStream::connect(&socket).expect("it listens"), request);
    let text = |request: &str| ask(request).split_once("\r\n\r\n").expect("a body").1.to_owned();
    let allocated: usize =
        text("GET /ctl/stats.allocated?format=text").trim().parse().expect("a number");
    assert!(allocated > 20_000_000, "python's own blocks are seen: {allocated}");
    assert!(text("GET /stats").starts_with("___ Begin lumalloc statistics ___\n"));
    assert!(text("GET /metrics").contains("\nlumalloc_allocated_bytes "));
    assert!(text("GET /map?most=1").starts_with("{\"page\":4096,\"runs\":[\n{\"base\":\"0x"));
    assert!(text("GET /map?at=0x1000").contains("\"run\":null"));
    assert_eq!(text("GET /ctl/arenas.dirty_decay_ms?format=text"), "10000\n");
    assert!(ask("POST /ctl/arena.4096.purge").starts_with("HTTP/1.1 200 OK\r\n"));
    let dump = text("POST /dump");
    assert!(dump.contains(".json\""), "{dump}");
    assert!(!text("GET /doctor").is_empty());
    let snapshots = fs::read_dir(&dir).expect("the directory").filter_map(Result::ok);
    let jsons = snapshots.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
    assert_eq!(jsons.count(), 1);
    drop(python);
    fs::remove_dir_all(&dir).expect("the scratch directory goes");
}

/// Returns the status of an answer to a client that asks by this name, as from another machine.
fn status_by(host: &str, port: u16) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}:9464\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the request leaves");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

/// redis under its benchmark is scraped all the time.
#[test]
fn redis_is_scraped_under_load() {
    let (port, metrics) = (free_port().to_string(), free_port());
    let redis = start(
        "redis-server",
        &["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        &format!("127.0.0.1:{metrics},host:cache,host:redis"),
        "",
    );
    assert_eq!(["redis", "cache", "other"].map(|host| status_by(host, metrics)), [200, 200, 403]);
    let scrape =
        || ask(TcpStream::connect(("127.0.0.1", metrics)).expect("it listens"), "GET /metrics");
    let allocated = |answer: &str| -> f64 {
        let line = answer.lines().find_map(|line| line.strip_prefix("lumalloc_allocated_bytes "));
        line.and_then(|number| number.parse().ok()).expect("the family")
    };
    let before = allocated(&scrape());
    // redis prints before it listens.
    let hang = Instant::now() + Duration::from_secs(300);
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < hang, "redis does not listen");
        thread::sleep(Duration::from_millis(5));
    }
    let mut benchmark = Command::new("redis-benchmark")
        .args(["-p", &port, "-t", "set,lpush", "-n", "60000", "-r", "50000", "-d", "500", "-q"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("redis-benchmark starts");
    let mut scrapes = 0;
    let status = loop {
        let answer = scrape();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        scrapes += 1;
        if let Some(status) = benchmark.try_wait().expect("it can be waited for") {
            break status;
        }
    };
    assert!(status.success(), "{status}");
    assert!(scrapes > 3, "{scrapes} scrapes");
    let after = allocated(&scrape());
    assert!(after > before + 10e6, "what redis stores is seen: {before} and {after}");
    drop(redis);
}
