//! New memory for a run.

use super::assembly;
use super::dense::Rest;
use super::huge_page_policy::{self, Allowed, Backing, Heap};
use super::long_block;
use super::memory::Request;
use crate::back::aging::limit::Bounds;
use crate::back::runs::chunk_notes::CHUNK;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::InHand;
use crate::back::runs::low_runs::LowRuns;
use crate::back::system::thp;

/// Takes a run of new memory for an arena with `active` pages in use. Returns it and how many of
/// its pages had no memory, or `None` if there are no addresses.
pub(in crate::back) fn take(
    runs: &mut FreeRuns,
    rest: &mut Rest,
    bounds: &Bounds,
    active: usize,
    request: Request,
) -> Option<(InHand, usize)> {
    let Request { pages, align, .. } = request;
    let suits_chunks = request.is_written() && !request.is_long();
    if suits_chunks && let Some(run) = rest.take(runs, pages, align) {
        return Some((run, pages));
    }
    let (claim, heap) = if suits_chunks {
        rest.heap(active, request)
    } else {
        (None, Heap { used: 0, waiting: 0 })
    };
    let allowed = Allowed { blocks: thp::backs_blocks(), chunks: thp::backs_chunks() };
    let made = match huge_page_policy::backing(request, heap, allowed) {
        Backing::Small => None,
        Backing::Chunk if !is_filled(runs, rest, heap, request) => None,
        Backing::Chunk => rest.take_chunk(runs, bounds, request).map(|run| (run, pages)),
        // The bounds have admitted the pages of the request.
        Backing::Own { pages: whole }
            if whole > pages && !bounds.has_room_for(runs.held() + pages, whole - pages) =>
        {
            None
        }
        Backing::Own { pages: whole } => assembly::take_from_unused(runs, request, whole)
            .or_else(|| long_block::take(runs, request, whole).map(|run| (run, pages))),
    };
    drop(claim);
    made.or_else(|| {
        let run = runs.take_addresses(pages, align)?;
        if request.is_expected() {
            rest.evidence().note(run.base(), pages);
        }
        Some((run, pages))
    })
}

/// Returns whether a run that is expected to be filled will be, by what is known of others.
fn is_filled(runs: &FreeRuns, rest: &mut Rest, heap: Heap, request: Request) -> bool {
    !request.is_expected() || rest.evidence().are_filled(heap.used, runs.provider())
}

/// Takes a run at low addresses for an arena that holds `held` pages. No page of it counts as new,
/// because that makes no others go.
pub(in crate::back) fn take_low(
    low: &mut LowRuns,
    rest: &Rest,
    bounds: &Bounds,
    held: usize,
    request: Request,
) -> Option<(InHand, usize)> {
    let Request { pages, align, .. } = request;
    let (_claim, heap) = rest.heap(held, request);
    // The bounds have admitted the pages of the request.
    let left = CHUNK.saturating_sub(pages);
    let has_room = left > 0 && bounds.has_room_for(held + pages, left);
    let may_be_chunk = has_room && thp::backs_chunks();
    let most_chunks = if may_be_chunk { huge_page_policy::most_low_chunks(heap) } else { 0 };
    low.take(pages, align, most_chunks).map(|run| (run, 0))
}
