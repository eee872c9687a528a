//! Names in heap profiles of programs whose debug information is elsewhere, or that were stripped,
//! changed or removed since.

use lumalloc_tests::profiled::{Profiled, tool};
use lumalloc_tests::{cc, root};
use std::fs;

#[test]
fn debug_information_of_its_own_is_found() {
    let profiled = Profiled::c("reading-stripped");
    let whole = profiled.shown(&["mprof"]);
    let debug = profiled.strip();
    let (id, path) = (profiled.build_id(), profiled.program.display());
    let (status, text, errors) = profiled.run(&["mprof"]);
    assert_eq!(status, "exit 0");
    let expected = format!(
        "lumalloc: mprof: warning: {path}: it has no symbols for some addresses; debug information \
         would be in /usr/lib/debug/.build-id/{}/{}.debug\n",
        &id[..2],
        &id[2..]
    );
    assert_eq!(errors, expected);
    assert!(text.contains(" program+0x") && !text.contains("make_widget"), "{text}");

    let directory = profiled.directory.join("debug");
    let place = directory.join(".build-id").join(&id[..2]);
    fs::create_dir_all(&place).expect("created");
    fs::copy(&debug, place.join(format!("{}.debug", &id[2..]))).expect("copied");
    assert_eq!(profiled.shown(&["mprof", "--debug-directory", "debug"]), whole);
    // Even when the program is gone.
    fs::remove_file(&profiled.program).expect("removed");
    assert_eq!(profiled.shown(&["mprof", "--debug-directory", "debug"]), whole);
}

#[test]
fn debug_information_beside_the_program_is_found() {
    let profiled = Profiled::c("reading-linked");
    let whole = profiled.shown(&["mprof"]);
    let debug = profiled.strip();
    let link = format!("--add-gnu-debuglink={}", debug.display());
    tool("objcopy", &[&link, &profiled.program, &profiled.program]);
    assert_eq!(profiled.shown(&["mprof"]), whole);
    fs::write(&debug, "another file").expect("written");
    assert!(profiled.run(&["mprof"]).1.contains(" program+0x"), "the checksum differs");
}

#[test]
fn a_program_that_was_changed_or_removed_is_named() {
    let profiled = Profiled::c("reading-changed");
    let before = profiled.build_id();
    let path = profiled.program.display().to_string();
    fs::copy(cc("reading_profiles.c", &["-Wl,--build-id", "-O2"]), &profiled.program).expect("it");
    let now = profiled.build_id();
    let note = format!(
        "lumalloc: heap: warning: {path}: it is another file than when the profile was written \
         (build-id {before}, now {now}); its addresses have no names\n"
    );
    for args in [&["heap", "mprof.data"][..], &["heap", "mprof.data", "--program", &path]] {
        let (status, text, errors) = profiled.run(args);
        assert_eq!((status.as_str(), errors.as_str()), ("exit 0", note.as_str()));
        assert!(text.contains("  program+0x") && !text.contains("make_widget"), "{text}");
    }
    fs::remove_file(&profiled.program).expect("removed");
    let (status, text, errors) = profiled.run(&["heap", "mprof.data"]);
    let note = format!(
        "lumalloc: heap: warning: {path}: no such file or directory; its addresses have no names\n"
    );
    assert_eq!((status.as_str(), errors), ("exit 0", note));
    assert!(text.contains("  program+0x"), "{text}");
    // The original is somewhere else.
    fs::copy(cc("reading_profiles.c", &["-Wl,--build-id"]), profiled.directory.join("moved"))
        .expect("copied");
    let text = profiled.shown(&["heap", "mprof.data", "--program", "moved"]);
    assert!(text.contains("make_widget (reading_profiles.c:"), "{text}");
}

/// However the debug information is stored, the types and the names are the same.
#[test]
fn all_forms_of_debug_information_are_read() {
    let golden = fs::read_to_string(root().join("tests/golden/mprof-parser.txt")).expect("it");
    for (flags, name) in [
        (&["-gdwarf-4"][..], "reading-version-4"),
        (&["-gz"], "reading-compressed"),
        (&["-gsplit-dwarf"], "reading-split"),
        (&["-no-pie"], "reading-not-independent"),
    ] {
        let profiled = Profiled::new(&cc("reading_profiles.c", flags), name);
        let text = profiled.shown(&["mprof"]);
        assert_eq!(text.split_once('\n').expect("lines").1, golden, "{flags:?}");
    }
}
