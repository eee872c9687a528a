//! Cutting a run in two and making one of two neighbours: records and page map together.

use super::dense::DENSE;
use super::extent::{Extent, ExtentState};
use super::huge::{ADVISED, PARTLY};
use super::in_hand::InHand;
use super::moves;
use super::page_map;
use crate::ground::units::{LG_PAGE, PAGE};

/// Cuts `extent` after its first `pages` pages and returns the rest, of which `tail` becomes the
/// record. `extent` is in no list. `from` is the list that parts of the rest go back to.
pub(super) fn split(
    extent: &'static Extent,
    pages: usize,
    tail: &'static Extent,
    from: ExtentState,
) -> InHand {
    debug_assert!(pages > 0 && pages < extent.pages());
    tail.set_range(extent.base() + (pages << LG_PAGE), extent.pages() - pages);
    tail.zeroed.set(extent.zeroed.get());
    tail.head.set(false);
    moves::mark(tail, extent.mapping());
    extent.set_range(extent.base(), pages);
    let rest = InHand::hold(tail, from);
    page_map::set_ends(extent);
    page_map::set_ends(tail);
    rest
}

/// Makes `right`, which begins where `left` ends, a part of `left`. `left` is in no list. Returns
/// the record of `right`, which is free.
pub(super) fn merge(left: &'static Extent, right: InHand) -> &'static Extent {
    debug_assert_eq!(left.end(), right.base());
    let right = right.set_aside();
    page_map::clear_ends(left);
    page_map::clear_ends(right);
    if matches!(right.mapping(), DENSE | PARTLY) {
        moves::mark(left, right.mapping());
    }
    moves::mark(right, 0);
    left.zeroed.set(left.zeroed.get() && right.zeroed.get());
    left.set_range(left.base(), left.pages() + right.pages());
    page_map::set_ends(left);
    right
}

/// Whether runs of two mappings may be one: one of chunks and an ordinary one are one of chunks, of
/// two in huge pages all counts as if it had the room of either.
pub(super) fn may_join(a: u16, b: u16) -> bool {
    let pair = (a, b);
    a == b || matches!(pair, (0, DENSE) | (DENSE, 0) | (ADVISED, PARTLY) | (PARTLY, ADVISED))
}

/// The neighbour before `extent` in the same arena, reservation, of a mapping that fits,
/// if it is in `state`.
pub(crate) fn left_neighbour(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    if extent.head.get() {
        return None;
    }
    let left = page_map::lookup(extent.base().wrapping_sub(PAGE)).extent()?;
    // The arena of a record never changes, and runs of our own arena are guarded by our lock.
    let free = left.arena() == extent.arena() && left.state.get() == state;
    let ours = free && may_join(left.mapping(), extent.mapping());
    if ours && left.end() == extent.base() { Some(left) } else { None }
}

/// The neighbour after `extent` in the same arena, reservation, of a mapping that fits,
/// if it is in `state`.
pub(crate) fn right_neighbour(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    neighbour_behind(extent, state).filter(|right| may_join(right.mapping(), extent.mapping()))
}

/// The same, whatever its mapping.
pub(super) fn neighbour_behind(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    let right = page_map::lookup(extent.end()).extent()?;
    let ours = right.arena() == extent.arena() && right.state.get() == state;
    if ours && !right.head.get() && right.base() == extent.end() { Some(right) } else { None }
}
