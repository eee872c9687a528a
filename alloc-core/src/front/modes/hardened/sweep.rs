//! A sweep over all blocks when a process of one thread exits.
//!
//! In a slab whose pages read zero when it was made, a block that was never used reads zero too.
//! By its last word a block is in use, free, or overwritten. A free block reads zero before that
//! word. So a write behind a block, one before it, and one after its free are found at the exit at
//! the latest. Other threads could change blocks meanwhile, so the sweep is left out where another
//! one has a cache, or was in the process before a fork. A thread without a cache, which is about
//! to end or has only freed so far, may be in the middle of a call. So a block is reported only if
//! it stays as it was found for a time. Of large blocks in use the canaries are looked at, under
//! the lock of the arena, so that the block cannot go meanwhile.

use super::canary::{self, State};
use super::large_canary;
use crate::back::map::extent::Extent;
use crate::back::map::page_map;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::wait::{self, Deadline};
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::misuse_report;
use crate::middle::slabs::slab::Slab;
use core::cell::Cell;

/// Pages of slabs and of canaries of large blocks that are looked at: 256 MiB, which takes some 20
/// ms.
const MOST: usize = (256 << 20) / PAGE;

/// Whether something is wrong, and stays so for a time.
type Lasts<'a> = dyn Fn(&dyn Fn() -> bool) -> bool + 'a;

/// Looks at all blocks. Called while no other thread has a cache or can get one. `is_held`
/// says whether a cache may hold a block.
pub(crate) fn at_exit(is_held: impl Fn(SizeClass, *mut u8) -> bool) {
    if !options::current().hardened {
        return;
    }
    let (mut at, mut left) = (0, MOST);
    // All waits together end then. It counts from the first block that seems wrong.
    let begun: Cell<Option<Deadline>> = Cell::new(None);
    let lasts = |is_wrong: &dyn Fn() -> bool| {
        let deadline = || begun.get().unwrap_or_else(Deadline::of_all);
        is_wrong() && {
            begun.set(Some(deadline()));
            wait::lasts(deadline(), is_wrong)
        }
    };
    while let Some((page, entry)) = page_map::next_from(at)
        && left > 0
    {
        at = page + PAGE;
        if let Some(extent) = entry.extent().filter(|extent| extent.is_block_at(page)) {
            left -= 1;
            see_large(extent, page, &lasts);
            continue;
        }
        let Some(slab) = Slab::of(entry).filter(|slab| slab.base() == page) else { continue };
        let pages = usize::from(slab.class().row().slab_pages);
        at = page + pages * PAGE;
        left = left.saturating_sub(pages);
        if slab.fresh.were_zero() && !slab.is_for_samples() {
            see(slab, &is_held, &lasts);
        }
    }
}

/// Looks at the canary of a large block.
fn see_large(extent: &Extent, address: usize, lasts: &Lasts<'_>) {
    if lasts(&|| !is_intact(extent, address)) {
        large_canary::report(extent);
    }
}

/// Returns whether the canary of a large block is intact, or the block is not at the address any
/// more, or cannot be looked at now.
fn is_intact(extent: &Extent, address: usize) -> bool {
    let arena = arena_list::by_id(extent.arena());
    let Some(_pages) = arena.and_then(|arena| arena.pages.try_lock()) else { return true };
    let is_there = extent.is_block_at(address)
        && page_map::lookup(address).extent().is_some_and(|found| found.is(extent));
    // SAFETY: a run in use of the page map stays while its arena's lock is held.
    !is_there || unsafe { large_canary::is_intact(extent) }
}

/// Looks at all blocks of a slab.
fn see(slab: &Slab, is_held: &impl Fn(SizeClass, *mut u8) -> bool, lasts: &Lasts<'_>) {
    let class = slab.class();
    for slot in 0..class.slots() {
        let address = slab.base() + slot * class.size();
        let block = core::ptr::with_exposed_provenance_mut(address);
        if lasts(&|| find(slab, block, is_held) != Found::Right) {
            report(slab, block, find(slab, block, is_held));
        }
    }
}

/// What a look at one block finds.
#[derive(PartialEq, Eq)]
enum Found {
    Right,
    Overwritten(State),
    WrittenAfterFree,
}

fn find(slab: &Slab, block: *mut u8, is_held: &impl Fn(SizeClass, *mut u8) -> bool) -> Found {
    let class = slab.class();
    // SAFETY: a block of the slab. A thread that writes to it is seen at one of the looks.
    let state = unsafe { canary::state(block, class) };
    match state {
        State::InUse(_) => Found::Right,
        // The transfer cache, which is not asked, holds blocks of shared classes.
        State::Zero if !class.is_shared() && !is_free(slab, block, is_held) => {
            Found::Overwritten(state)
        }
        State::Free | State::Zero => {
            // SAFETY: as above.
            match unsafe { canary::first_written_of(slab, block) } {
                Some(_) => Found::WrittenAfterFree,
                None => Found::Right,
            }
        }
        State::Overrun(_) | State::Overwritten => Found::Overwritten(state),
    }
}

fn report(slab: &Slab, block: *mut u8, found: Found) {
    match found {
        Found::Right => {}
        Found::Overwritten(state) => canary::report_overwritten(slab, block as usize, state),
        // SAFETY: a free block of the slab, to which nobody has written for a time.
        Found::WrittenAfterFree => unsafe { canary::check_zero(slab, block) },
    }
}

fn is_free(slab: &Slab, block: *mut u8, is_held: &impl Fn(SizeClass, *mut u8) -> bool) -> bool {
    misuse_report::looks_free(slab, block as usize) || is_held(slab.class(), block)
}
