//! The keys of the heap monitor.

use super::*;

#[test]
fn keys_begin_and_end_it_and_refuse_what_cannot_be() {
    let (directory, output) = run("keys", "monitor-keys", "");
    let expected = "<lumalloc>: the file of the heap monitor could not be written to \
                    /nowhere/at/all.events: no such file or directory\n";
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((ending(output.status).as_str(), errors.as_ref()), ("exit 0", expected));
    let names = files(&directory);
    let [automatic, own] = &names[..] else { panic!("{names:?}") };
    let process = automatic.split('.').nth(1).expect("a number");
    assert_eq!((automatic, own.as_str()), (&format!("jeprof.{process}.0.events"), "own.events"));
    whole(&directory, automatic);
    assert!(count(&whole(&directory, own), |line| line.size == "10") == 1);
}
