//! When the statistics are printed, and where to: at exit, and at each interval.

use lumalloc_tests::build::is_foreign;
use lumalloc_tests::machine::{command_line, system_program};
use lumalloc_tests::{Run, cc};

/// Another library that has all the names.
fn stand_in() -> String {
    cc("api_stand_in.c", &["-shared", "-fPIC"]).display().to_string()
}

#[test]
fn statistics_are_printed_at_exit_when_asked_for() {
    let program = cc("api_standard.c", &["-DFOREIGN"]);
    for (conf, expected) in [("stats_print:true", 1), ("stats_print:false", 0), ("", 0)] {
        let output = Run::preloaded(&program).conf(conf).output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("--- End ").count(), expected, "{conf:?}: {said}");
    }
}

/// The standard output and error of a program that closes standard error itself.
fn closing(how: &[&str], conf: &str) -> [String; 2] {
    let output =
        Run::preloaded(cc("api_closed_stderr.c", &[&stand_in()])).conf(conf).args(how).output();
    let streams = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into());
    assert!(output.status.success(), "{how:?}: {streams:?}");
    streams
}

/// Programs of coreutils close standard error in this way.
#[test]
fn statistics_at_exit_are_printed_where_standard_error_was() {
    let [stdout, stderr] = closing(&["handler"], "stats_print:true");
    let expected = usize::from(!is_foreign());
    assert_eq!((stdout.as_str(), stderr.matches("--- End ").count()), ("", expected), "{stderr}");
    assert_eq!(closing(&["handler"], ""), ["", ""]);
    let [stdout, stderr] = closing(&["message"], "stats_print:true");
    assert_eq!((stdout.matches("--- End ").count(), stderr.as_str()), (1, ""), "{stdout}");
    let cat =
        Run::preloaded(system_program("cat")).args(["/dev/null"]).conf("stats_print:true").output();
    let said = String::from_utf8_lossy(&cat.stderr);
    assert_eq!(
        (cat.status.code(), said.matches("--- End ").count()),
        (Some(0), expected),
        "{said}"
    );
}

/// Programs may close all descriptors, and then get the same numbers for files of their own.
#[test]
fn statistics_at_exit_go_into_no_other_file() {
    let victim = std::env::temp_dir().join(format!("lumalloc-{}-victim", std::process::id()));
    std::fs::write(&victim, "").expect("a file");
    let streams = closing(&["taken", &victim.to_string_lossy()], "stats_print:true");
    let written = std::fs::read_to_string(&victim).expect("the file");
    std::fs::remove_file(&victim).expect("the file goes");
    assert_eq!((streams, written.as_str()), ([String::new(), String::new()], ""));
}

/// A daemon must not keep a pipe of its starter open, and a program with few descriptors needs all
/// of them.
#[test]
fn the_second_standard_error_is_the_process_s_alone() {
    let counts = |conf: &str| {
        let [stdout, _] = closing(&["count"], conf);
        let counts: Vec<i32> = stdout.split_whitespace().map(|n| n.parse().unwrap()).collect();
        [counts[0] - counts[2], counts[1] - counts[2]]
    };
    assert_eq!(counts("stats_print:true"), [i32::from(!is_foreign()), 0]);
    assert_eq!(counts("stats_print:false"), [0, 0]);
    let program = cc("api_closed_stderr.c", &[&stand_in()]);
    let limited = format!("ulimit -n 63 && exec {} count", command_line(&program));
    let run = Run::preloaded("sh").args(["-c", &limited]).conf("stats_print:true");
    let counts = run.stdout();
    let counts: Vec<&str> = counts.split_whitespace().collect();
    assert_eq!([counts[0], counts[1]], [counts[2]; 2], "too few to take one");
}

/// With the letter `g` only changing parts are printed, so that the printings can be counted.
#[test]
fn statistics_are_printed_at_each_interval() {
    let program = cc("api_stats_interval.c", &[&stand_in()]);
    let prints = |conf: &str, args: &[&str]| {
        let output = Run::preloaded(&program).conf(conf).args(args).output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("opt.narenas"), "the letters were not those of the option: {said}");
        said.matches("--- End ").count()
    };
    let conf = "stats_interval:10000000,stats_interval_opts:gb";
    assert_eq!(prints(conf, &["1048576", "100"]), 10, "large blocks count each");
    assert_eq!(prints(conf, &["100", "1000000", "uncached"]), 10, "blocks past the caches count");
    let small = prints(conf, &["100", "1000000"]);
    assert!((10..=11).contains(&small), "small ones when a countdown ends: {small}");
    let uncached = format!("{conf},tcache:false");
    assert_eq!(prints(&uncached, &["100", "1000000"]), 11, "small ones without caches, by class");
    assert!(prints(conf, &["1048576", "200", "grown"]) >= 10, "a block that grows in place");
    for how in ["refused", "refused-uncached"] {
        let size = (1u64 << 47).to_string();
        assert_eq!(prints(conf, &[&size, "3", how]), 0, "{how}: nothing was allocated");
    }
    assert_eq!(prints("stats_interval:-1", &["1048576", "100"]), 0);
    assert_eq!(prints("stats_interval_opts:J", &["1048576", "100"]), 0, "the letters alone");
}

#[test]
fn the_letters_of_the_printing_at_exit_are_those_of_its_option() {
    let program = cc("api_standard.c", &["-DFOREIGN"]);
    let run = Run::preloaded(&program).conf("stats_print:true,stats_print_opts:Jg");
    let said = run.output().stderr;
    assert!(said.starts_with(b"{\"jemalloc\":{"), "{}", String::from_utf8_lossy(&said));
}
