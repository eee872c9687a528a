//! Blocks that move between the bins of a cache and its overflow stacks. Under the owner's lock.

use super::give_back::give_back;
use crate::back::map::page_map;
use crate::ground::size_class::SizeClass;
use crate::middle::owners::overflow::Slot;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;

/// Takes blocks that a full bin gives up. Keeps the first of them in the overflow stack, within
/// `most` bytes for all classes, and returns the others to their slabs.
pub(crate) fn spill(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
    blocks: &[Slot],
    most: usize,
) {
    let room = state.overflow.of(class).room() > 0;
    let bytes =
        if room && made(owner, blocks) { most.saturating_sub(state.overflow.bytes) } else { 0 };
    let stack = state.overflow.of(class);
    let n = stack.push(class, blocks, bytes);
    let others = blocks.get(n..).unwrap_or_default();
    stack.note_gone(others.len());
    note_moved(owner, state, class, n, 0);
    if !others.is_empty() {
        give_back(owner, state, class, others);
    }
}

/// Whether blocks seem to come from slabs of this cache, or of its arena's bins, judged by the
/// first and the last one. Blocks of other slabs are wanted there.
fn made(owner: &Owner, blocks: &[Slot]) -> bool {
    let ends = [blocks.first(), blocks.last()];
    ends.into_iter().flatten().all(|block| {
        let slab = Slab::of(page_map::lookup(block.expose_provenance()));
        slab.is_some_and(|slab| match slab.remote.guard() {
            Some(Guard::Owner(id)) => id == owner.id(),
            Some(Guard::Bin) => slab.arena() == owner.home.get().id(),
            None => false,
        })
    })
}

/// Takes up to `want` of the newest blocks from the overflow stack, and writes them to `slots`, the
/// newest last. Returns how many.
///
/// # Safety
/// `slots` has room for `want` blocks.
pub(crate) unsafe fn take(
    owner: &Owner,
    state: &mut OwnerState,
    class: SizeClass,
    want: usize,
    slots: *mut Slot,
) -> usize {
    let stack = state.overflow.of(class);
    let n = want.min(stack.count as usize);
    let mut left = n;
    while let Some((blocks, some)) = stack.lift(class, left) {
        left -= some;
        let place = slots.wrapping_add(left);
        // SAFETY: `some` blocks lie there, and fit below those that are written (the caller's
        // promise).
        unsafe { place.copy_from_nonoverlapping(blocks.as_ptr(), some) };
    }
    note_moved(owner, state, class, 0, n);
    n
}

/// One step of collection: half of the blocks untouched for some rounds return to their slabs.
pub(crate) fn age(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) {
    let n = state.overflow.of(class).age();
    return_to_slabs(owner, state, class, n);
}

/// Returns all blocks in the overflow stack of a class to slabs, and forgets what the overflow
/// stack learned.
pub(crate) fn empty(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) {
    return_to_slabs(owner, state, class, usize::MAX);
    state.overflow.of(class).close(class);
}

/// Returns all blocks in the overflow stacks of all classes to slabs: see [`empty`].
pub(crate) fn empty_all(owner: &'static Owner, state: &mut OwnerState) {
    if state.overflow.bytes > 0 {
        SizeClass::all().for_each(|class| empty(owner, state, class));
    }
}

fn return_to_slabs(owner: &'static Owner, state: &mut OwnerState, class: SizeClass, n: usize) {
    let mut left = n;
    while let Some((blocks, some)) = state.overflow.of(class).lift(class, left) {
        left -= some;
        note_moved(owner, state, class, 0, some);
        // SAFETY: `some` blocks lie there until the overflow stack is used again.
        let blocks = unsafe { core::slice::from_raw_parts(blocks.as_ptr(), some) };
        give_back(owner, state, class, blocks);
    }
}

/// Notes how many blocks came into an overflow stack, and how many left it.
fn note_moved(owner: &Owner, state: &mut OwnerState, class: SizeClass, came: usize, left: usize) {
    state.overflow.bytes += came * class.size();
    state.overflow.bytes -= left * class.size();
    owner.set_overflowed(class, state.overflow.of(class).count);
}
