//! `lumalloc heap` of a recording of the heap monitor shows what profiles do not have: how long
//! blocks live, and who pins memory.

use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, scratch};

#[test]
fn a_recording_is_shown_as_a_heap() {
    let directory = scratch("monitor-heap");
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let file = directory.join("own.events");
    let run = Run::preloaded(&program).args(["pins".as_ref(), file.as_os_str()]);
    let ended = run.dir(&directory).output();
    assert_eq!(ending(ended.status), "exit 0");
    let output = |args: &[&str]| command(&directory, args);
    let text = |args: &[&str]| {
        let (status, text, errors) = output(args);
        assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""), "{args:?}");
        text
    };
    let view = |args: &[&str]| text(&[&["events", "own.events"], args].concat());
    let expected = [view(&["--lifetimes"]), view(&["--pins"])].join("\n");
    assert_eq!(text(&["heap", "own.events", "--top", "20"]), expected);
    let by_type = ["--by", "type", "--top", "3"];
    let expected = ["--lifetimes", "--pins"].map(|it| view(&[&[it][..], &by_type].concat()));
    assert_eq!(text(&[&["heap", "own.events"][..], &by_type].concat()), expected.join("\n"));
    for (args, what) in [
        (&["--by", "size"][..], "--by is site, stack or type there"),
        (
            &["--dhat"],
            "--dhat needs a profile (`lumalloc events --help` has the forms of recordings)",
        ),
        (&["--value", "allocations"], "--value needs a profile"),
    ] {
        let (status, _, errors) = output(&[&["heap", "own.events"], args].concat());
        let begin = "lumalloc: heap: own.events is a recording of the heap monitor; ";
        let message = errors.strip_prefix(begin).expect("a message");
        assert!(status == "exit 1" && message.starts_with(what), "{errors}");
    }
}
