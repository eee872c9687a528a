//! Profiles, recordings, long blocks and malloc over regions where the system refuses a call that
//! hardly ever fails: what is said, and which files there are then.

use lumalloc_tests::build::liblumalloc;
use lumalloc_tests::linked::linked_with;
use lumalloc_tests::memory::{gives_huge_pages_for, number};
use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;
use lumalloc_tests::serving::{self, Serving, ask, free_port, preload};
use lumalloc_tests::template::matches;
use lumalloc_tests::{Run, cc, scratch};
use std::ffi::OsString;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is preloaded, after the object that refuses.
fn refusing(library: OsString) -> OsString {
    let mut all = cc("refuse.c", &["-shared", "-fPIC"]).into_os_string();
    all.push(":");
    all.push(library);
    all
}

/// Runs the program `monitor.c` in a directory of its own while all calls of a kind are refused.
/// Returns the directory, how the program ended, and its messages.
fn refused(kind: &str, what: &str, conf: &str) -> (PathBuf, String, String) {
    let directory = scratch(&format!("refused-{kind}-{what}"));
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let file = directory.join("file.events");
    let run = Run::plain(program).args([what.as_ref(), file.as_os_str()]).dir(&directory);
    let run = run.env("LD_PRELOAD", refusing(liblumalloc().into())).env("LUMALLOC_CONF", conf);
    let output = run.env("REFUSE", kind).env("REFUSE_EVERY", "1").output();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (directory, ending(output.status), errors)
}

/// As [`refused`], for a program that succeeds and says nothing. Returns the directory.
fn silently(kind: &str, what: &str) -> PathBuf {
    let (directory, status, errors) = refused(kind, what, "");
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""), "{kind}");
    directory
}

/// The names of the files in a directory, in order.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn lines(directory: &Path, file: &str) -> Vec<String> {
    let (status, text, errors) = command(directory, &["events", file]);
    assert_eq!(status, "exit 0", "{errors}");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Nothing is made untouchable where a page of the system may hold two runs.
#[test]
fn storms_on_pages_of_64_kib() {
    let mut preloaded = cc("pages_of_64_kib.c", &["-shared", "-fPIC"]).into_os_string();
    preloaded.push(":");
    preloaded.push(liblumalloc());
    for conf in ["", "hardened:true", "hardened:true,guarded_sample:100", "dirty_decay_ms:0"] {
        let run = Run::plain(cc("storm.c", &[])).args(["2000", "4", "200"]).called(conf);
        run.env("LD_PRELOAD", &preloaded).env("LUMALLOC_CONF", conf).stdout();
    }
}

/// A thread that sleeps keeps the blocks of its cache where the system cannot tell it that they are
/// to go.
#[test]
fn without_membarrier_no_cache_of_an_idle_thread_is_emptied() {
    let program = |looks| {
        let run = Run::plain(cc("proc_background.c", &[])).args(["asleep", looks]);
        let run = run.env("LD_PRELOAD", refusing(liblumalloc().into()));
        run.env("LUMALLOC_CONF", "background_thread:true,dirty_decay_ms:10")
    };
    let refused = program("100").env("REFUSE", "membarrier").env("REFUSE_EVERY", "1");
    assert_eq!(refused.stdout(), "emptied=0\n");
    assert_eq!(program("3000").stdout(), "emptied=1\n");
    // It is tried again: the system may have had no memory for it.
    let at_first = program("3000").env("REFUSE", "membarrier").env("REFUSE_EVERY", "1");
    assert_eq!(at_first.env("REFUSE_MOST", "2").stdout(), "emptied=1\n");
}

/// Threads cannot be told of another rate then. The profile says so, and so does the reader.
#[test]
fn without_membarrier_a_profile_says_that_threads_follow_a_reset_late() {
    let directory = scratch("refused-reset");
    let run = Run::plain(cc("profile_reset.c", &[])).args(["own.heap"]).dir(&directory);
    let run =
        run.env("LD_PRELOAD", refusing(liblumalloc().into())).env("LUMALLOC_CONF", "prof:true");
    assert_eq!(run.env("REFUSE", "membarrier").env("REFUSE_EVERY", "1").stdout(), "");
    let (status, text, errors) = command(&directory, &["heap", "own.heap"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let said = "each allocation while sampling was on, and after any reset, was counted, except \
                some of the first ones of threads after a reset";
    assert!(text.contains(said), "{text}");
}

#[test]
fn without_membarrier_nothing_is_recorded() {
    let directory = silently("membarrier", "barred");
    assert_eq!(files(&directory), [""; 0]);
}

#[test]
fn the_option_says_that_without_membarrier_nothing_is_recorded() {
    let (directory, status, errors) = refused("membarrier", "work", "monitor:true");
    let expected = "<lumalloc>: the heap monitor could not begin: there is no memory for it, or \
                    the system refuses membarrier\n";
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", expected));
    assert_eq!(files(&directory), [""; 0]);
}

/// A name from the root needs no working directory.
#[test]
fn without_a_working_directory_only_whole_paths_are_recorded_to() {
    let directory = silently("getcwd", "nowhere");
    assert_eq!(files(&directory), ["file.events"]);
    assert!(lines(&directory, "file.events").len() >= 20);
}

#[test]
fn a_recording_that_gets_no_name_is_whole_under_its_unfinished_one() {
    let directory = silently("rename", "unnamed");
    assert_eq!(files(&directory), ["file.events.tmp"]);
    let (status, text, errors) = command(&directory, &["events", "file.events.tmp"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    assert!(text.lines().count() > 20, "{text}");
}

#[test]
fn files_that_get_no_name_at_the_end_are_removed_and_told() {
    for (conf, message) in [
        (
            "prof:true,prof_final:true,lg_prof_sample:0",
            "the profile at exit could not be written to jeprof.{n}.0.f.heap",
        ),
        ("mprof:true", "the data of mprof could not be written to mprof.data"),
        (
            "prof:true,prof_log:true,lg_prof_sample:0",
            "the log of samples could not be written to jeprof.{n}.0.json",
        ),
    ] {
        let (directory, status, errors) = refused("rename", "work", conf);
        let expected = format!("<lumalloc>: {message}: permission denied\n");
        assert!(matches(&expected, &errors), "{conf}: {errors}");
        assert_eq!(status, "exit 0", "{conf}");
        assert_eq!(files(&directory), [""; 0], "{conf}");
    }
    let (directory, status, errors) = refused("rename", "work", "monitor:true,prof_prefix:own");
    let expected = format!(
        "<lumalloc>: the file of the heap monitor is whole, but keeps its name \
         {}/own.{{n}}.0.events.tmp: permission denied\n",
        directory.display()
    );
    assert!(matches(&expected, &errors), "{errors}");
    assert_eq!(status, "exit 0");
    let [name] = &files(&directory)[..] else { panic!("more files than one") };
    assert!(name.starts_with("own.") && name.ends_with(".0.events.tmp"), "{name}");
}

/// What a block begins with cannot be read then, so no type is known.
#[test]
fn old_blocks_that_cannot_be_read_have_no_type() {
    let directory = silently("process_vm_readv", "record");
    let lines = lines(&directory, "file.events");
    let old: Vec<&String> = lines.iter().filter(|line| line.starts_with("0-0\told\t")).collect();
    assert!(old.iter().any(|line| line.contains("\t48\t")), "{old:?}");
    assert!(old.iter().all(|line| line.ends_with("\tnotype\t")), "{old:?}");
}

/// Only the lines that say in which files the callers lie are missing.
#[test]
fn a_misuse_is_told_where_the_list_of_mappings_cannot_be_read() {
    for kind in ["open", "read"] {
        let (_, status, errors) = refused(kind, "twice", "");
        assert_eq!(status, "signal 6", "{kind}");
        let is_double_free = errors.starts_with("<lumalloc>: double free of 0x");
        assert!(is_double_free && errors.contains(" (arena 0); from 0x"), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{kind}: {errors}");
    }
    let (_, _, errors) = refused("rename", "twice", "");
    assert!(errors.lines().count() > 3, "otherwise they are there: {errors}");
}

/// The profile is whole but for the mappings. Whoever writes it and whoever reads it is told.
#[test]
fn a_profile_says_where_the_list_of_mappings_cannot_be_read() {
    for (kind, error) in [("open", "permission denied"), ("read", "input/output error")] {
        for format in ["heap_v2", "pprof"] {
            let conf = format!(
                "prof:true,prof_final:true,prof_accum:true,lg_prof_sample:0,prof_format:{format}"
            );
            let (directory, status, errors) = refused(kind, "work", &conf);
            let expected = format!(
                "<lumalloc>: profiles have no mappings, so that no functions are found: \
                 /proc/self/maps: {error}\n"
            );
            assert_eq!((status.as_str(), errors), ("exit 0", expected), "{format}");
            let [file] = &files(&directory)[..] else { panic!("{format}: not one file") };
            let (status, text, errors) = command(&directory, &["heap", file]);
            let expected = "lumalloc: heap: warning: the list of mapped files is missing, because \
                            /proc/self/maps could not be read when the file was written; \
                            addresses have no names\n";
            assert_eq!((status.as_str(), errors.as_str()), ("exit 0", expected), "{text}");
        }
    }
}

/// The callers come from the stack itself, which no call is needed to read.
#[test]
fn a_misuse_is_told_where_memory_cannot_be_read_by_a_call() {
    let (_, status, errors) = refused("process_vm_readv", "twice", "");
    assert_eq!(status, "signal 6");
    let begins = errors.starts_with("<lumalloc>: double free of 0x");
    assert!(begins && errors.contains(" (arena 0); from 0x"), "{errors}");
}

/// As [`Run::output`], of a program that succeeds: what it wrote to its two streams.
fn written(run: Run) -> (String, String) {
    let output = run.output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(ending(output.status), "exit 0", "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn malloc_stays_with_its_heap_where_no_region_gets_memory() {
    let program = linked_with("malloc_refused.c", &["-DREFUSE_MEMORY"]);
    let said = written(program.env("VMALLOC_OPTIONS", "method=debug"));
    let expected =
        "<lumalloc>: VMALLOC_OPTIONS: no region could be opened, so malloc uses its heap\n";
    assert_eq!(said, ("ok\n".to_owned(), expected.to_owned()));
}

#[test]
fn malloc_stays_with_its_heap_where_threads_cannot_be_told() {
    let program = linked_with("malloc_refused.c", &[]);
    let refuse = cc("refuse.c", &["-shared", "-fPIC"]);
    let program = program.env("LD_PRELOAD", refuse).env("REFUSE", "membarrier");
    let said = written(program.env("REFUSE_EVERY", "1"));
    let expected = "<lumalloc>: malloc goes on with its own heap: \
        there is no memory to lead it to another one, or the system refuses membarrier\n";
    assert_eq!(said, ("ok\n".to_owned(), expected.to_owned()));
}

/// The name of a caller's file is a link's. Libraries have theirs from the loader.
#[test]
fn callers_in_a_program_without_a_known_name_are_told() {
    let run = Run::plain(cc("malloc_options.c", &["-DALONE"])).args(["twice"]);
    let run = run.env("LD_PRELOAD", refusing(liblumalloc().into()));
    let run = run.env("VMALLOC_OPTIONS", "method=debug").env("REFUSE", "readlink");
    let (_, said) = written(run.env("REFUSE_EVERY", "1"));
    let (_, callers) = said.split_once(":already freed:detected from=").expect(&said);
    let first = callers.split(',').next().expect("a caller");
    let offset = first.strip_prefix("program+0x").expect(&said);
    assert!(usize::from_str_radix(offset, 16).is_ok(), "{said}");
    assert!(callers.contains(",libc.so.6+0x"), "{said}");
}

/// The exporter takes a profile into a file in memory, which it bounds by a seal.
#[test]
fn a_profile_without_a_bound_is_not_taken() {
    let port = free_port();
    let mut program = Command::new(cc("profile_sites.cc", &[]));
    program.arg("serve").env("LD_PRELOAD", refusing(serving::preload()));
    program.env(serving::VARIABLE, format!("127.0.0.1:{port}")).env("LUMALLOC_CONF", "prof:true");
    program.env("REFUSE", "seals").env("REFUSE_EVERY", "1");
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Serving(program.spawn().expect("it starts"));
    let mut output = running.0.stdout.take().expect("piped");
    output.read_exact(&mut [0]).expect("a sign of life");
    for path in ["/heap", "/debug/pprof/heap"] {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let answer = ask(stream, &format!("GET {path}"));
        let expected = "there is no file for the profile: Operation not permitted (os error 1)\n";
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
    }
}

/// Advice 18 is `MADV_WIPEONFORK`: the state of the thread is not zeroed in a child, which asks
/// which process it is.
#[test]
fn a_child_that_is_made_by_the_system_call_knows_that_it_has_no_background_thread() {
    for advice in ["madvise:18", "madvise"] {
        let run = Run::plain(cc("proc_raw_fork.c", &[])).conf("background_thread:true");
        let run = run.env("LD_PRELOAD", refusing(liblumalloc().into()));
        let text = run.env("REFUSE", advice).env("REFUSE_EVERY", "1").stdout();
        assert!(text.starts_with("threads=1\nchild_threads=0 "), "{advice}: {text}");
    }
}

/// Memory is moved by whole huge pages, so there are no moves where the system has none. A thread
/// that may trim would give the freed blocks back before, if the start took a tenth of a second.
#[test]
fn memory_that_was_moved_before_a_refused_move_can_be_used() {
    let program = cc("refused_shift.c", &["-rdynamic"]);
    let moves = gives_huge_pages_for("memory that was moved before a refused move");
    let expected = if moves { "refused\n" } else { "" };
    for conf in ["background_thread:false", "background_thread:false,hardened:true"] {
        let said = Run::preloaded(&program).conf(conf).stdout();
        assert_eq!(said, expected, "{conf}");
    }
}

/// The set that is asked for has room for 1024 CPUs, and the system refuses one with less room than
/// it has. A process with a mask of its own may have more arenas then than it needs.
#[test]
fn cpus_that_the_system_does_not_tell_are_those_in_use() {
    let stand_in = cc("api_stand_in.c", &["-shared", "-fPIC"]).display().to_string();
    let program = cc("proc_cgroup.c", &[&stand_in]);
    let arenas = |every: &str| {
        let run = Run::plain(&program).env("LD_PRELOAD", refusing(liblumalloc().into()));
        let run = run.env("REFUSE", "sched_getaffinity").env("REFUSE_EVERY", every);
        number(&run.stdout(), "narenas")
    };
    let (refused, told) = (arenas("1"), arenas("0"));
    assert!(refused >= told, "{refused} < {told}");
}

/// Without a table of its own the exporter has descriptors of the process, which a child closes.
#[test]
fn an_exporter_serves_where_close_range_is_refused() {
    let port = free_port();
    let run = |what: &str| {
        let program = serving::serving(cc("exporter_fork.c", &[]), &format!("127.0.0.1:{port}"));
        let program = program.args([what, &port.to_string()]);
        let program = program.env("LD_PRELOAD", refusing(preload()));
        program.env("REFUSE", "close_range").env("REFUSE_EVERY", "1").stdout()
    };
    assert!(run("first").trim().parse::<u32>().expect("a number") > 3);
    assert_eq!(run("fork"), "parent serves\nchild serves not\nparent serves\n");
}
