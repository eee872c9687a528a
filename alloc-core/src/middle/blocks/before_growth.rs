//! What a cache does before it takes new memory for a slab: what others have freed into slabs of
//! caches is taken in, so that empty slabs can be used again. A cache does this for itself at its
//! next slow path, which may be long after, because its thread waits for a processor or sleeps.

use super::owned_drain;
use crate::ground::size_class::SizeClass;
use crate::middle::owners::owner::{Owner, OwnerState};

/// Other caches that are looked at for one slab.
pub(crate) const MOST: u32 = 4;

/// Takes in what others have freed into the slabs of `owner`, and then into those of each of
/// `others` whose lock is free. After each of them that gave slabs back, calls `find`, until this
/// returns a value. The caller holds the lock of `owner` and none of a bin or an arena.
#[cold]
pub(crate) fn take_in_until<R>(
    owner: &'static Owner,
    state: &mut OwnerState,
    others: impl Iterator<Item = &'static Owner>,
    mut find: impl FnMut() -> Option<R>,
) -> Option<R> {
    // Slabs that this cache keeps without a block in use stay: it is at work.
    if drain_all(owner, state, owned_drain::drain)
        && let Some(found) = find()
    {
        return Some(found);
    }
    for other in others.filter(|other| !core::ptr::eq(*other, owner)) {
        let Some(mut state) = other.state.try_lock() else { continue };
        let released = drain_all(other, &mut state, owned_drain::drain_and_release);
        drop(state);
        if released && let Some(found) = find() {
            return Some(found);
        }
    }
    None
}

/// Calls `drain` for each class. Returns whether slabs went back to their arena.
fn drain_all(
    owner: &'static Owner,
    state: &mut OwnerState,
    drain: impl Fn(&'static Owner, &mut OwnerState, SizeClass) -> bool,
) -> bool {
    SizeClass::all().filter(|class| drain(owner, state, *class)).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::blocks::{give_back::give_back, owned_slabs};
    use crate::middle::slabs::slab_list::tests::LOOKED;

    /// Other tests may take in from caches whose lock is free, so only locked ones are sure to have
    /// something to take in.
    #[test]
    fn what_others_freed_is_taken_in_from_all_caches_whose_lock_is_free() {
        const SLABS: usize = 8;
        let caches = [(); 3].map(|()| new_cache());
        let [own, busy, free] = caches.map(|cache| &cache.owner);
        let class = SizeClass::of(4096);
        let blocks = [own, busy, free].map(|owner| {
            let mut blocks = Vec::new();
            while owner.state.lock().bins[class.index()].full.length() < SLABS {
                let give = |block| blocks.push(block);
                owned_slabs::fill(owner, &mut owner.state.lock(), class, class.slots(), give);
            }
            blocks
        });
        // Other tests look into all caches.
        let locked = |owner: &'static Owner| {
            loop {
                match owner.state.try_lock() {
                    Some(state) => return state,
                    None => std::thread::yield_now(),
                }
            }
        };
        let (mut own_state, busy_state, mut free_state) = (locked(own), locked(busy), locked(free));
        give_back(free, &mut free_state, class, &blocks[0]);
        give_back(own, &mut own_state, class, &blocks[1]);
        give_back(own, &mut own_state, class, &blocks[2]);
        let waits = |owner: &Owner| !owner.pending(class).is_empty();
        assert!(waits(own) && waits(busy) && waits(free));

        let others = || [own, busy, free].into_iter();
        assert_eq!(take_in_until(own, &mut own_state, others(), || Some(1)), Some(1));
        assert!(!waits(own) && waits(busy) && waits(free));
        drop(free_state);
        for _ in 0..1000 {
            assert_eq!(take_in_until(own, &mut own_state, others(), || None::<u32>), None);
            if !waits(free) {
                break;
            }
            std::thread::yield_now();
        }
        assert!(waits(busy) && !waits(free));
        drop((own_state, busy_state));
        caches.into_iter().for_each(end);
    }

    /// Each new slab would cost a look at them.
    #[test]
    fn partly_used_slabs_of_other_caches_are_not_looked_at() {
        let caches = [(); 2].map(|()| new_cache());
        let [own, other] = caches.map(|cache| &cache.owner);
        let classes = [SizeClass::of(512), SizeClass::of(4096)];
        let mut others_state = other.state.lock();
        for class in classes {
            let mut blocks = Vec::new();
            while others_state.bins[class.index()].full.length() < 20 {
                let give = |block| blocks.push(block);
                owned_slabs::fill(other, &mut others_state, class, class.slots(), give);
            }
            // One block of each slab stays in use, and one slab is kept without any.
            let (rest, last) = blocks.split_at(blocks.len() - class.slots());
            let freed: Vec<_> = rest.chunks(class.slots()).flat_map(|slab| &slab[1..]).collect();
            give_back(
                other,
                &mut others_state,
                class,
                &freed.into_iter().copied().collect::<Vec<_>>(),
            );
            give_back(other, &mut others_state, class, last);
        }
        drop(others_state);
        let take_in = || {
            let before = LOOKED.get();
            let others = || [other].into_iter();
            let found = take_in_until(own, &mut own.state.lock(), others(), || None::<u32>);
            assert_eq!(found, None);
            LOOKED.get() - before
        };
        take_in();
        assert_eq!(other.state.lock().partial_slabs(classes[0]), 19);
        assert_eq!(take_in(), 0);
        caches.into_iter().for_each(end);
    }
}
