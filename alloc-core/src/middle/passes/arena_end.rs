//! The end of what a created arena holds, and of the arena: reset and destroy. Source: jemalloc(3),
//! `arena.<i>.reset`, `arena.<i>.destroy`.
//!
//! A reset takes the locks of all caches and of the arena's bins, so that no slab changes hands.
//! Slabs of the arena are struck from the lists of their guards, and each run in use becomes an
//! unused one. Blocks of the arena that still lie in a thread's cache are noticed when they are
//! returned, unless their place has been handed out anew.
//!
//! ```text
//!   live ──reset──▶ live
//!   live ──destroy──▶ ending: reset, addresses go back ──▶ dead ──create──▶ live
//! ```

use crate::back::hooked::hook_calls;
use crate::back::map::page_map;
use crate::back::release;
use crate::ground::callback;
use crate::ground::fatal;
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::purge_gate::GATE;
use crate::middle::blocks::owned_drain;
use crate::middle::blocks::shared_slabs;
use crate::middle::blocks::slab_guard::{absorb, stack_of, stack_of_remote};
use crate::middle::blocks::transfer_moves;
use crate::middle::events::UNCACHED;
use crate::middle::handed_out;
use crate::middle::owners::owner;
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::profile::sampler;

/// Ends what [`Arena::begin_end`] began: the index may be used again.
pub(crate) fn complete_end(arena: &Arena) {
    arena.complete_end();
    arena_list::note_end();
}

/// In the child of a fork: arenas that other threads were destroying are live, with what is left of
/// them, and can be destroyed anew. Where a hook forks they stay as they are, because the hook may
/// belong to an arena that the forking thread goes on to destroy.
pub(crate) fn forget_in_child() {
    if !callback::is_in_hook() {
        arena_list::all().for_each(|arena| arena.life().forget_end());
    }
}

/// Discards every block of an arena. The caller holds the lock of the pass and that of the list of
/// caches, so no cache is made meanwhile.
pub(crate) fn discard_all(arena: &'static Arena) {
    for owner in owner::all() {
        owner.state.lock_for_fork();
    }
    for class in SizeClass::all() {
        arena.bin(class).slabs.lock_for_fork();
    }
    strike(arena);
    loop {
        let next = arena.pages.lock().allocator.first_active();
        let Some(extent) = next else { break };
        match Slab::of(page_map::lookup(extent.base())) {
            Some(slab) => {
                if slab.is_for_samples() || sampler::sees_all() {
                    note_discarded(slab);
                }
                discard_slab(arena, slab);
            }
            None => {
                sampler::note_freed(extent.base());
                arena.pages.lock().free_large(extent);
            }
        }
    }
    arena.note_reset();
    for class in SizeClass::all() {
        // SAFETY: taken above, by this thread.
        unsafe { arena.bin(class).slabs.unlock_in_parent() };
    }
    for owner in owner::all() {
        // SAFETY: taken above, by this thread; no owner was made since (the caller's promise).
        unsafe { owner.state.unlock_in_parent() };
    }
}

/// Takes in the blocks that were freed remotely, and strikes the arena's slabs from all lists.
fn strike(arena: &'static Arena) {
    for class in SizeClass::all() {
        // SAFETY: this thread holds the lock.
        let slabs = unsafe { arena.bin(class).slabs.held() };
        transfer_moves::empty(arena, slabs);
        shared_slabs::drain(arena, slabs, class, &UNCACHED);
        slabs.strike_all();
    }
    for owner in owner::all() {
        // SAFETY: this thread holds the lock.
        let state = unsafe { owner.state.held() };
        for class in SizeClass::all() {
            owned_drain::drain(owner, state, class);
            let slabs = state.slabs(class);
            slabs.partial.remove_if(|slab| slab.arena() == arena.id());
            slabs.full.remove_if(|slab| slab.arena() == arena.id());
        }
    }
}

/// Ends a slab that is in no list.
///
/// No thread frees a block of it meanwhile. Each remote free, from its bit to the push on a stack,
/// is made under the lock of an owner ([`give_back`](crate::middle::blocks::give_back)) or of the
/// arena's bin ([`uncached`](crate::middle::blocks::uncached)), and stacks are drained under these
/// locks. This thread holds all of them, and so does a fork. So a slab that is PENDING lies on the
/// stack of its guard. One look there is enough, and a slab that is still PENDING after it would
/// stay so for ever.
fn discard_slab(arena: &'static Arena, slab: &'static Slab) {
    let class = slab.class();
    if !slab.remote.release() {
        take_in(arena, slab, class);
        if !slab.remote.release() {
            fatal::lost_slab(slab.base(), slab.place());
        }
    }
    // Under the bin's lock, which this thread holds.
    arena.bin(class).flushed.add(slab.used() as u64);
    handed_out::take_back(slab.used() * class.size());
    arena.take_back(slab);
}

/// Notes the end of the samples in a slab.
fn note_discarded(slab: &Slab) {
    let blocks = (0..slab.class().slots()).map(|slot| slab.base() + slot * slab.class().size());
    blocks.for_each(sampler::note_freed);
}

/// Takes a slab off the pending stack on which it may lie.
fn take_in(arena: &'static Arena, slab: &'static Slab, class: SizeClass) {
    let Some(guard) = slab.remote.guard() else { return };
    let Some(stack) = stack_of(guard, arena.id(), class) else { return };
    let take = |remote| {
        // SAFETY: what lies on a pending stack is the field of a slab's record.
        let other = unsafe { Slab::of_remote(remote) };
        let freed = absorb(other);
        if other.arena() == arena.id() {
            return;
        }
        if let Guard::Owner(id) = guard
            && let Some(owner) = owner::by_id(id)
        {
            // SAFETY: this thread holds the locks of all owners.
            unsafe { owner.state.held() }.refile(other, freed);
        }
    };
    // SAFETY: stacks live for ever.
    let stack = unsafe { &*stack };
    // SAFETY: records and stacks live for ever; `take` absorbs.
    unsafe { stack.drain(guard, take, stack_of_remote) };
}

/// Gives all addresses of an arena back, of which no block is in use. Addresses that the system
/// does not take go to the first arena. The caller holds no lock.
pub(crate) fn give_addresses_back(arena: &'static Arena) {
    loop {
        // The gate is closed while a fork is under way, which does not wait for hooks.
        let inside = GATE.enter();
        if inside.is_none() && !arena.is_hooked() {
            os::yield_now();
            continue;
        }
        let _inside = inside.filter(|_| !arena.is_hooked());
        let (next, is_done) = {
            let allocator = &mut arena.pages.lock().allocator;
            let next = allocator.take_unused();
            // Under one lock: another thread may file a run that it has in hand at any moment.
            let is_done = next.is_none() && allocator.hooks().is_at_rest();
            if is_done {
                allocator.hooks().forget_requests();
            }
            (next, is_done)
        };
        if is_done {
            return;
        }
        let Some(extent) = next else {
            // Another thread gives a run back, or asks hooks for more.
            os::yield_now();
            continue;
        };
        let provider = arena.provider();
        // The run has left the page map; another thread may get the addresses at once.
        let gone = if arena.is_hooked() {
            hook_calls::dalloc_or_destroy(arena.hooks(), extent.run());
            true
        } else {
            release::release(provider, extent.run())
        };
        let (base, pages) = (extent.base(), extent.pages());
        arena.pages.lock().allocator.hooks().strike_off(extent);
        if !gone && let Some(first) = arena_list::by_id(0) {
            first.pages.lock().allocator.adopt(base, pages);
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/common/this_program.rs"]
mod this_program;

#[cfg(test)]
mod tests {
    use super::this_program::this_program;
    use super::*;
    use crate::middle::arenas::choose_arena;
    use crate::middle::blocks::uncached;
    use std::string::String;

    /// A new arena, and a slab of its bin whose blocks are all in use.
    fn with_a_full_slab() -> (&'static Arena, &'static Slab) {
        let arena = choose_arena::create().expect("an arena");
        let class = SizeClass::of(20_000);
        let blocks = [(); 2].map(|()| uncached::allocate(arena, class));
        assert!(blocks.iter().all(|block| !block.is_null()));
        let slab = Slab::of(page_map::lookup(blocks[0] as usize)).expect("a slab");
        (arena, slab)
    }

    #[test]
    fn a_pending_slab_is_found_on_the_stack_of_its_guard() {
        let (arena, slab) = with_a_full_slab();
        let (id, class) = (arena.id(), slab.class());
        // SAFETY: a block in use, and records live for ever.
        let freed = unsafe { slab.remote.free(0, 1, |guard| stack_of(guard, id, class)) };
        assert!(freed.expect("a block").pushed && !slab.remote.release());
        for class in SizeClass::all() {
            arena.bin(class).slabs.lock_for_fork();
        }
        // SAFETY: this thread holds the lock.
        while unsafe { arena.bin(class).slabs.held() }.pop().is_some() {}
        discard_slab(arena, slab);
        for class in SizeClass::all() {
            // SAFETY: taken above, by this thread.
            unsafe { arena.bin(class).slabs.unlock_in_parent() };
        }
        assert_eq!(slab.remote.guard(), None, "free");
    }

    /// Only a fault of the allocator itself makes such a slab: a push that never comes.
    #[test]
    fn a_pending_slab_on_no_stack_ends_the_process() {
        let name = concat!(module_path!(), "::child").trim_start_matches("lumalloc::");
        let output = this_program()
            .args(["--ignored", "--exact", name, "--nocapture"])
            .env("LUMALLOC_LOST_SLAB", "1")
            .output()
            .expect("a child");
        let [told, said] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let expected = told.lines().find(|line| line.starts_with("<lumalloc>")).expect("words");
        let said = said.lines().next().and_then(|line| line.split("; from").next());
        assert_eq!(said, Some(expected));
        assert!(!output.status.success());
    }

    #[test]
    #[ignore = "the scenario of the test above"]
    fn child() {
        if std::env::var_os("LUMALLOC_LOST_SLAB").is_none() {
            return;
        }
        // SAFETY: the alarm ends the process where it would wait for ever.
        unsafe { libc::alarm(60) };
        let (arena, slab) = with_a_full_slab();
        std::println!(
            "\n<lumalloc>: internal error: lost slab of {:#x}: PENDING, and on no stack (size \
             20480, arena {})",
            slab.base(),
            arena.id()
        );
        // SAFETY: a block in use, and records live for ever.
        unsafe { slab.remote.free(0, 1, |_| None) }.expect("a block");
        discard_all(arena);
    }
}
