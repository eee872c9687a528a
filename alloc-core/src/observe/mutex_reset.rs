//! Resets the statistics of every lock.

use crate::back::metadata::METADATA;
use crate::front::cache::registry;
use crate::front::life::{former_thread, helper};
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena_list;
use crate::middle::passes::decay_pass::PASS;

/// Sets all of [`MutexStats`](super::MutexStats) to zero. Takes each lock once, one after the
/// other. Source: jemalloc(3), `stats.mutexes.reset`.
///
/// ```
/// lumalloc::observe::reset_mutexes();
/// let mut detail = lumalloc::observe::Detail::new();
/// detail.refresh();
/// assert!(detail.mutexes().registry.num_ops < 10);
/// ```
pub fn reset_mutexes() {
    // Who holds this lock may wait for the background thread, on which extent hooks run.
    if !helper::is_this_thread() {
        former_thread::CHANGE.reset_history();
    }
    PASS.reset_history();
    registry::REGISTRY.reset_history();
    for cache in registry::all() {
        cache.owner.state.reset_history();
    }
    arena_list::MAKING.reset_history();
    for arena in arena_list::all() {
        for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
            arena.bin(class).slabs.reset_history();
        }
        arena.pages.reset_history();
    }
    METADATA.reset_history();
}
