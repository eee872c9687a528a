//! The snapshot that is read by names equals the snapshot that the allocator takes of itself.

use super::*;
use crate::namespace::Linked;
use serde_json::Value as Json;

/// Collects the places where two values differ.
fn differences(path: &str, theirs: &Json, ours: &Json, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => {
            for (name, value) in a {
                differences(&format!("{path}.{name}"), value, &b[name], found);
            }
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}.{place}"), a, b, found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push(format!("{path}: {theirs} and {ours}")),
    }
}

/// Both snapshots must be of one epoch. Other tests may write another epoch in between, or make and
/// destroy arenas. Then the test tries again.
#[test]
fn it_is_what_the_allocator_says() {
    let keys = Keys { namespace: &Linked, targets: RefCell::default() };
    let mut found = Vec::new();
    for _ in 0..1000 {
        let mut theirs = Snapshot::take();
        let ours = keys.snapshot();
        // Destroyed arenas that counted nothing cannot be told from no destroyed arenas.
        theirs.destroyed = theirs.destroyed.filter(has_history);
        assert!(!ours.arenas.is_empty() && !ours.merged.bins.is_empty());
        found.clear();
        let [theirs, ours] = [theirs, ours].map(|one| serde_json::to_value(one).unwrap());
        differences("", &theirs, &ours, &mut found);
        if found.is_empty() {
            return;
        }
    }
    panic!("{found:#?}");
}

#[test]
fn each_one_is_of_a_new_epoch() {
    let [first, second] = [(); 2].map(|()| take(&Linked).unwrap());
    assert!(second.epoch > first.epoch);
    assert_eq!(first.version, env!("CARGO_PKG_VERSION"));
}

/// Other tests write epochs too. Numbers of two epochs need not fit together.
#[test]
fn memory_of_one_epoch_fits_together() {
    let namespace: &dyn Namespace = &Linked;
    let keys = Keys { namespace, targets: RefCell::default() };
    let epoch = namespace.find("epoch").unwrap();
    let mut of_one = (0..1000).filter_map(|_| {
        let before = namespace.read(&epoch).unwrap();
        let snapshot = keys.snapshot();
        (namespace.read(&epoch).unwrap() == before).then_some(snapshot.rss)
    });
    let rss = of_one.next().expect("one of so many is of one epoch");
    assert!(rss.process >= rss.ours && rss.ours > 0, "{rss:?}");
    assert_eq!(rss.process, rss.ours + rss.not_ours);
}

#[test]
fn names_with_zeros() {
    assert_eq!(zeros("stats.arenas.<i>.bins.<j>.curregs"), "stats.arenas.0.bins.0.curregs");
    assert_eq!(zeros("version"), "version");
}
