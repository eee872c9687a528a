//! Calls of hooks about runs, under no lock. [`super::hooked_pages`] says which thread may call
//! hooks about which run.

use super::hooks::Hooks;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::runs::in_hand::InHand;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::Reserved;
use crate::back::system::provider::system::system;
use crate::ground::units::{LG_PAGE, PAGE};

/// Gives a run memory if it has none. Returns `false` if the hook refuses.
pub(crate) fn commit(hooks: &Hooks, taken: &InHand) -> bool {
    let run = taken.run();
    if run.is_committed() {
        return true;
    }
    let committed = hooks.commit(run.base_ptr(), run.bytes());
    if committed {
        run.set_mapping(Mapping::Ordinary);
    }
    committed
}

/// Asks whether a run may be cut after `pages` pages. Returns `false` if the hook refuses.
pub(crate) fn may_cut(hooks: &Hooks, taken: &InHand, pages: usize) -> bool {
    may_cut_run(hooks, taken.run(), pages)
}

/// As [`may_cut`], but for a block that the caller owns.
pub(crate) fn may_cut_run(hooks: &Hooks, run: &Extent, pages: usize) -> bool {
    hooks.split(run.base_ptr(), run.bytes(), pages << LG_PAGE, run.is_committed())
}

/// Asks whether two neighbours may be merged. Returns `false` if the hook refuses.
pub(crate) fn may_merge(hooks: &Hooks, left: &InHand, right: &InHand) -> bool {
    let (left, right) = (left.run(), right.run());
    left.is_committed() == right.is_committed()
        && hooks.merge(left.base_ptr(), left.bytes(), right.bytes(), left.is_committed())
}

/// Asks whether a block that the caller owns may be lengthened by the run behind it. Returns
/// `false` if the hook refuses.
pub(crate) fn may_append(hooks: &Hooks, run: &Extent, taken: &InHand) -> bool {
    hooks.merge(run.base_ptr(), run.bytes(), taken.run().bytes(), true)
}

/// Gives a free run back, as far as hooks allow: by `dalloc`, `decommit`, `purge_forced` or
/// `purge_lazy`, which comes first if `lazily`. Returns the new state, and whether the run reads
/// zero.
pub(in crate::back) fn give_back(
    hooks: &Hooks,
    run: &'static Extent,
    from: ExtentState,
    lazily: bool,
) -> (ExtentState, bool) {
    let (base, size) = (run.base_ptr(), run.bytes());
    // Hooks may leave anything in it.
    run.marks.set_wiped(false);
    if lazily && hooks.purge_lazy(base, size) {
        return (ExtentState::Muzzy, false);
    }
    // The run leaves the page map first, as another thread may get the addresses at once.
    page_map::clear_ends(run);
    if hooks.dalloc(base, size, run.is_committed()) {
        return (ExtentState::Gone, false);
    }
    page_map::set_ends(run);
    if hooks.decommit(base, size) {
        run.set_mapping(Mapping::Decommitted);
        return (ExtentState::Retained, true);
    }
    if hooks.purge_forced(base, size) {
        return (ExtentState::Retained, true);
    }
    if from != ExtentState::Muzzy {
        hooks.purge_lazy(base, size);
    }
    (ExtentState::Retained, false)
}

/// Gives back the addresses of a run whose arena has ended: to `dalloc`, or to `destroy` if that
/// refuses. The run has left the page map. What both refuse stays with the program.
///
/// jemalloc asks `dalloc` only about runs with memory, and loses the others if there is no
/// `destroy`. A hook cannot tell the two apart, so `dalloc` is asked about all of them here.
pub(crate) fn dalloc_or_destroy(hooks: &Hooks, run: &'static Extent) {
    let (base, size, committed) = (run.base_ptr(), run.bytes(), run.is_committed());
    if !hooks.dalloc(base, size, committed) {
        hooks.destroy(base, size, committed);
    }
}

/// Gives the addresses of a run back. Returns `false` if the hook refuses.
pub(crate) fn dalloc(hooks: &Hooks, taken: &InHand) -> bool {
    let run = taken.run();
    // The run leaves the page map first, as another thread may get the addresses at once.
    page_map::clear_ends(run);
    let gone = hooks.dalloc(run.base_ptr(), run.bytes(), run.is_committed());
    if !gone {
        page_map::set_ends(run);
    }
    gone
}

/// Asks the hooks for memory. Returns whether it is committed, too.
pub(crate) fn reserve(hooks: &Hooks, pages: usize, align: usize) -> Option<(Reserved, bool)> {
    hooks.alloc(pages << LG_PAGE, align)
}

/// Notes that a new run is not committed.
pub(crate) fn note_uncommitted(taken: &InHand) {
    taken.run().set_mapping(Mapping::Decommitted);
}

/// Asks the system for memory, where no hook may be called.
pub(crate) fn reserve_by_default(pages: usize, align: usize) -> Option<Reserved> {
    system().reserve(pages << LG_PAGE, align.max(PAGE))
}

/// Gives memory back for which there is no record.
pub(crate) fn give_up(hooks: &Hooks, got: &Reserved, pages: usize, committed: bool) {
    hooks.dalloc(got.base.as_ptr(), pages << LG_PAGE, committed);
}

/// As [`give_up`], but for memory that the system gave.
pub(crate) fn give_up_by_default(got: &Reserved, pages: usize) {
    // SAFETY: just reserved, and no other code knows it.
    unsafe { system().release(got.base, pages << LG_PAGE) };
}
