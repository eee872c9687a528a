//! malloc over regions from outside: `VMALLOC_OPTIONS` and the older variables, with programs that
//! know nothing of them, by the text of what is written. The variable `Vmregion` is tested by
//! `tests/c/region_malloc.c`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use lumalloc_tests::linked::{fully_static, linked, linked_with};
use lumalloc_tests::machine::system_program;
use lumalloc_tests::run::{ending, find_program};
use lumalloc_tests::{Run, cc, liblumalloc_archive, not_tried, root, scratch};

/// Runs the program of all options with one of its arguments, and variables.
fn options(what: &str, variables: &[(&str, &str)]) -> Output {
    with_variables(linked("malloc_options.c").args([what]), variables).output()
}

fn with_variables(run: Run, variables: &[(&str, &str)]) -> Run {
    variables.iter().fold(run, |run, (name, value)| run.env(name, value))
}

/// The option alone.
fn option(what: &str, text: &str) -> Output {
    options(what, &[("VMALLOC_OPTIONS", text)])
}

/// Returns the text without the fields that name callers.
fn without_callers(text: &str) -> String {
    let fields = text.split_inclusive([':', '\n']);
    let is_kept = |field: &&str| {
        !field.starts_with("allocated from=") && !field.starts_with("detected from=")
    };
    fields.filter(is_kept).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the text without callers, and with `#` for each number of at least six hexadecimal
/// digits.
fn without_addresses(text: &str) -> String {
    let text = without_callers(text);
    let words = text.split_inclusive(|c: char| !c.is_ascii_hexdigit());
    let open = |word: &str| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        let end = &word[digits.len()..];
        if digits.len() >= 6 { format!("#{end}") } else { word.to_owned() }
    };
    words.map(open).collect()
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}: {}", ending(output.status), text(&output.stderr));
}

/// An empty directory of a test.
fn directory(name: &str) -> PathBuf {
    let directory = scratch(name);
    for entry in fs::read_dir(&directory).expect("the directory").flatten() {
        fs::remove_file(entry.path()).expect("an old file");
    }
    directory
}

/// The only file in a directory.
fn only_file(directory: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(directory).expect("the directory").flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].path()
}

/// What `Vmdebug` says of the program's mistakes. The call that frees it names the block.
const MISTAKES: &str = "\
    corrupted data:region=#:block=#:bad byte at=20:\n\
    free error:region=#:block=#:already freed:\n\
    free error:region=#:block=#:unallocated block:\n\
    corrupted data:region=#:block=#:bad byte at=70001:\n";

#[test]
fn the_program_uses_variables_and_functions_of_malloc() {
    assert_eq!(linked("region_malloc.c").stdout(), "ok\n");
    assert_eq!(fully_static("region_malloc.c").stdout(), "ok\n");
}

#[test]
fn debug_tells_of_each_mistake() {
    for (name, value) in [
        ("VMALLOC_OPTIONS", "method=debug"),
        ("VMALLOC_OPTIONS", "period=1"),
        ("VMETHOD", "Vmdebug"),
    ] {
        let output = options("misuse", &[(name, value)]);
        succeeded(&output);
        assert_eq!(without_addresses(&text(&output.stderr)), MISTAKES, "{name}={value}");
    }
}

/// The line of source of the innermost caller in each line of messages.
fn lines_of_callers(program: &Path, messages: &str) -> Vec<String> {
    let name = program.file_name().expect("a name").to_string_lossy().into_owned();
    let line_of = |line: &str| {
        let (_, callers) = line.split_once(" from=").expect("callers");
        let innermost = callers.split([',', ':']).next().expect("a caller");
        let address = innermost.strip_prefix(&format!("{name}+0x")).expect(innermost);
        // The address behind the call.
        let call = u64::from_str_radix(address, 16).expect("an address") - 1;
        let said = Run::plain(find_program("addr2line"))
            .args(["-e", &program.display().to_string(), &format!("{call:x}")])
            .stdout();
        let (_, number) = said.trim_end().rsplit_once(':').expect("a line");
        let number = number.split(' ').next().expect("a number").parse::<usize>();
        let source = fs::read_to_string(root().join("tests/c/malloc_options.c")).expect("it");
        let line = source.lines().nth(number.expect("a number") - 1).expect("the line");
        line.trim().to_owned()
    };
    messages.lines().map(line_of).collect()
}

#[test]
fn messages_name_the_callers() {
    let program = cc("malloc_options.c", &["-DALONE", "-g", "-O0"]);
    let run = Run::preloaded(&program).args(["misuse"]);
    let said = text(&run.env("VMALLOC_OPTIONS", "method=debug").output().stderr);
    let expected = [
        "char *block = allocate(20), *freed = allocate(5), *large = allocate(70000);",
        "release(freed);",
        "release(block + 4);",
        "char *block = allocate(20), *freed = allocate(5), *large = allocate(70000);",
    ];
    assert_eq!(lines_of_callers(&program, &said), expected, "{said}");
    // A static program has tables of its callers on wish.
    let archive = liblumalloc_archive().display().to_string();
    let flags = ["-g", "-O0", "-static", "-Wl,--eh-frame-hdr", &archive];
    let program = cc("malloc_options.c", &flags);
    let run = Run::plain(&program).args(["misuse"]);
    let said = text(&run.env("VMALLOC_OPTIONS", "method=debug").output().stderr);
    assert_eq!(lines_of_callers(&program, &said), expected, "{said}");
}

#[test]
fn a_static_and_a_preloaded_program_are_checked_too() {
    let program = Run::preloaded(cc("malloc_options.c", &["-DALONE"]));
    for run in [fully_static("malloc_options.c"), program] {
        let output = run.args(["misuse"]).env("VMALLOC_OPTIONS", "method=debug").output();
        succeeded(&output);
        assert_eq!(without_addresses(&text(&output.stderr)), MISTAKES);
    }
}

#[test]
fn abort_ends_the_program_at_the_first_mistake() {
    for variable in [("VMALLOC_OPTIONS", "method=debug,abort"), ("VMDEBUG", "a")] {
        let output = options("misuse", &[variable]);
        assert_eq!(ending(output.status), "signal 6");
        let first = MISTAKES.lines().next().expect("a line");
        assert_eq!(without_addresses(&text(&output.stderr)).lines().collect::<Vec<_>>(), [first]);
    }
}

#[test]
fn the_region_is_checked_from_a_call_on_in_periods() {
    // The overrun is found by the first call that checks: the first ones after it, or none.
    for (value, is_found) in [
        ("method=debug", true),
        ("period=7", true),
        ("start=15", true),
        ("start=100000", false),
        ("method=debug,period=0", false),
        ("period=100000,start=5000", false),
    ] {
        let output = option("overrun", value);
        succeeded(&output);
        assert_eq!(text(&output.stdout), "calls made\n");
        let expected =
            if is_found { "corrupted data:region=#:block=#:bad byte at=10:\n" } else { "" };
        assert_eq!(without_addresses(&text(&output.stderr)), expected, "{value}");
    }
}

#[test]
fn warnings_go_to_the_file_of_warn() {
    let directory = directory("malloc-warn");
    let option_text = format!("warn={}/warnings.%p", directory.display());
    let output = option("misuse", &option_text);
    succeeded(&output);
    assert_eq!(text(&output.stderr), "");
    let file = only_file(&directory);
    let number = file.extension().expect("a number").to_str().expect("digits");
    assert!(number.parse::<u32>().is_ok(), "{}", file.display());
    let said = fs::read_to_string(&file).expect("the file");
    assert_eq!(without_addresses(&said), MISTAKES);
    // A descriptor that the program has.
    let output = option("misuse", "warn=&1");
    assert_eq!(without_addresses(&text(&output.stdout)), MISTAKES);
    let output = option("misuse", "warn=/dev/fd/1");
    assert_eq!(without_addresses(&text(&output.stdout)), MISTAKES);
}

/// The fields of a trace line: old, new, size, and the rest.
fn fields(line: &str) -> (bool, bool, usize, String) {
    let parts: Vec<&str> = line.splitn(6, ':').collect();
    let [old, new, size, align, region, rest] = parts[..] else { panic!("{line}") };
    assert_eq!(align, "0", "{line}");
    assert!(u64::from_str_radix(region, 16).is_ok(), "{line}");
    (old != "0", new != "0", size.parse().expect("a size"), rest.to_owned())
}

#[test]
fn each_call_of_malloc_is_a_line_of_the_trace() {
    let directory = directory("malloc-trace");
    let file = directory.join("trace");
    let path = file.display().to_string();
    for (variables, letter) in [
        (vec![("VMALLOC_OPTIONS", format!("trace={path}"))], 'b'),
        (vec![("VMALLOC_OPTIONS", format!("trace={path} method=last"))], 'l'),
        (vec![("VMTRACE", path.clone()), ("VMETHOD", "vmprofile".to_owned())], 's'),
    ] {
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let run = linked_with("malloc_options.c", &["-DVMFL"]).args(["lines"]);
        with_variables(run, &variables).stdout();
        let trace = fs::read_to_string(&file).expect("the trace");
        let own = trace.lines().filter(|line| line.contains("malloc_options.c,line="));
        let own: Vec<_> = own.map(fields).collect();
        let shapes: Vec<_> = own.iter().map(|(old, new, ..)| (*old, *new)).collect();
        let (alloc, resize, free) = ((false, true), (true, true), (true, false));
        // Vmlast frees its last block.
        assert_eq!(shapes, [alloc, resize, free, alloc, free], "{trace}");
        let sizes: Vec<usize> = own.iter().map(|(_, _, size, _)| *size).collect();
        assert_eq!((sizes[0], sizes[1], sizes[3]), (1234, 5000, 21), "{trace}");
        for (_, _, _, rest) in &own {
            assert!(rest.starts_with(&format!("{letter}:file=")), "{rest}");
            assert!(rest.ends_with(",func=lines:"), "{rest}");
        }
    }
}

#[test]
fn a_timed_trace_is_replayed_with_its_threads() {
    let directory = directory("malloc-timed");
    let file = directory.join("trace");
    option("churn", &format!("trace={},timed", file.display()));
    let trace = fs::read_to_string(&file).expect("the trace");
    assert!(trace.lines().count() >= 3000);
    for line in trace.lines() {
        let (_, time) = line.rsplit_once("time=").expect("the time");
        let (seconds, rest) = time.split_once('.').expect("seconds");
        assert!(seconds.parse::<u64>().expect("a number") > 1_600_000_000, "{line}");
        let (digits, thread) = rest.split_once(",tid=").expect("the thread");
        assert_eq!((digits.len(), thread.ends_with(':')), (9, true), "{line}");
    }
    let (ending, said, errors) =
        lumalloc_tests::profiled::command(&directory, &["replay", "--rounds", "1", "trace"]);
    assert_eq!((ending.as_str(), errors.as_str()), ("exit 0", ""));
    assert!(said.contains("by 1 thread"), "{said}");
}

#[test]
fn the_summary_is_written_at_exit() {
    let directory = directory("malloc-profile");
    let option_text = format!("profile={}/p", directory.display());
    for (name, value) in
        [("VMALLOC_OPTIONS", &*option_text), ("VMPROFILE", &option_text["profile=".len()..])]
    {
        succeeded(&options("churn", &[(name, value)]));
        let summary = fs::read_to_string(directory.join("p")).expect("the summary");
        let first = summary.lines().next().expect("a line");
        let number = |name: &str| -> usize {
            let value = first.split(&format!(":{name}=")).nth(1).expect("the number");
            value.split(':').next().expect("its end").parse().expect("a number")
        };
        assert!(first.starts_with("ALLOCATION USAGE SUMMARY:"), "{summary}");
        assert!(number("n_alloc") >= 2000 && number("s_alloc") >= 300_000, "{first}");
        assert!(number("n_free") >= 2000 && number("n_free") <= number("n_alloc"), "{first}");
    }
    // Without a file, or with one that cannot be written, to standard error.
    let output = option("churn", "method=profile");
    assert!(text(&output.stderr).starts_with("ALLOCATION USAGE SUMMARY:"));
    let output = option("churn", "profile=/nowhere/p");
    let said = text(&output.stderr);
    let expected = "<lumalloc>: VMALLOC_OPTIONS: \"/nowhere/p\" cannot be written: no such file or directory\n\
        ALLOCATION USAGE SUMMARY:";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn keep_frees_nothing() {
    for value in ["keep", "keep,method=debug,period=0"] {
        succeeded(&option("keeps", value));
    }
    assert_eq!(ending(option("keeps", "method=last").status), "exit 3", "the last block is freed");
}

#[test]
fn each_method_is_that_of_the_region() {
    for (name, value, printed) in [
        ("VMALLOC_OPTIONS", "", "110 1\n"),
        ("VMALLOC_OPTIONS", "nomethod=debug,free", "110 1\n"),
        ("VMALLOC_OPTIONS", "check", "110 1\n"),
        ("VMALLOC_OPTIONS", "method=Vmdebug", "1010 1\n"),
        ("VMALLOC_OPTIONS", "method=profile", "2010 1\n"),
        ("VMALLOC_OPTIONS", "method=last", "410 1\n"),
        ("VMALLOC_OPTIONS", "abort method=debug", "1014 1\n"),
        ("VMETHOD", "Vmlast", "410 1\n"),
        ("VMCHECK", "1", "110 1\n"),
        ("VMDEBUG", "5", "1010 1\n"),
        ("VMALLOC_OPTIONS", "break,mmap", "110 1\n"),
    ] {
        let output = options("which", &[(name, value)]);
        succeeded(&output);
        assert_eq!(text(&output.stdout), printed, "{name}={value}");
    }
    // The pool serves the size of its first block, and the heap all others.
    succeeded(&options("churn", &[("VMETHOD", "Vmpool")]));
}

#[test]
fn an_address_is_watched() {
    // Without randomised addresses the block is at the same place in each run.
    if !Run::plain(find_program("setarch")).args(["-R", "true"]).output().status.success() {
        return not_tried("a watched address", "addresses are randomised in each program");
    }
    let program = cc("malloc_options.c", &["-DALONE"]);
    let run = |value: &str| {
        let run = Run::preloaded(find_program("setarch"));
        let run = run.args(["-R", &program.display().to_string(), "address"]);
        run.env("VMALLOC_OPTIONS", value).output()
    };
    let first = run("method=debug,period=0");
    succeeded(&first);
    assert_eq!(text(&first.stderr), "");
    let address = text(&first.stdout).trim_end().to_owned();
    let second = run(&format!("watch={address},period=0"));
    succeeded(&second);
    let block = address.strip_prefix("0x").expect("an address");
    let said = without_callers(&text(&second.stderr));
    let alerts: Vec<_> = said.lines().filter(|line| line.contains(":size=3000:")).collect();
    assert_eq!(alerts.len(), 2, "{said}");
    for (alert, moment) in alerts.iter().zip(["just allocated", "being freed"]) {
        assert!(alert.ends_with(&format!(":block={block}:size=3000:{moment}:")), "{alert}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    for (name, value, message) in [
        ("VMALLOC_OPTIONS", "foo", "unknown option \"foo\""),
        ("VMALLOC_OPTIONS", "method=pool", "unknown method \"pool\""),
        ("VMALLOC_OPTIONS", "method", "method has no value"),
        ("VMALLOC_OPTIONS", "trace=", "trace has no value"),
        ("VMETHOD", "best", "unknown method \"best\""),
    ] {
        let output = options("churn", &[(name, value)]);
        succeeded(&output);
        assert_eq!(text(&output.stderr), format!("<lumalloc>: {name}: {message}\n"));
    }
    let output = option("churn", "period=x,method=best");
    let expected = "<lumalloc>: VMALLOC_OPTIONS: \"x\" is no number for period\n";
    assert_eq!(text(&output.stderr), expected);
    let output = option("churn", "trace=&77,method=best");
    let expected = "<lumalloc>: VMALLOC_OPTIONS: \"&77\" cannot be written: bad file descriptor\n";
    assert_eq!(text(&output.stderr), expected);
    let long = format!("trace={}", "x".repeat(300));
    let said = text(&option("churn", &long).stderr);
    assert!(said.ends_with("xxx\" cannot be written: file name too long\n"), "{said}");
}

#[test]
fn a_block_of_a_region_that_is_freed_twice_ends_the_program() {
    let output = option("twice", "check");
    assert_eq!(ending(output.status), "signal 6");
    let said = text(&output.stderr);
    assert!(said.starts_with("<lumalloc>: "), "{said}");
}

/// Programs that allocate before main, in threads, and from libraries.
#[test]
fn python_runs_with_each_method() {
    const PROGRAM: &str = "
import json, threading
def work():
    for i in range(300):
        assert json.loads(json.dumps({'a': [1, 2, {'b': 'c' * i}]}))['a'][0] == 1
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(len(str(i)) for i in range(10000)))";
    for value in [
        "method=debug,period=2000",
        "method=profile,profile=/dev/null",
        "method=last",
        "check,period=2000",
        "trace=/dev/null,timed",
        "keep",
    ] {
        let python = Run::preloaded(system_program("python3")).args(["-c", PROGRAM]);
        assert_eq!(python.env("VMALLOC_OPTIONS", value).stdout(), "38890\n", "{value}");
    }
}
