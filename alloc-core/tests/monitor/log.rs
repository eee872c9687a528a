//! What threads do, and what events are to be recorded of it.

use super::common::random::Random;
use lumalloc::control::monitor::{Event, What};
use lumalloc::raw::{self, Flags};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Allocated(usize, usize),
    Freed(usize),
    /// Both, in any order.
    Resized(usize, usize, usize),
}

/// What a thread did, in order. It has its memory before the recording begins.
pub(crate) struct Log(Vec<Done>);

impl Log {
    pub(crate) fn new() -> Log {
        Log(Vec::with_capacity(STEPS + 2))
    }

    fn note(&mut self, done: Done) {
        assert!(self.0.len() < self.0.capacity());
        self.0.push(done);
    }
}

const STEPS: usize = 3000;
/// The size of a thread's first block.
pub(crate) const MARKER: usize = 54_321;

/// Blocks that any thread may free.
pub(crate) static SHARED: Mutex<[usize; 64]> = Mutex::new([0; 64]);

/// Allocates, resizes and frees in many ways, and notes it.
pub(crate) fn work(seed: u64, arena: u32, cache: u32, log: &mut Log) {
    let mut random = Random::new(seed);
    let ways = [
        Flags::NONE,
        Flags::NONE.align(64),
        Flags::NONE.zeroed(),
        Flags::NONE.uncached(),
        Flags::NONE.arena(arena),
        Flags::NONE.tcache(cache),
    ];
    let marker = raw::malloc(MARKER);
    log.note(Done::Allocated(marker as usize, MARKER));
    log.note(Done::Freed(marker as usize));
    // SAFETY: freed once.
    unsafe { raw::free(marker) };
    for _ in 0..STEPS {
        let way = ways[random.below(ways.len())];
        let size = random.size().max(1);
        let index = random.below(64);
        let mut shared = SHARED.lock().expect("no panic");
        let block = shared[index] as *mut u8;
        if block.is_null() {
            let new = raw::allocate(size, way);
            log.note(Done::Allocated(new as usize, size));
            shared[index] = new as usize;
        } else if random.below(3) == 0 {
            // SAFETY: a block of the list, which is locked.
            let new = unsafe { raw::realloc(block, size) };
            log.note(Done::Resized(block as usize, new as usize, size));
            shared[index] = new as usize;
        } else {
            let way = [Flags::NONE, way, Flags::NONE.uncached()][random.below(3)];
            // SAFETY: as above; it leaves the list.
            unsafe { raw::deallocate(block, way) };
            log.note(Done::Freed(block as usize));
            shared[index] = 0;
        }
    }
}

/// Checks the events of a thread against what it did.
pub(crate) fn check_thread(events: &[Event], log: &Log) {
    let mut rest = events.iter().map(|event| match event.what {
        What::Allocated { size } => Done::Allocated(event.address, size),
        What::Freed { .. } => Done::Freed(event.address),
    });
    for done in &log.0 {
        if let Done::Resized(old, new, size) = *done {
            let both = [rest.next(), rest.next()];
            for part in [Done::Freed(old), Done::Allocated(new, size)] {
                assert!(both.contains(&Some(part)), "{done:x?}: {both:x?}");
            }
        } else {
            assert_eq!(rest.next(), Some(*done));
        }
    }
}

/// Checks that no event contradicts another, and returns what is live afterwards, by its size.
pub(crate) fn check_order(events: &mut [Event]) -> HashMap<usize, usize> {
    check_order_but(events, 0)
}

/// As [`check_order`], where the recording began during an operation of so many other threads,
/// which it has not seen.
pub(crate) fn check_order_but(events: &mut [Event], under_way: usize) -> HashMap<usize, usize> {
    let is_allocation = |event: &Event| matches!(event.what, What::Allocated { .. });
    events.sort_by_key(|event| (event.time, is_allocation(event)));
    let mut live = HashMap::new();
    let mut seen = HashSet::new();
    let mut unseen = 0;
    for event in events.iter() {
        match event.what {
            What::Allocated { size } => {
                assert!(live.insert(event.address, size).is_none(), "live already: {event:x?}");
                seen.insert(event.address);
            }
            What::Freed { .. } => {
                let is_live = live.remove(&event.address).is_some();
                // A block that was allocated before the recording is freed once. One whose
                // allocation was under way may have an address that was freed in the recording.
                unseen += usize::from(!is_live && !seen.insert(event.address));
                assert!(unseen <= under_way, "not live: {event:x?}");
            }
        }
    }
    live
}
