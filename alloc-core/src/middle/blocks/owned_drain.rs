//! The slabs that a cache owns: taking in what others have freed. Under the owner's lock.

use super::slab_guard::{absorb, stack_of_remote};
use crate::ground::size_class::SizeClass;
use crate::middle::events::Event;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;

/// Takes in what others have freed into the owner's slabs of a class. Returns whether slabs went
/// back to their arena.
pub(crate) fn drain(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) -> bool {
    let pending = owner.pending(class);
    if pending.is_empty() {
        return false;
    }
    let mut released = false;
    let take = |remote| {
        // SAFETY: what lies on a pending stack is the field of a slab's record.
        let slab = unsafe { Slab::of_remote(remote) };
        let freed = absorb(slab);
        owner.events.add(Event::Drained, 1);
        owner.ledger.home(class.index()).absorbed.add(freed as u64);
        released |= state.refile(slab, freed);
    };
    // SAFETY: records and stacks live for ever; `take` absorbs.
    unsafe { pending.drain(Guard::Owner(owner.id()), take, stack_of_remote) };
    released
}

/// As [`drain`], and also gives the slabs back that are kept although no block of them is in use.
pub(crate) fn drain_and_release(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
) -> bool {
    let mut released = drain(owner, state, class);
    let slabs = state.slabs(class);
    // A slab without a block in use is a spare one, or it waits on the stack for its release. Most
    // caches have none, so their slabs are not looked at.
    while slabs.partial.has_spares()
        && let Some(slab) = slabs.partial.find_unused()
    {
        if !slabs.release(slab) {
            break;
        }
        released = true;
    }
    released
}
