//! Cutting a run in two and making one of two neighbours: records and page map together.

use super::extent::{Extent, ExtentState};
use super::in_hand::InHand;
use super::mapping::Mapping;
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
    tail.set_mapping(extent.mapping());
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
    if let Some(mapping) = Mapping::merged(left.mapping(), right.mapping()) {
        left.set_mapping(mapping);
    }
    right.set_mapping(Mapping::Ordinary);
    left.zeroed.set(left.zeroed.get() && right.zeroed.get());
    left.set_range(left.base(), left.pages() + right.pages());
    page_map::set_ends(left);
    right
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
    let ours = free && Mapping::merged(left.mapping(), extent.mapping()).is_some();
    if ours && left.end() == extent.base() { Some(left) } else { None }
}

/// The neighbour after `extent` in the same arena, reservation, of a mapping that fits,
/// if it is in `state`.
pub(crate) fn right_neighbour(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    let fits = |right: &&Extent| Mapping::merged(extent.mapping(), right.mapping()).is_some();
    neighbour_behind(extent, state).filter(fits)
}

/// The same, whatever its mapping.
pub(super) fn neighbour_behind(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    let right = page_map::lookup(extent.end()).extent()?;
    let ours = right.arena() == extent.arena() && right.state.get() == state;
    if ours && !right.head.get() && right.base() == extent.end() { Some(right) } else { None }
}
