//! A look at all structures, in builds with the feature `checks`. A structure that contradicts
//! itself ends the process.

use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::owners::owner;

/// Checks the structures of all owners and arenas, each under its lock. The caller holds no lock
/// but that of the pass.
pub(crate) fn check_all() {
    for owner in owner::all() {
        let state = owner.state.lock();
        state.check(owner.id());
        owner.ledger.check();
    }
    arena_list::all().for_each(check_arena);
}

fn check_arena(arena: &'static Arena) {
    for class in SizeClass::all() {
        let bin = arena.bin(class);
        if !bin.is_untouched() {
            bin.slabs.lock().check(arena.id(), class);
        }
    }
    arena.pages.lock().allocator.check();
}
