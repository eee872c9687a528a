//! The slabs that a cache owns: taking blocks from them, and taking in what others have freed.
//! Under the owner's lock.

use super::shared_slabs;
use super::slab_guard::{absorb, is_cheap_to_absorb, stack_of_remote};
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::choose_arena;
use crate::middle::events::Event;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_links::ListName;

/// Takes up to `want` blocks from the owner's slabs, the lowest free ones of each. If these have
/// none, takes in what others have freed, then adopts a slab that no cache owns, then makes a fresh
/// one. Returns how many: fewer than `want` if the owner's slabs have fewer, 0 without memory.
pub(crate) fn fill(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
    want: usize,
    mut give: impl FnMut(*mut u8),
) -> usize {
    debug_assert!(!class.is_shared(), "the transfer cache takes its blocks, and knows no owners");
    owner.events.add(Event::RefillOwned, 1);
    // Take in what others freed before touching more memory. Where a slab has many words that costs
    // more, so it is done only now and then.
    if is_cheap_to_absorb(class) || owner.activity.get().is_multiple_of(8) {
        drain(owner, state, class);
    }
    let mut taken = 0;
    loop {
        let slabs = state.slabs(class);
        while let Some(slab) = slabs.partial.first() {
            slabs.partial.use_spare(slab);
            let some = slab.take_lowest(want - taken, &mut give);
            owner.ledger.of(class.index(), slab.arena()).filled.add(some as u64);
            taken += some;
            if slab.is_full() {
                slabs.partial.remove(slab);
                slabs.full.push_front(slab, ListName::Full);
            }
            if taken == want {
                break;
            }
        }
        if taken > 0 {
            return taken;
        }
        drain(owner, state, class);
        if state.slabs(class).partial.first().is_none() && !obtain(owner, state, class) {
            return 0;
        }
    }
}

/// Adopts a slab from a bin or makes one. `false`: no memory.
fn obtain(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) -> bool {
    let slab = adopt(owner, class).or_else(|| {
        let guard = Guard::Owner(owner.id());
        let fills = state.slabs(class).full.is_long();
        let fresh = choose_arena::with_pages(&owner.home, |pages, memory| {
            pages.new_slab(class, guard, memory.followed_if(fills))
        });
        owner.events.add(Event::Fresh, u64::from(fresh.is_some()));
        fresh
    });
    match slab {
        Some(slab) => {
            state.slabs(class).partial.push_front(slab, ListName::Partial);
            true
        }
        None => false,
    }
}

fn adopt(owner: &'static Owner, class: SizeClass) -> Option<&'static Slab> {
    let home = owner.home.get();
    let mut slabs = home.bin(class).slabs.lock();
    shared_slabs::drain(home, &mut slabs, class, &owner.events);
    let slab = slabs.pop()?;
    owner.events.add(Event::Adopted, 1);
    slab.remote.transfer(Guard::Owner(owner.id()));
    Some(slab)
}

/// Takes in what others have freed into the owner's slabs of a class.
pub(crate) fn drain(owner: &'static Owner, state: &mut OwnerState, class: SizeClass) {
    let pending = owner.pending(class);
    if pending.is_empty() {
        return;
    }
    let take = |remote| {
        // SAFETY: what lies on a pending stack is the field of a slab's record.
        let slab = unsafe { Slab::of_remote(remote) };
        let freed = absorb(slab);
        owner.events.add(Event::Drained, 1);
        owner.ledger.home(class.index()).absorbed.add(freed as u64);
        state.refile(slab, freed);
    };
    // SAFETY: records and stacks live for ever; `take` absorbs.
    unsafe { pending.drain(Guard::Owner(owner.id()), take, stack_of_remote) };
}
