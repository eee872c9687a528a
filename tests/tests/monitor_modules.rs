//! The heap monitor and libraries that come and go.

use lumalloc_tests::profiled::command;
use lumalloc_tests::{Run, cc, scratch};

#[test]
fn functions_of_modules_that_were_open_for_a_moment_have_names() {
    let directory = scratch("monitor-modules");
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let module = |options: &[&str]| {
        cc("profile_plugin.c", &[&["-shared", "-fPIC", "-DFRAME=64"], options].concat())
    };
    let modules = [module(&[]), module(&["-Dplugin=second"])];
    let file = directory.join("own.events");
    let mut args = vec!["modules".as_ref(), file.as_os_str()];
    args.extend(modules.iter().map(|module| module.as_os_str()));
    assert_eq!(Run::preloaded(&program).args(args).stdout(), "");
    let (status, text, errors) = command(&directory, &["events", "own.events"]);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let made = text.lines().filter(|line| line.contains("\t112\tnovtbl\t"));
    let stacks: Vec<&str> = made.filter_map(|line| line.split('\t').nth(5)).collect();
    assert_eq!(stacks.len(), 102 * 600);
    // What is in the buffer when the first one is closed is taken for the second one's, and the
    // first buffers of that may be written before the mappings are looked at.
    for (part, function) in [(&stacks[..600], "plugin"), (&stacks[60_000..], "second")] {
        let expected = format!("{function}|module|modules|main");
        assert!(part.iter().all(|stack| *stack == expected), "{function}: {part:?}");
    }
}
