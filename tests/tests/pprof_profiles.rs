//! Profiles in the format of pprof, of known programs, as pprof reads them.

use lumalloc_tests::profile_reports::{exact_profiles, jeprof, pprof, pprof_text};
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, scratch};
use std::path::{Path, PathBuf};

#[test]
fn pprof_reports_the_exact_bytes_of_each_place() {
    const LIVE: &str = "-sample_index=inuse_space";
    for (flags, name) in [
        (&["-fomit-frame-pointer"][..], "pprof-without-frame-pointers"),
        (&["-no-pie"], "pprof-not-independent"),
    ] {
        let (program, before, after) = exact_profiles(flags, name, "pb.gz");
        let report = pprof(&program, &before, LIVE, &[]);
        assert_eq!((report.alone("leaf"), report.with_callees("outer")), (112_000, 112_000));
        assert_eq!(report.alone("large"), 100 << 20);
        let all = report.with_callees("main");
        assert!(all >= (100 << 20) + 112_000 && report.total >= all, "{all} of {}", report.total);

        let report = pprof(&program, &after, LIVE, &[]);
        assert_eq!(report.alone("zeroed"), 100 * 320);
        assert_eq!(report.with_callees("widgets"), 50 * 224, "a widget has a block of 224 bytes");
        assert_eq!(report.with_callees("dropped"), 0);
        assert_eq!(report.alone("leaf"), 1010 * 112);
        let count = pprof(&program, &after, "-sample_index=alloc_objects", &[]);
        assert_eq!((count.with_callees("dropped"), count.with_callees("resized")), (1000, 200));
        let ever = pprof(&program, &after, "-sample_index=alloc_space", &[]);
        assert_eq!(ever.with_callees("dropped"), 500 * (224 + 48));
        let base = format!("-base={}", before.display());
        let grown = pprof(&program, &after, "-sample_index=inuse_objects", &[&base]);
        assert_eq!((grown.alone("large"), grown.alone("leaf")), (10, 10));
    }
}

#[test]
fn samples_have_labels_and_mappings_have_build_ids() {
    let (program, _, after) =
        exact_profiles(&["-Wl,--build-id=0x0123456789abcdef"], "pprof-labels", "pb.gz");
    let widgets = |filter: &str| {
        let report = pprof(&program, &after, "-sample_index=inuse_objects", &[filter]);
        report.with_callees("widgets")
    };
    assert_eq!((widgets("-tagfocus=bytes=208B"), widgets("-tagfocus=bytes=207B")), (50, 0));
    let tags = pprof_text(&program, &after, &["-tags", "-sample_index=inuse_objects"]);
    for label in [" arena:", " thread:", " bytes:"] {
        assert!(tags.contains(label), "{label}: {tags}");
    }
    // The ten threads of `by_thread`, and the first one.
    let threads = tags.split(" thread:").nth(1).and_then(|rest| rest.split("\n\n").next());
    assert_eq!(threads.expect("threads").matches("%)").count(), 11, "{tags}");
    let raw = pprof_text(&program, &after, &["-raw"]);
    assert!(raw.contains("profile_sites") && raw.contains(" 0123456789abcdef "), "{raw}");
    assert!(raw.contains("Comment: lumalloc=0.1.0") && raw.contains("Period: 1\n"), "{raw}");
}

#[test]
fn blocks_of_no_bytes_are_counted() {
    let program = cc("profile_empty.c", &[]);
    let directory = scratch("profile-empty");
    let [zipped, text] = ["a.pb.gz", "a.heap"].map(|name| directory.join(name));
    let run = Run::preloaded(&program).args([&zipped, &text]).dir(&directory);
    assert_eq!(run.conf("mprof:true").stdout(), "");
    for file in [&zipped, &directory.join("mprof.data")] {
        let of = |values: &str| {
            let report = pprof(&program, file, values, &[]);
            (report.alone("empty"), report.alone("mixed"))
        };
        assert_eq!(of("-sample_index=alloc_objects"), (70_000, 2));
        assert_eq!(of("-sample_index=inuse_objects"), (69_000, 2));
        // Those without an address of their own have blocks of 8 bytes.
        let (bytes, of_mixed) = of("-sample_index=inuse_space");
        assert!(of_mixed <= 328 && bytes <= (70_000 - 65_536 + 1) * 8, "{bytes} {of_mixed}");
    }
    // A reader of heap_v2 would divide by zero.
    let report = jeprof(&program, &text, &["--inuse_objects"]);
    assert!(report.alone("empty") < 4500, "{}", report.alone("empty"));
}

#[test]
fn sampled_profiles_of_pprof_are_estimates() {
    let program = cc("profile_sites.cc", &[]);
    let profile = scratch("pprof-sampled").join("sampled.pb.gz");
    let run = Run::preloaded(&program).args(["sampled".as_ref(), profile.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:12,prof_seed:3").stdout(), "");
    let bytes = pprof(&program, &profile, "-sample_index=inuse_space", &[]).alone("leaf") as f64;
    let expected = 90_000.0 * 64.0 + 10_000.0 * 8192.0;
    assert!((bytes / expected - 1.0).abs() < 0.02, "{bytes} {expected}");
    let count = pprof(&program, &profile, "-sample_index=inuse_objects", &[]).alone("leaf") as f64;
    assert!((count / 100_000.0 - 1.0).abs() < 0.1, "{count}");
}

#[test]
fn profiles_need_no_memory() {
    let program = cc("profile_sites.cc", &[]);
    let directory = scratch("profile-without-memory");
    let (text, message) = (directory.join("a.heap"), directory.join("a.pb.gz"));
    let run = Run::preloaded(&program);
    let run = run.args(["nomemory".as_ref(), text.as_os_str(), message.as_os_str()]);
    assert_eq!(run.conf("prof:true,lg_prof_sample:0").stdout(), "");
    let by_jeprof = jeprof(&program, &text, &[]);
    let by_pprof = pprof(&program, &message, "-sample_index=inuse_space", &[]);
    for report in [by_jeprof, by_pprof] {
        assert_eq!((report.alone("leaf"), report.alone("large")), (112_000, 100 << 20));
    }
}

/// Runs the program of mprof in a directory. Returns what it wrote to standard error.
fn mprof(directory: &Path, arguments: &[&str], conf: &str) -> (PathBuf, String) {
    let program = cc("mprof_data.c", &[]);
    let output = Run::preloaded(&program).args(arguments).dir(directory).conf(conf).output();
    assert_eq!(ending(output.status), "exit 0");
    (program, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The widgets that a profile counts: all, and those not freed.
fn widgets(program: &Path, file: &Path) -> (u64, u64) {
    let of = |values| pprof(program, file, values, &[]).with_callees("make_widget");
    (of("-sample_index=alloc_objects"), of("-sample_index=inuse_objects"))
}

#[test]
fn mprof_counts_each_allocation_and_writes_its_data_at_exit() {
    let directory = scratch("mprof-once");
    let (program, errors) = mprof(&directory, &["once"], "mprof:true");
    assert_eq!(errors, "");
    assert_eq!(widgets(&program, &directory.join("mprof.data")), (10_000, 5000));
}

/// Others may know the name before, and have it lead to a file that is not theirs to write.
#[test]
fn mprof_does_not_write_through_a_link_of_the_usual_name() {
    let directory = scratch("mprof-link");
    let (victim, link) = (directory.join("victim"), directory.join("mprof.data"));
    std::fs::write(&victim, "precious").expect("written");
    std::os::unix::fs::symlink("victim", &link).expect("a link");
    assert_eq!(mprof(&directory, &["once"], "mprof:true").1, "");
    assert_eq!(std::fs::read(&victim).expect("the file"), b"precious");
    assert!(std::fs::symlink_metadata(&link).expect("the data").is_file());
}

#[test]
fn mprof_is_ended_and_begun_anew_by_the_program() {
    let directory = scratch("mprof-restart");
    let (program, errors) = mprof(&directory, &["restart", "second.data"], "mprof:true");
    assert_eq!(errors, "");
    assert_eq!(widgets(&program, &directory.join("mprof.data")), (101, 51));
    assert_eq!(widgets(&program, &directory.join("second.data")), (50, 25));
    assert_eq!(mprof(&directory, &["autosave"], "mprof:true").1, "");
    let directory = scratch("mprof-stdout");
    let run = Run::preloaded(&program).args(["restart", ""]).dir(&directory).conf("mprof:true");
    let file = directory.join("from-stdout.data");
    std::fs::write(&file, run.output().stdout).expect("written");
    assert_eq!(widgets(&program, &file), (50, 25));
}

#[test]
fn a_child_of_fork_does_not_replace_the_data_of_its_parent() {
    let directory = scratch("mprof-fork");
    let (program, errors) = mprof(&directory, &["fork"], "mprof:true");
    assert_eq!(errors, "");
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let [parent, child] = files.as_slice() else { panic!("{files:?}") };
    assert!(parent.ends_with("mprof.data"));
    let number = child.extension().and_then(|number| number.to_str()).unwrap_or_default();
    assert!(number.parse::<u32>().is_ok(), "{}", child.display());
    assert_eq!((widgets(&program, parent), widgets(&program, child)), ((20, 10), (20, 10)));
}

#[test]
fn each_refusal_of_mprof_has_its_message() {
    let directory = scratch("mprof-wrong");
    let line = |function: &str, reason: &str| format!("<lumalloc>: {function}: {reason}\n");
    let stopped = line("mprof_stop", "no profile is being taken");
    let errors = mprof(&directory, &["wrong"], "mprof:true").1;
    let running = line("mprof_restart", "the profile is being taken; call mprof_stop first");
    let long = line("mprof_restart", "the name of the file is too long");
    let at_exit = "<lumalloc>: the data of mprof could not be written to nowhere/at/all: no such \
                   file or directory\n";
    let negative = "the count is negative; the profile is written only when the program exits";
    let negative = line("set_mprof_autosave", negative);
    assert_eq!(errors, [&running, &stopped, &long, &negative, at_exit].concat());
    let reason = "the program was started without mprof:true";
    let [stop, restart] = ["mprof_stop", "mprof_restart"].map(|function| line(function, reason));
    let errors = mprof(&directory, &["wrong"], "").1;
    let autosave = line("set_mprof_autosave", reason);
    let told = [&restart, &stop, &stop, &restart, &restart, &autosave];
    assert_eq!(errors, told.map(String::as_str).concat());
    let unwritten = scratch("mprof-unwritable");
    std::fs::create_dir(unwritten.join("mprof.data")).expect("a directory in the place");
    let errors = mprof(&unwritten, &["restart", "second.data"], "mprof:true").1;
    let reason =
        "<lumalloc>: the data of mprof could not be written to mprof.data: is a directory\n";
    assert_eq!(errors, reason);
}

/// Blocks of `leaf` in use, by the name of the thread: how many have each label.
fn named(which: &str, conf: &str, names: &[&str]) -> Vec<u64> {
    let program = cc("profile_names.cc", &["-pthread"]);
    let profile = scratch(&format!("pprof-names-{which}")).join("names.pb.gz");
    let run = Run::preloaded(&program).args([which.as_ref(), profile.as_os_str()]);
    assert_eq!(run.conf(conf).stdout(), "");
    let count = |name: &&str| {
        let filter = format!("-tagfocus=thread_name=^{name}$");
        let report = pprof(&program, &profile, "-sample_index=inuse_objects", &[&filter]);
        report.alone("leaf")
    };
    let all = pprof(&program, &profile, "-sample_index=inuse_objects", &[]).alone("leaf");
    names.iter().map(count).chain([all]).collect()
}

#[test]
fn samples_have_the_names_of_their_threads() {
    let own = named("own", "prof:true,lg_prof_sample:0", &["first", "second", "0123456789abcde"]);
    assert_eq!(own, [2, 1, 1, 7]);
    let conf = "prof:true,lg_prof_sample:0,prof_sys_thread_name:true";
    assert_eq!(named("system", conf, &["before", "after"]), [1, 2, 3]);
    let program = cc("profile_names.cc", &["-pthread"]);
    assert_eq!(Run::preloaded(&program).args(["off"]).stdout(), "");
}
