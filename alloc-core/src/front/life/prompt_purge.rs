//! Purges that a slow path makes at once: of arenas with hooks, and of all arenas at the soft
//! bound. They are not left to the background thread.

use crate::back::aging::soft_limit;
use crate::front::cache::current;
use crate::middle::arenas::{arena_hooks, purge_gate};
use crate::middle::passes::decay_pass;

/// Returns whether a purge is due.
#[inline]
pub(super) fn is_due() -> bool {
    purge_gate::is_hooked_due() || soft_limit::is_due()
}

/// Makes the purges that are due. The caller holds no lock.
#[cold]
#[inline(never)]
pub(super) fn run() {
    if current::lives_on_reserve() {
        return;
    }
    if purge_gate::is_hooked_due() {
        arena_hooks::tick();
    }
    if soft_limit::is_due() && soft_limit::reached() {
        decay_pass::purge(|_| true);
        soft_limit::note_purge();
    }
}
