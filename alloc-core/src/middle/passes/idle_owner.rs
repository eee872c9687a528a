//! What is done with an owner's slabs while its thread does nothing, and after its thread's end.

use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::overflow_moves;
use crate::middle::blocks::owned_drain;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;

/// Hands all slabs of an owner on: those that are all free to their arena, the others to its bin.
pub(crate) fn give_up(owner: &'static Owner, state: &mut OwnerState) {
    state.runs.forget();
    overflow_moves::empty_all(owner, state);
    state.seen_activity = owner.activity.get();
    state.at_rest = true;
    for class in SizeClass::all() {
        owned_drain::drain(owner, state, class);
        let slabs = state.slabs(class);
        let mut next = slabs.partial.first();
        while let Some(slab) = next {
            slabs.partial.remove(slab);
            orphan(slab);
            next = slabs.partial.first();
        }
        next = slabs.full.first();
        while let Some(slab) = next {
            slabs.full.remove(slab);
            orphan(slab);
            next = slabs.full.first();
        }
    }
}

/// One decay pass over this owner at `now`. Takes in what others freed. If the owner is not active,
/// also gives all empty slabs back; an owner that was idle for `patience` gives up all slabs.
/// Returns when to look at it again. `None`: not before it takes a slow path.
pub(crate) fn pass(owner: &'static Owner, now: u64, period: u64, patience: u64) -> Option<u64> {
    let Some(mut state) = owner.state.try_lock() else { return Some(now + period) };
    if owner.activity.get() != state.seen_activity {
        state.seen_activity = owner.activity.get();
        state.idle_since = now;
        state.at_rest = false;
        // Its thread takes in by itself only what is of the classes that it requests. As a rule
        // nothing waits.
        for class in SizeClass::all().filter(|class| !owner.pending(*class).is_empty()) {
            owned_drain::drain(owner, &mut state, class);
        }
        return Some(now + period);
    }
    let give_up_at = state.idle_since + patience;
    if !state.at_rest && now >= give_up_at {
        give_up(owner, &mut state);
    } else {
        tidy(owner, &mut state);
    }
    (!state.at_rest).then_some(give_up_at)
}

/// Takes in what others freed and gives empty slabs back, whether the cache is idle or not.
pub(crate) fn settle(owner: &'static Owner) {
    tidy(owner, &mut owner.state.lock());
}

fn tidy(owner: &'static Owner, state: &mut OwnerState) {
    state.runs.empty();
    overflow_moves::empty_all(owner, state);
    for class in SizeClass::all() {
        owned_drain::drain_and_release(owner, state, class);
    }
}

/// Gives a slab that is in no list to its arena: the pages if it is empty, else the slab to a bin.
fn orphan(slab: &'static Slab) {
    let Some(arena) = arena_list::by_id(slab.arena()) else { return };
    if slab.used() == 0 && slab.remote.release() {
        arena.take_back(slab);
        return;
    }
    let mut slabs = arena.bin(slab.class()).slabs.lock();
    slab.remote.transfer(Guard::Bin);
    slabs.file(slab);
}
