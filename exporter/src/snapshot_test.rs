//! What is read by names is what the allocator of this executable tells by itself.

use super::*;
use crate::namespace::Linked;

/// Both of one epoch. Another test may write another one in between: then once more.
#[test]
fn it_is_what_the_allocator_says() {
    let keys = Keys { namespace: &Linked, targets: RefCell::default() };
    let pair = || {
        let theirs = Snapshot::take();
        let ours = keys.snapshot();
        (theirs.epoch == ours.epoch && keys.get::<u64>("epoch", &[]) == ours.epoch)
            .then_some((theirs, ours))
    };
    let (mut theirs, ours) = (0..1000).find_map(|_| pair()).expect("a quiet moment");
    let all = [&mut theirs.merged].into_iter().chain(theirs.destroyed.as_mut());
    for arena in all.chain(&mut theirs.arenas) {
        arena.bins.retain(|bin| bin.size < 16 << 10);
    }
    assert!(!ours.arenas.is_empty() && !ours.merged.bins.is_empty());
    assert_eq!(theirs, ours);
}

#[test]
fn each_one_is_of_a_new_epoch() {
    let [first, second] = [(); 2].map(|()| take(&Linked).unwrap());
    assert!(second.epoch > first.epoch);
    assert!(first.rss.process >= first.rss.ours && first.rss.ours > 0);
    assert_eq!(first.version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn names_with_zeros() {
    assert_eq!(zeros("stats.arenas.<i>.bins.<j>.curregs"), "stats.arenas.0.bins.0.curregs");
    assert_eq!(zeros("version"), "version");
}
