//! Recordings of processes that the allocator ended because of a misuse.

use super::{Line, files, run, shown};
use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;

#[test]
fn the_last_events_of_a_process_with_a_misuse_are_there() {
    let (directory, output) = run("twice", "monitor-twice", "monitor:true,prof_prefix:own");
    assert_eq!(ending(output.status), "signal 6");
    let [name] = &files(&directory)[..] else { panic!("more files than one") };
    let (lines, _) = shown(&directory, name);
    let freed: Vec<&Line> = lines.iter().rev().take(2).collect();
    assert!(freed.iter().all(|line| line.size == "del"));
    assert_eq!(freed[0].address, freed[1].address);
    let (_, text, _) = command(&directory, &["events", name]);
    let (_, message) = text.split_once("\n***").expect("the message");
    assert!(message.contains("\n* <lumalloc>: "), "{message}");
}

/// A list of old blocks without any tells that the address is of none.
#[test]
fn the_free_of_a_foreign_address_is_found_without_old_blocks() {
    let (directory, output) = run("foreign", "monitor-foreign", "monitor:true,prof_prefix:own");
    assert_eq!(ending(output.status), "signal 6");
    let [name] = &files(&directory)[..] else { panic!("more files than one") };
    let (status, text, _) = command(&directory, &["events", name, "--json", "--analyze"]);
    assert_eq!(status, "exit 0", "{text}");
    let analysis: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(analysis["old_blocks"], 0);
    let [anomaly] = &analysis["anomalies"].as_array().expect("a list")[..] else {
        panic!("{text}")
    };
    assert_eq!(
        (&anomaly["kind"], &anomaly["address"]),
        (&"bad address".into(), &"0x12345670".into())
    );
}
