//! New memory for a run.

use super::assembly;
use super::block_end;
use super::dense::Rest;
use super::memory::Request;
use crate::back::aging::limit::Bounds;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::huge;
use crate::back::runs::in_hand::InHand;

/// Takes a run of new memory for an arena with `active` pages in use. Returns it and how many of
/// its pages had no memory, or `None` if there are no addresses.
///
/// If the caller writes most of it, the memory of unused runs comes first, and then huge pages.
pub(in crate::back) fn take(
    runs: &mut FreeRuns,
    rest: &mut Rest,
    bounds: &Bounds,
    active: usize,
    request: Request,
) -> Option<(InHand, usize)> {
    let Request { pages, align, .. } = request;
    if !request.is_filled() {
        return Some((runs.take_addresses(pages, align)?, pages));
    }
    if let Some(made) = assembly::take_from_unused(runs, request) {
        return Some(made);
    }
    let fresh = rest
        .take_dense(runs, bounds, active, request)
        .or_else(|| block_end::take_whole_huge(runs, request))
        .or_else(|| runs.take_addresses(pages, huge::best_align(pages, align)))
        .or_else(|| runs.take_addresses(pages, align))?;
    Some((fresh, pages))
}
