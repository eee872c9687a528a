//! The slabs that a cache owns: taking blocks from them. Under the owner's lock.

use super::owned_drain::drain;
use super::slab_guard::is_cheap_to_absorb;
use super::{before_growth, shared_slabs};
use crate::back::page_allocator::Memory;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena_pages::ArenaPages;
use crate::middle::arenas::choose_arena;
use crate::middle::events::Event;
use crate::middle::owners::owner::{self, Owner, OwnerState};
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
        let home = &owner.home;
        let mut new = |pages: &mut ArenaPages, memory: Memory| {
            pages.new_slab(class, guard, memory.followed_if(fills))
        };
        let fresh = choose_arena::with_unused_pages(home, &mut new)
            .or_else(|| {
                let others = owner::in_turn(before_growth::MOST);
                before_growth::take_in_until(owner, state, others, || {
                    choose_arena::with_unused_pages(home, &mut new)
                })
            })
            .or_else(|| choose_arena::with_new_pages(home, &mut new));
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
