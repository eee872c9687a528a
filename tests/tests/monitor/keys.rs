//! The keys of the heap monitor.

use super::*;

#[test]
fn keys_begin_and_end_it_and_refuse_what_cannot_be() {
    let (directory, output) = run("keys", "monitor-keys", "");
    let expected = format!(
        "<lumalloc>: the file of the heap monitor could not be written to /nowhere/at/all.events: \
         no such file or directory\n\
         <lumalloc>: a part of the heap monitor's recording could not be written to \
         {}/part.events: file too large\n",
        directory.display()
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((ending(output.status).as_str(), errors.as_ref()), ("exit 0", expected.as_str()));
    let names = files(&directory);
    let [automatic, own, part] = &names[..] else { panic!("{names:?}") };
    let process = automatic.split('.').nth(1).expect("a number");
    assert_eq!((automatic, own.as_str()), (&format!("jeprof.{process}.0.events"), "own.events"));
    whole(&directory, automatic);
    assert_eq!(part, "part.events");
    assert!(count(&whole(&directory, own), |line| line.size == "10") == 1);
}
