//! What `lumalloc mprof`, `heap` and `flamegraph` say about files that they cannot read or write.
//! Nothing that existed is lost, and no part of an output appears under its name.

use lumalloc_tests::profiled::command as run;
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, lumalloc, scratch};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A directory with a profile `good.heap`.
fn directory(name: &str) -> PathBuf {
    let directory = scratch(name);
    let program = directory.with_extension("program");
    // A file that this process writes could not be executed while other threads start children.
    let compiled = cc("reading_profiles.c", &["-Wl,--build-id"]);
    Run::plain("cp").args([&compiled, &program]).stdout();
    let conf = "prof:true,prof_final:true,prof_accum:true,lg_prof_sample:0,prof_prefix:good";
    assert_eq!(Run::preloaded(program).dir(&directory).conf(conf).stdout(), "");
    let file = fs::read_dir(&directory).expect("it").next().expect("a profile").expect("a file");
    fs::rename(file.path(), directory.join("good.heap")).expect("renamed");
    directory
}

/// The files of a directory, sorted.
fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn files_that_are_no_profiles_are_named() {
    let directory = directory("unusable-input");
    let good = fs::read(directory.join("good.heap")).expect("read");
    let cut = good.windows(7).position(|part| part == b"\nMAPPED").expect("the mappings");
    let write = |name: &str, bytes: &[u8]| fs::write(directory.join(name), bytes).expect("written");
    write("empty", b"");
    write("cut.heap", &good[..cut]);
    write("cut.pb.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c");
    write("gzip", b"\x1f\x8b\x07\0\0\0\0\0\0\x03");
    write("text", b"Dear reader,\n");
    write("elf", b"\x7fELF\x02\x01\x01");
    write("zstd", b"\x28\xb5\x2f\xfd\x04");
    write("dhat.json", b"{\"dhatFileVersion\":2}");
    write("original", b"alloc=5 free=0 depth=1\n");
    fs::create_dir(directory.join("folder")).expect("created");
    for (file, what) in [
        ("nowhere", "no such file or directory"),
        ("folder", "is a directory"),
        ("empty", "the file is empty"),
        ("cut.heap", "the file is cut off: it has no line MAPPED_LIBRARIES:"),
        ("cut.pb.gz", "the file is cut off"),
        ("text", "it is neither pprof nor heap_v2"),
        ("elf", "it is a program or a library, not a profile"),
        ("zstd", "it is compressed by zstd; unpack it first"),
        ("dhat.json", "it is JSON; heap_v2 and pprof can be read"),
        ("original", "it is a data file of the original mprof; heap_v2 and pprof can be read"),
    ] {
        let program = Path::new("/proc/self/exe").display().to_string();
        for (command, args) in [
            ("heap", vec!["heap", file]),
            ("heap", vec!["heap", "good.heap", "--diff", file, "-o", "out"]),
            ("flamegraph", vec!["flamegraph", file, "-o", "out"]),
            ("mprof", vec!["mprof", &program, file]),
        ] {
            let (status, text, errors) = run(&directory, &args);
            assert_eq!((status.as_str(), text.as_str()), ("exit 1", ""), "{args:?}");
            assert_eq!(errors, format!("lumalloc: {command}: {file}: {what}\n"), "{args:?}");
        }
    }
    let (_, _, errors) = run(&directory, &["heap", "gzip"]);
    let begin = "lumalloc: heap: gzip: the compressed data are damaged (";
    assert!(errors.starts_with(begin), "{errors}");
    assert!(!directory.join("out").exists());
}

#[test]
fn a_program_that_is_named_must_be_one() {
    let directory = directory("unusable-program");
    let (status, text, errors) = run(&directory, &["mprof", "nowhere", "good.heap"]);
    assert_eq!((status.as_str(), text.as_str()), ("exit 1", ""));
    assert_eq!(errors, "lumalloc: mprof: nowhere: no such file or directory\n");
    let (status, _, errors) = run(&directory, &["heap", "good.heap", "--program", "good.heap"]);
    assert_eq!(status, "exit 1");
    assert!(errors.starts_with("lumalloc: heap: good.heap: it is no ELF file ("), "{errors}");
    let (_, _, errors) = run(&directory, &["mprof"]);
    assert_eq!(errors, "lumalloc: mprof: mprof.data: no such file or directory\n");
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let directory = directory("unusable-output");
    fs::create_dir(directory.join("folder")).expect("created");
    let before = files(&directory);
    for (path, what) in [
        ("nowhere/out", "no such file or directory"),
        ("folder", "is a directory"),
        ("good.heap/out", "not a directory"),
        ("/dev/full", "no space left on device"),
    ] {
        for command in ["heap", "flamegraph"] {
            let (status, text, errors) = run(&directory, &[command, "good.heap", "-o", path]);
            assert_eq!((status.as_str(), text.as_str()), ("exit 1", ""), "{path}");
            assert_eq!(errors, format!("lumalloc: {command}: {path}: {what}\n"));
        }
    }
    assert_eq!(files(&directory), before);
    let shell = |script: &str| {
        let run = Run::plain("/bin/sh").args(["-c", script]).dir(&directory);
        let output = run.env("COMMAND", lumalloc()).output();
        (ending(output.status), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let full = shell("\"$COMMAND\" heap good.heap > /dev/full");
    let message = "lumalloc: heap: standard output: no space left on device\n";
    assert_eq!(full, ("exit 1".to_owned(), message.to_owned()));
    // The limit of file sizes, in place of a full disk: the file is begun and cannot be ended.
    let limited = shell("trap '' XFSZ; ulimit -f 0; \"$COMMAND\" heap good.heap -o out");
    assert_eq!(limited, ("exit 1".to_owned(), "lumalloc: heap: out: file too large\n".to_owned()));
    assert_eq!(files(&directory), before);
    let closed = shell("(\"$COMMAND\" heap good.heap --json; echo $? >&2) | true");
    assert_eq!(closed, ("exit 0".to_owned(), "0\n".to_owned()));
}

#[test]
fn what_exists_is_replaced_whole_or_kept() {
    let directory = directory("unusable-replaced");
    let good = fs::read(directory.join("good.heap")).expect("read");
    symlink("good.heap", directory.join("link")).expect("linked");
    for args in [
        &["heap", "good.heap", "--json", "-o", "good.heap"][..],
        &["heap", "good.heap", "--json", "-o", "link"],
        &["flamegraph", "good.heap", "-o", "./good.heap"],
    ] {
        let (status, _, errors) = run(&directory, args);
        let message =
            format!("lumalloc: {}: good.heap: the output would replace the profile\n", args[0]);
        assert_eq!((status.as_str(), errors), ("exit 1", message));
    }
    assert_eq!(fs::read(directory.join("good.heap")).expect("read"), good);
    fs::write(directory.join("out"), "old").expect("written");
    symlink("out", directory.join("to-out")).expect("linked");
    let (status, _, errors) =
        run(&directory, &["heap", "good.heap", "--collapsed", "-o", "to-out"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let text = fs::read_to_string(directory.join("out")).expect("read");
    assert!(text.starts_with("main;") && directory.join("to-out").is_symlink(), "{text}");
    assert_eq!(files(&directory), ["good.heap", "link", "out", "to-out"]);
}

#[test]
fn wrong_arguments_have_status_2() {
    let directory = scratch("unusable-arguments");
    for (args, message) in [
        (&["mprof", "-wrong"][..], "error: unexpected argument '-wrong' found"),
        (&["mprof", "a", "b", "c"], "error: unexpected argument 'c' found"),
        (&["heap"], "error: the following required arguments were not provided:"),
        (&["heap", "a", "--by", "colour"], "error: invalid value 'colour' for '--by <VIEW>'"),
        (
            &["heap", "a", "--json", "--dhat"],
            "error: the argument '--json' cannot be used with '--dhat'",
        ),
        (&["flamegraph"], "error: the following required arguments were not provided:"),
    ] {
        let (status, text, errors) = run(&directory, args);
        assert_eq!((status.as_str(), text.as_str()), ("exit 2", ""), "{args:?}");
        assert_eq!(errors.lines().next(), Some(message), "{args:?}");
    }
    for command in ["mprof", "heap", "flamegraph"] {
        let (status, text, _) = run(&directory, &[command, "--help"]);
        assert!(
            status == "exit 0" && text.contains(&format!("lumalloc {command} [OPTIONS]")),
            "{text}"
        );
    }
}
