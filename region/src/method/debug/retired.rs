//! Freed blocks: they are filled with zeros and kept for a while. Those kept longest go first.

use super::super::Method;
use super::super::best::Best;
use super::block::{self, FRONT, Front};
use super::checks::warn_if_written;
use super::{Debug, State, with_best};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::words::in_order;

/// Fills a block with zeros and keeps it for a while.
pub(super) fn retire<D: Discipline>(call: &mut Call<'_, Debug, D>, at: usize, size: usize) {
    block::wipe(at, size);
    in_order();
    Front { size, freed: true, reported: false }.write(call.words(), at);
    block::forget_function(call.words(), at);
    call.state().quarantine.push(call.words(), at, size + FRONT);
    release_freed(call, |state| state.quarantine.is_full());
}

/// Frees the blocks that were kept longest, as long as `wanted`. Returns whether there were any.
pub(super) fn release_freed<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    wanted: impl Fn(&State) -> bool,
) -> bool {
    let mut any = false;
    while wanted(call.state()) {
        let (words, state) = (call.words(), call.state());
        let at = state.quarantine.oldest(words);
        let front = if at == 0 { None } else { Front::read(words, at) };
        let Some(front) = front.filter(|front| front.freed) else { break };
        state.quarantine.pop(words, at, front.size + FRONT);
        warn_if_written(call, at, front);
        // What is made of this memory later has no size until it is made.
        block::erase_front(words, at);
        in_order();
        // A block whose header was overwritten stays unused.
        let _ = with_best(call, |best| Best::free(best, at - FRONT));
        any = true;
    }
    any
}
