//! Blocks that move between the bins of a cache and its depots. Under the owner's lock.

use super::give_back::give_back;
use crate::back::map::page_map;
use crate::ground::size_class::SizeClass;
use crate::middle::owners::depot::Slot;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;

/// Takes blocks that a full bin gives up. Keeps the first of them in the depot, within `most` bytes
/// for all classes, and returns the others to their slabs.
pub(crate) fn spill(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
    blocks: &[Slot],
    most: usize,
) {
    let room = state.depots.of(class).room() > 0;
    let bytes =
        if room && made(owner, blocks) { most.saturating_sub(state.depots.bytes) } else { 0 };
    let depot = state.depots.of(class);
    let n = depot.park(class, blocks, bytes);
    let home = blocks.get(n..).unwrap_or_default();
    depot.gone = depot.gone.saturating_add(home.len() as u32);
    parked(owner, state, class, n, 0);
    if !home.is_empty() {
        give_back(owner, state, class, home);
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

/// Takes up to `want` of the newest blocks from the depot, and writes them to `slots`, the newest
/// last. Returns how many.
///
/// # Safety
/// `slots` has room for `want` blocks.
pub(crate) unsafe fn unpark(
    owner: &Owner,
    state: &mut OwnerState,
    class: SizeClass,
    want: usize,
    slots: *mut Slot,
) -> usize {
    let depot = state.depots.of(class);
    let n = want.min(depot.count as usize);
    let mut left = n;
    while let Some((blocks, some)) = depot.lift(class, left) {
        left -= some;
        let place = slots.wrapping_add(left);
        // SAFETY: `some` blocks lie there, and fit below those that are written (the caller's
        // promise).
        unsafe { place.copy_from_nonoverlapping(blocks.as_ptr(), some) };
    }
    parked(owner, state, class, 0, n);
    n
}

/// One step of collection: half of the blocks untouched for some rounds return to their slabs.
pub(crate) fn age_depot(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) {
    let n = state.depots.of(class).age();
    send_home(owner, state, class, n);
}

/// Returns all blocks in the depot of a class to slabs, and forgets what the depot learned.
pub(crate) fn empty_depot(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) {
    send_home(owner, state, class, usize::MAX);
    state.depots.of(class).close(class);
}

/// Returns all blocks in the depots of all classes to slabs: see [`empty_depot`].
pub(crate) fn empty_depots(owner: &'static Owner, state: &mut OwnerState) {
    if state.depots.bytes > 0 {
        SizeClass::all().for_each(|class| empty_depot(owner, state, class));
    }
}

fn send_home(owner: &'static Owner, state: &mut OwnerState, class: SizeClass, n: usize) {
    let mut left = n;
    while let Some((blocks, some)) = state.depots.of(class).lift(class, left) {
        left -= some;
        parked(owner, state, class, 0, some);
        // SAFETY: `some` blocks lie there until the depot is used again.
        let blocks = unsafe { core::slice::from_raw_parts(blocks.as_ptr(), some) };
        give_back(owner, state, class, blocks);
    }
}

/// Notes how many blocks came into a depot, and how many left it.
fn parked(owner: &Owner, state: &mut OwnerState, class: SizeClass, came: usize, left: usize) {
    state.depots.bytes += came * class.size();
    state.depots.bytes -= left * class.size();
    owner.set_parked(class, state.depots.of(class).count);
}
