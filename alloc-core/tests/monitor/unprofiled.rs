//! Blocks of arenas that heap profiles leave out.

use super::log::check_order;
use super::{events, keep};
use lumalloc::control::monitor::{self, Event, What};
use lumalloc::control::{self, arenas, profile};
use lumalloc::raw::{self, Flags};
use std::hint::black_box;

/// Blocks of an arena that is not profiled, and of the program, which are freed and moved by each
/// other's threads.
pub(crate) fn left_out() {
    let arena = arenas::create().expect("an arena");
    assert!(profile::set_arena_profiled(arena, false));
    // Past the caches, which hand out what was freed there, whatever arena it is from.
    let (own, other) = (Flags::NONE.uncached(), Flags::NONE.arena(arena).uncached());
    let sizes = [100, 5000, 100_000, 3 << 20];
    let made = |size: usize, flags| Held(raw::allocate(size, flags));
    let held = sizes.map(|size| made(size, other));
    assert_eq!(monitor::start(keep), Ok(()));
    held.into_iter().for_each(|block| block.free(own));
    let kept = sizes.map(|size| made(size + 1, own));
    let hidden = sizes.map(|size| made(size, other));
    // Out of the arena, and into it.
    let flags = own.arena(0);
    let moved = sizes.map(|size| made(size, other).resize(size + 2, flags));
    let grown = sizes.map(|size| made(size + 3, flags).resize(size, other));
    // Within it, in place or by a move of the memory.
    made(20 << 20, other).resize(90 << 20, other).free(own);
    let hidden_now: Vec<usize> = hidden.iter().chain(&grown).map(Held::address).collect();
    let freed = std::thread::spawn(move || {
        control::thread::set_arena(arena).expect("the arena lives");
        kept.into_iter().chain(hidden).for_each(|block| block.free(own));
        drop(black_box(vec![1u8; 700_001]));
    });
    freed.join().expect("a thread");
    assert!(monitor::stop());
    let mut events = events();
    let requests = |wanted: usize| {
        events.iter().filter(|it| it.what == What::Allocated { size: wanted }).count()
    };
    for size in sizes {
        let counts = [0, 1, 2, 3].map(|more| requests(size + more));
        assert_eq!(counts, [0, 1, 1, 1], "{size}");
    }
    assert_eq!([20 << 20, 90 << 20, 700_001].map(requests), [0; 3]);
    // Each recorded free is one of a recorded block, or of one that is older and not left out.
    let hidden = |event: &&Event| hidden_now.contains(&event.address);
    let frees = events.iter().filter(hidden).filter(|it| matches!(it.what, What::Freed { .. }));
    assert_eq!(frees.count(), 0);
    let live = check_order(&mut events);
    assert!(moved.iter().all(|block| live.contains_key(&block.address())), "{live:x?}");
    assert!(grown.iter().all(|block| !live.contains_key(&block.address())), "{live:x?}");
}

/// A block that threads hand on.
struct Held(*mut u8);

// SAFETY: a block belongs to no thread.
unsafe impl Send for Held {}

impl Held {
    fn free(self, flags: Flags) {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate(self.0, flags) };
    }

    fn resize(self, size: usize, flags: Flags) -> Held {
        // SAFETY: a live block, whose old address is not used afterwards.
        Held(unsafe { raw::reallocate(self.0, size, flags) })
    }

    fn address(&self) -> usize {
        self.0.expose_provenance()
    }
}
