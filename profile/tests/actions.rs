//! A Rust program whose global allocator is lumalloc does what the options ask for.

use std::ffi::CString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Set in the processes that these tests start.
const PROGRAM: &str = "LUMALLOC_TEST_PROGRAM";

/// The program that is run with options. It is a test only so that this file has one executable.
#[test]
fn the_program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    lumalloc_profile::actions::start();
    let kept: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 100_000]).collect();
    let freed: Vec<Vec<u8>> = (0..64).map(|_| vec![2; 100_000]).collect();
    drop(freed);
    std::mem::forget(kept);
    std::process::exit(0);
}

/// Logs that one thread begins and another ends.
const LOGS: usize = 3000;

/// As [`the_program`]: begins and ends logs. Returns early where it is not that program.
#[test]
fn the_program_of_logs() {
    use lumalloc_profile::log::{self, Refusal};
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let begins = std::thread::spawn(|| {
        for number in 0..LOGS {
            let name = CString::new(format!("log.{number}")).expect("a name");
            while log::start(Some(&name)) == Err(Refusal::Running) {
                std::thread::yield_now();
            }
        }
    });
    let mut ended = 0;
    loop {
        let are_begun = begins.is_finished();
        match log::stop() {
            Ok(()) => ended += 1,
            Err(Refusal::Stopped) if are_begun => break,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Stopped);
                std::thread::yield_now();
            }
        }
    }
    begins.join().expect("no panic");
    assert_eq!(ended, LOGS);
}

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("lumalloc-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    /// Runs the program there.
    fn run(&self, options: &str) -> Output {
        self.command(options).output().expect("the program")
    }

    fn command(&self, options: &str) -> Command {
        self.command_of("the_program", options)
    }

    fn command_of(&self, program: &str, options: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this file"));
        command.args(["--exact", program]).env(PROGRAM, "1").env("LUMALLOC_CONF", options);
        command.current_dir(&self.0);
        command
    }

    /// Runs the program there, with a prefix that no file can have. Returns the prefix, the number
    /// of the process and what it said.
    fn refused<'a>(&self, options: &str, prefix: &'a str) -> (&'a str, u32, String) {
        let program = self
            .command(&format!("{options},prof_prefix:{prefix}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let number = program.id();
        let output = program.wait_with_output().expect("its end");
        assert!(output.status.success(), "{options}");
        (prefix, number, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The names of the files, with `PID` for the number of the process.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("a file").file_name().into_string().expect("text"))
            .map(|name| {
                let parts = name.split('.').enumerate();
                let part = |(index, part): (usize, &str)| {
                    let is_pid = index == 1 && part.bytes().all(|byte| byte.is_ascii_digit());
                    if is_pid { "PID".to_owned() } else { part.to_owned() }
                };
                parts.map(part).collect::<Vec<_>>().join(".")
            })
            .collect();
        names.sort_unstable();
        names
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_log_that_ends_as_soon_as_it_has_begun_has_its_own_file() {
    let directory = Directory::new("logs");
    let output = directory.command_of("the_program_of_logs", "prof:true").output();
    let output = output.expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(fs::read_dir(directory.path()).expect("the directory").count(), LOGS);
}

#[test]
fn files_are_written_when_the_options_say_so() {
    for (options, expected) in [
        ("prof:true", &[][..]),
        ("prof:true,prof_final:true", &["jeprof.PID.0.f.heap"][..]),
        ("prof:true,lg_prof_interval:23", &["jeprof.PID.0.i0.heap"]),
        ("prof:true,prof_log:true", &["jeprof.PID.0.json"]),
        ("mprof:true", &["mprof.data"]),
        ("monitor:true", &["jeprof.PID.0.events"]),
    ] {
        let directory = Directory::new("actions-files");
        let output = directory.run(options);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{options}: {errors}");
        assert_eq!(directory.names(), expected, "{options}");
        for entry in fs::read_dir(directory.path()).expect("the directory") {
            let length = entry.expect("a file").metadata().expect("its size").len();
            assert!(length > 100, "{options}: {length}");
        }
    }
}

#[test]
fn a_profile_is_written_at_each_maximum() {
    let directory = Directory::new("actions-maxima");
    assert!(directory.run("prof:true,prof_gdump:true").status.success());
    let names = directory.names();
    assert!(names.iter().any(|name| name == "jeprof.PID.0.u0.heap"), "{names:?}");
}

#[test]
fn what_is_still_allocated_fails_the_program_if_that_is_asked_for() {
    let directory = Directory::new("actions-leaks");
    let warning = "<lumalloc>: prof_leak_error is set without prof_final: no profile will tell \
                   what leaked\n";
    for (options, code) in [("prof_leak:true", 0), ("prof_leak_error:true", 1)] {
        let output = directory.run(&format!("{options},prof:true,lg_prof_sample:0"));
        assert_eq!(output.status.code(), Some(code), "{options}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let report = errors.strip_prefix(if code == 1 { warning } else { "" }).unwrap_or_default();
        assert!(report.starts_with("<lumalloc>: Leak approximation summary: ~"), "{errors}");
        let last = "<lumalloc>: Exiting with error code because memory leaks were detected\n";
        assert_eq!(errors.ends_with(last), code == 1, "{errors}");
    }
    assert_eq!(directory.names(), [""; 0]);
}

/// The program is not told so if it writes a profile at its exit.
#[test]
fn an_error_for_leaks_without_a_profile_is_a_bad_option() {
    let directory = Directory::new("actions-no-profile");
    let output = directory.run("prof_leak_error:true,abort_conf:true");
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = "<lumalloc>: prof_leak_error is set without prof_final: no profile will tell \
                    what leaked\n\
                    <lumalloc>: Abort (abort_conf:true) on invalid conf value (see above).\n";
    assert_eq!((output.status.signal(), errors.as_ref()), (Some(libc::SIGABRT), expected));
    let output =
        directory.run("prof_leak_error:true,prof_final:true,abort_conf:true,lg_prof_sample:0");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.contains("prof_final")), (Some(1), false), "{errors}");
}

#[test]
fn what_cannot_be_written_is_said() {
    let directory = Directory::new("actions-failures");
    for (options, what, end) in [
        ("prof:true,prof_final:true", "the profile at exit", "0.f.heap"),
        ("prof:true,lg_prof_interval:23", "a profile", "0.i0.heap"),
        // Some ten profiles, of which the first one is told.
        ("prof:true,lg_prof_interval:20", "a profile", "0.i0.heap"),
        ("prof:true,prof_log:true", "the log of samples", "0.json"),
        ("monitor:true", "the file of the heap monitor", "0.events"),
    ] {
        let (prefix, number, errors) = directory.refused(options, "/nowhere/at/all");
        let file = format!("{prefix}.{number}.{end}");
        let told = format!("{what} could not be written to {file}: no such file or directory");
        assert_eq!(errors, format!("<lumalloc>: {told}\n"), "{options}");
    }
    for (options, prefix, line) in [
        ("prof_log:true", "x", "no log of samples is kept: is there prof:true?"),
        ("monitor:true", "", "the heap monitor has no name for its file: see prof_prefix"),
    ] {
        let errors = directory.refused(options, prefix).2;
        assert_eq!(errors, format!("<lumalloc>: {line}\n"), "{options}");
    }
}
