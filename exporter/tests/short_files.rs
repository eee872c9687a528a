//! A process that may write only short files (`ulimit -f`). The system's limit counts for the files
//! in memory that profiles are written to. Each test runs in a process of its own.
#![allow(unsafe_code, reason = "limits of the process")]
mod client;

use client::{any, body, get, raw, request, status};
use lumalloc::control::profile;
use lumalloc_exporter::Exporter;
use std::net::SocketAddr;
use std::process::Command;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const CHILD: &str = "LUMALLOC_TEST_SHORT_FILES";

/// Runs a test in a separate process with these options.
fn alone(options: &str, name: &str, test: fn(SocketAddr)) {
    if std::env::var_os(CHILD).is_some() {
        let builder = Exporter::builder().listen(any()).dump_directory(std::env::temp_dir());
        let exporter = builder.start().unwrap();
        test(exporter.address().unwrap());
        return println!("it was run");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let done = command.env(CHILD, "1").env("LUMALLOC_CONF", options).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("it was run\n"), "{:?}\n{errors}", done.status);
}

/// Sets the longest file that the process may write.
fn limit_files(bytes: u64) {
    let bound = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `setrlimit` reads a plain structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const bound) }, 0);
}

#[test]
fn a_profile_may_be_as_long_as_a_file() {
    alone("prof:true", "a_profile_may_be_as_long_as_a_file", |address| {
        assert!(profile::set_active(true));
        limit_files(1 << 20);
        assert_eq!(["/heap", "/flamegraph"].map(|path| status(&get(address, path))), [200, 200]);
        limit_files(10);
        let answer = get(address, "/heap");
        let reason = "the profile has more than 10 bytes, which is the limit of this process for \
                      files (ulimit -f)\n";
        // The standard output of the test may be a file.
        limit_files(libc::RLIM_INFINITY);
        assert_eq!((status(&answer), body(&answer)), (507, reason));
    });
}

/// A profile that is not taken is not too long.
#[test]
fn a_process_without_the_profiler_says_so() {
    alone("prof:false", "a_process_without_the_profiler_says_so", |address| {
        limit_files(10);
        let paths = ["/heap", "/debug/pprof/heap", "/flamegraph"];
        let answers = paths.map(|path| get(address, path));
        // The statistics are longer than the limit.
        let dump = raw(address, &request("POST", "/dump", "localhost", "Content-Length: 0\r\n"));
        limit_files(libc::RLIM_INFINITY);
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        assert_eq!(
            answers.each_ref().map(|answer| (status(answer), body(answer))),
            [(404, off); 3]
        );
        let reason = body(&dump);
        let is_told = reason.starts_with("cannot write /")
            && reason.ends_with(".txt: File too large (os error 27)\n");
        assert!(status(&dump) == 500 && is_told, "{dump}");
    });
}
