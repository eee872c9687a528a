//! How long the use of memory has not fallen far.

use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::arena_settings::{self, Aging};
use crate::middle::handed_out;
use crate::middle::passes::decay_pass;

/// A background thread that runs for a time ends when memory has not fallen far in so many decay
/// times, of the arena whose unused pages take longest.
const PERIODS: u32 = 2;

/// The decay times in which the use of memory has not fallen far, as seen by one thread.
pub(super) struct Quiet {
    periods: u32,
    /// When the present decay time began.
    began: u64,
}

impl Quiet {
    /// Begins at `now`, in milliseconds.
    pub(super) fn since(now: u64) -> Quiet {
        Quiet { periods: 0, began: now }
    }

    /// Notes the time. Returns whether the use of memory has not fallen far for long.
    pub(super) fn note(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.began) >= longest_decay_time() {
            self.began = now;
            handed_out::begin_period();
            self.periods = if handed_out::has_fallen() { 0 } else { self.periods + 1 };
        }
        self.periods >= PERIODS
    }
}

/// Returns the milliseconds after which the last of the pages that are unused now goes back.
fn longest_decay_time() -> u64 {
    let of_arena = |arena: &Arena| {
        let millis = |aging| u64::try_from(arena_settings::decay_ms(arena, aging)).unwrap_or(0);
        millis(Aging::Dirty).saturating_add(millis(Aging::Muzzy))
    };
    let aging = arena_list::all().filter(|arena| arena.is_live() && arena.has_aging_pages());
    aging.map(of_arena).fold(decay_pass::decay_time(), u64::max)
}
