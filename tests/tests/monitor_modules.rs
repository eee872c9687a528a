//! The heap monitor and libraries that come and go.

use lumalloc_tests::profiled::command;
use lumalloc_tests::{Run, cc, scratch};

#[test]
fn functions_of_a_module_that_was_open_for_a_moment_have_names() {
    let directory = scratch("monitor-module");
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let module = cc("profile_plugin.c", &["-shared", "-fPIC", "-DFRAME=64"]);
    let file = directory.join("own.events");
    let args = ["module".as_ref(), file.as_os_str(), module.as_os_str()];
    assert_eq!(Run::preloaded(&program).args(args).stdout(), "");
    let (status, text, errors) = command(&directory, &["events", "own.events"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let made = text.lines().filter(|line| line.contains("\t112\tnovtbl\t"));
    let stacks: Vec<&str> = made.filter_map(|line| line.split('\t').nth(5)).collect();
    assert_eq!((stacks.len(), stacks.first()), (600, Some(&"plugin|module|main")));
    assert!(stacks.iter().all(|stack| *stack == stacks[0]), "{stacks:?}");
}
