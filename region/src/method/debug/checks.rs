//! The checks of blocks, in use and freed.

use super::super::Method;
use super::super::best::Best;
use super::block::{self, FRONT, Front};
use super::{Debug, Found, each_block, with_best};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::mode;
use crate::position::Position;
use crate::warning::Trouble;

/// Returns where the first overwritten byte around a block in use lies, counted from the block.
fn damage(at: usize, found: &Found) -> Option<isize> {
    match found.front {
        Some(front) => block::overwritten(at, front.size, found.end),
        None => Some(-FRONT.cast_signed()),
    }
}

/// Checks a block in use, and warns the first time that it is found to be overwritten. Returns its
/// size.
pub(super) fn examine<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: usize,
    found: &Found,
) -> usize {
    let size = found.size(at);
    if let Some(place) = damage(at, found)
        && !found.front.is_some_and(|front| front.reported)
    {
        let allocated = match found.front {
            Some(_) => block::position(call.words(), at, false),
            None => Position::UNKNOWN,
        };
        call.warn(Trouble::Overwritten { block: at, at: place, allocated });
        Front { size, freed: false, reported: true }.write(call.words(), at);
    }
    size
}

/// Warns the first time that a freed block is found to be written. Returns whether it is.
pub(super) fn warn_if_written<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: usize,
    front: Front,
) -> bool {
    let Some(place) = block::written(at, front.size) else { return false };
    if !front.reported {
        let allocated = block::position(call.words(), at, true);
        call.warn(Trouble::WrittenAfterFree { block: at, at: place, allocated });
        Front { reported: true, ..front }.write(call.words(), at);
    }
    true
}

/// Checks all blocks before a call, if the region wants so.
pub(super) fn check_if_wanted<D: Discipline>(call: &mut Call<'_, Debug, D>) {
    if call.head().mode() & mode::DBCHECK != 0 {
        check(call);
    }
}

/// Checks all blocks. Returns how many are corrupt.
pub(super) fn check<D: Discipline>(call: &mut Call<'_, Debug, D>) -> usize {
    let mut corrupt = with_best(call, |best| Best::check(best)).unwrap_or(0);
    for (at, found) in each_block(call) {
        let is_corrupt = match found.front {
            Some(front) if front.freed => warn_if_written(call, at, front),
            _ => {
                let is_damaged = damage(at, &found).is_some();
                examine(call, at, &found);
                is_damaged
            }
        };
        corrupt += usize::from(is_corrupt);
    }
    corrupt
}
