//! The free runs beside a run, found by the page map.

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::system::mapping::Mapping;
use crate::ground::units::PAGE;

/// The neighbour before `extent` in the same arena and reservation, if it is in `state` and its
/// mapping fits.
pub(crate) fn left_neighbour(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    if extent.marks.is_head() {
        return None;
    }
    let left = page_map::lookup(extent.base().wrapping_sub(PAGE)).extent()?;
    // The arena of a record never changes, and the lock of this arena guards its runs.
    let free = left.arena() == extent.arena() && left.state.get() == state;
    let ours = free && Mapping::merged(left.mapping(), extent.mapping()).is_some();
    if ours && left.end() == extent.base() { Some(left) } else { None }
}

/// The neighbour after `extent` in the same arena and reservation, if it is in `state` and its
/// mapping fits.
pub(crate) fn right_neighbour(extent: &Extent, state: ExtentState) -> Option<&'static Extent> {
    let right = page_map::lookup(extent.end()).extent()?;
    let free = right.arena() == extent.arena() && right.state.get() == state;
    let ours = free && Mapping::merged(extent.mapping(), right.mapping()).is_some();
    if ours && !right.marks.is_head() && right.base() == extent.end() { Some(right) } else { None }
}
