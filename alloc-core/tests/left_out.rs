//! Arenas that heap profiles leave out: their allocations are in no sample, and in no count beside
//! the samples.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::control::{self, arenas, profile};
use lumalloc::observe::{self, ClassCount};
use lumalloc::raw::{self, Flags};
use std::collections::BTreeMap;
use std::thread;

/// The exporter's threads use such an arena.
#[test]
fn an_arena_that_is_not_profiled_is_in_no_count_and_no_sample() {
    for conf in [
        "prof:true,lg_prof_sample:0",
        "prof:true,lg_prof_sample:9",
        "prof:true,lg_prof_sample:9,narenas:3",
        "tcache:false,prof:true,lg_prof_sample:9",
    ] {
        play_well("left_out", conf);
    }
}

#[test]
#[ignore = "the scenario of the test above"]
fn child() {
    match scenario().as_deref() {
        Some("left_out") => left_out(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// A block, which is freed when it is dropped.
struct Held {
    address: usize,
    flags: Flags,
}

impl Held {
    fn new(size: usize, flags: Flags) -> Held {
        let address = raw::allocate(size, flags).expose_provenance();
        Held { address, flags }
    }

    fn ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn resize(&mut self, size: usize) {
        // SAFETY: a live block, whose old address is not used afterwards.
        let block = unsafe { raw::reallocate(self.ptr(), size, self.flags) };
        self.address = block.expose_provenance();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate(self.ptr(), self.flags) };
    }
}

/// The counts of the size classes, by their size.
fn counts() -> BTreeMap<usize, ClassCount> {
    let mut counts = BTreeMap::new();
    observe::class_counts(|class| _ = counts.insert(class.size, class));
    counts
}

/// Blocks of an arena that is not profiled come and go, and move between classes, while the program
/// has blocks of the same classes.
fn left_out() {
    let arena = arenas::create().expect("an arena");
    assert!(profile::set_arena_profiled(arena, false));
    let sizes = [(100, 112), (5000, 5120), (33_000, 40_960), (3 << 20, 3 << 20)];
    let own: Vec<Held> =
        sizes.iter().flat_map(|(size, _)| (0..20).map(|_| Held::new(*size, Flags::NONE))).collect();
    let all = |counts: BTreeMap<usize, ClassCount>| {
        sizes.map(|(_, class)| (counts[&class].live, counts[&class].allocations))
    };
    // The second thread has the cache of the first one, and its kept blocks.
    for _ in 0..2 {
        thread::scope(|scope| {
            scope.spawn(|| {
                control::thread::set_arena(arena).expect("the arena lives");
                for (size, _) in sizes {
                    let mut held: Vec<Held> =
                        (0..200).map(|_| Held::new(size, Flags::NONE)).collect();
                    held.extend((0..20).map(|_| Held::new(size, Flags::NONE.arena(arena))));
                    held.iter_mut().for_each(|block| block.resize(size / 2));
                    assert_eq!(all(counts()), [(20, 20); 4]);
                    held.truncate(held.len() - 100);
                    assert_eq!(all(counts()), [(20, 20); 4]);
                }
            });
            // A thread of another arena allocates there too.
            scope.spawn(|| {
                for (size, _) in sizes {
                    let mut held: Vec<Held> =
                        (0..20).map(|_| Held::new(size, Flags::NONE.arena(arena))).collect();
                    held.iter_mut().for_each(|block| block.resize(size - size / 100));
                    let mut ours = 0;
                    observe::live_samples(|sample| ours += usize::from(sample.arena == arena));
                    assert_eq!((ours, all(counts())), (0, [(20, 20); 4]));
                }
            });
        });
        assert_eq!(all(counts()), [(20, 20); 4]);
    }
    assert!(observe::profile_counts().since_start);
    let mut ours = 0;
    observe::live_samples(|sample| ours += usize::from(sample.arena == arena));
    let mut sampled = 0;
    observe::profile(|entry| {
        sampled += if entry.requested == 3 << 20 { entry.allocated } else { 0 }
    });
    assert_eq!((ours, sampled), (0, 20));
    drop(own);

    // From now on some of the arena's allocations were left out of the samples, and others not.
    assert!(profile::set_arena_profiled(arena, true));
    assert!(!observe::profile_counts().since_start);
    let flags = Flags::NONE.arena(arena);
    let before = counts().get(&(5 << 20)).map_or(0, |class| class.live);
    let block = Held::new(5 << 20, flags);
    assert_eq!(counts()[&(5 << 20)].live, before + 1);
    drop(block);
}
