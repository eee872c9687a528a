//! The safe writes: what may be changed while the process runs.

use crate::front::{slow, thread_life};
use crate::middle::{arena, choose_arena, decay_pass};

/// Stands for all arenas. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
pub const ARENAS_ALL: u32 = 4096;

/// Purges the unused pages of an arena, or of all for [`ARENAS_ALL`], whatever their age.
///
/// `false`: there is no arena with this index. Source: jemalloc(3), `arena.<i>.purge`.
///
/// ```
/// assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
/// assert!(!lumalloc::control::purge(4000));
/// ```
pub fn purge(index: u32) -> bool {
    if index != ARENAS_ALL && index >= narenas() {
        return false;
    }
    decay_pass::purge(|arena| index == ARENAS_ALL || arena.id() == index);
    true
}

/// Sends all cached blocks of the calling thread home. `false`: it has no cache. Source:
/// jemalloc(3), `thread.tcache.flush`.
pub fn flush_thread_cache() -> bool {
    thread_life::flush_current()
}

/// The largest number of automatic arenas: the indices below it are theirs. Source: jemalloc(3),
/// `arenas.narenas`.
#[must_use]
pub fn narenas() -> u32 {
    slow::real_cache();
    choose_arena::limit().max(arena::count())
}

/// Sets how many automatic arenas beside the first there may be (64 unless set), and answers what
/// it was. Arenas that exist stay. Source: vmalloc(3), `setregmax`.
///
/// ```
/// let before = lumalloc::control::set_regmax(3);
/// assert!(lumalloc::control::narenas() <= 4);
/// lumalloc::control::set_regmax(before);
/// ```
pub fn set_regmax(regmax: u32) -> u32 {
    choose_arena::set_regmax(regmax)
}
