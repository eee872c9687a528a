//! Large blocks: a run of pages for each, taken from an arena.

use super::arena::Arena;
use super::arena_hooks;
use super::arena_list;
use super::arena_pages::ArenaPages;
use super::choose_arena;
use super::home_arena::HomeArena;
use super::purge_gate::GATE;
use crate::back::map::extent::Extent;
use crate::back::page_allocator::Memory;
use crate::back::placement::huge_page_policy;
use crate::back::placement::moves;
use crate::back::runs::contents::{self, Zeroing};
use crate::back::runs::huge;
use crate::ground::options;
use crate::ground::size_class::{MAX_RUN_PAGES, class_round};
use crate::ground::units::{LG_PAGE, PAGE, round_up};

/// The place that a large block comes from.
#[derive(Clone, Copy)]
pub(crate) enum From<'a> {
    /// The home arena of a thread, or another arena whose lock is free.
    Home(&'a HomeArena),
    /// This arena and no other.
    Arena(&'static Arena),
}

/// Bytes of the longest block, and the largest alignment: the last large class.
pub(crate) const LONGEST: usize = MAX_RUN_PAGES * PAGE;

/// Bytes that a large request of `size` bytes gets. `None`: it is above the largest.
pub(crate) const fn usable(size: usize) -> Option<usize> {
    match class_round(size) {
        Some(rounded) if rounded <= LONGEST => Some(round_up(rounded, PAGE)),
        _ => None,
    }
}

/// A block of `bytes` bytes, whole pages, at a multiple of `align`. The caller writes the first
/// `filled` bytes; 0: it must read zero, so it may be hardly touched. `None`: no memory.
pub(crate) fn allocate(
    from: From<'_>,
    bytes: usize,
    align: usize,
    filled: usize,
) -> Option<&'static Extent> {
    let pages = bytes >> LG_PAGE;
    let align = align.max(PAGE);
    match from {
        From::Arena(arena) => allocate_in(arena, pages, align, filled),
        From::Home(home) => {
            let take = |locked: &mut ArenaPages, memory: Memory| {
                locked.allocate_large(pages, align, fresh(memory, filled))
            };
            choose_arena::with_pages(home, take)
                // No room for more; addresses that other arenas have kept may do. The hooks of
                // others are not asked, because those of the home arena are next.
                .or_else(|| {
                    let arenas = arena_list::automatic().filter(|_| !home.is_bound());
                    let mut others =
                        arenas.filter(|arena| !arena.is_hooked() && !arena.has_reserve());
                    others.find_map(|arena| allocate_in(arena, pages, align, filled))
                })
        }
    }
}

/// As [`allocate`], but for a block that has grown and may grow again: where there is unused memory
/// for that. `None`: there is none, or blocks of that length are better moved by the system.
pub(crate) fn allocate_roomy(
    home: &HomeArena,
    bytes: usize,
    align: usize,
) -> Option<&'static Extent> {
    if bytes >= moves::SHORTEST {
        return None;
    }
    choose_arena::with_pages(home, |locked, memory| match memory {
        Memory::Resident => {
            let memory = Memory::Roomy { movable: locked.large.movable };
            locked.allocate_large(bytes >> LG_PAGE, align.max(PAGE), memory)
        }
        _ => None,
    })
}

fn allocate_in(
    arena: &'static Arena,
    pages: usize,
    align: usize,
    filled: usize,
) -> Option<&'static Extent> {
    arena.pages.lock().allocate_large(pages, align, fresh(Memory::Any, filled))
}

/// What memory to take where `memory` is allowed and the caller writes the first `filled` bytes.
fn fresh(memory: Memory, filled: usize) -> Memory {
    match memory {
        Memory::Any if huge_page_policy::ends_early(filled) => Memory::Begun,
        _ => memory.filled_if(filled > 0),
    }
}

/// Takes a large block back.
pub(crate) fn free(extent: &'static Extent) {
    let Some(arena) = arena_list::by_id(extent.arena()) else { return };
    let mut pages = arena.pages.lock();
    if !pages.is_purged_at_once(extent) || arena.waits_for_hook() {
        pages.free_large(extent);
        drop(pages);
        return arena.purge_if_at_once();
    }
    drop(pages);
    // Closed while a fork is under way; then the run is kept among the unused ones. A fork does not
    // wait for hooks.
    let inside = GATE.enter().filter(|_| !arena.is_hooked());
    if inside.is_none() && !arena.is_hooked() {
        return arena.pages.lock().free_large(extent);
    }
    let batch = arena.pages.lock().free_large_into_batch(extent);
    batch.purge();
    arena.pages.lock().allocator.file_batch(batch);
}

/// Takes large blocks back. Blocks of one arena that follow each other are freed under one lock.
pub(crate) fn free_all(extents: impl Iterator<Item = &'static Extent>) {
    let mut extents = extents.peekable();
    while let Some(extent) = extents.peek() {
        let id = extent.arena();
        let Some(arena) = arena_list::by_id(id) else { return };
        let mut pages = arena.pages.lock();
        while let Some(extent) = extents.next_if(|extent| extent.arena() == id) {
            pages.free_large(extent);
        }
    }
}

/// Bytes of the whole pages that a request of `size` takes. `None`: it is above the largest.
pub(crate) const fn whole_pages(size: usize) -> Option<usize> {
    if size > LONGEST { None } else { Some(round_up(if size == 0 { 1 } else { size }, PAGE)) }
}

/// Makes a large block at least `size` bytes long in place; a shorter block gives its end back.
/// `false`: that cannot be done, and nothing changed.
pub(crate) fn resize(extent: &'static Extent, size: usize, zero: bool) -> bool {
    let Some(bytes) = usable(size) else { return false };
    let (before, pages) = (extent.bytes(), bytes >> LG_PAGE);
    if bytes == before || (bytes > before && size <= before) {
        back_room(extent);
        return true;
    }
    let Some(arena) = arena_list::by_id(extent.arena()) else { return false };
    if bytes < before {
        let tail = if arena.is_hooked() {
            let tail = arena_hooks::may_shrink(arena, extent, pages);
            if tail.is_none() {
                return false;
            }
            tail
        } else {
            None
        };
        let mut locked = arena.pages.lock();
        match tail {
            Some(tail) => locked.allocator.shrink_into(extent, pages, tail),
            None if !locked.allocator.shrink(extent, pages) => return false,
            None => {}
        }
        locked.large.resize(before >> LG_PAGE, pages);
        drop(locked);
        arena.purge_if_at_once();
        return true;
    }
    let zeroed = if arena.is_hooked() {
        arena_hooks::grow(arena, extent, pages)
    } else {
        arena.pages.lock().allocator.grow(extent, pages)
    };
    let Some(zeroed) = zeroed else { return false };
    let mut locked = arena.pages.lock();
    locked.large.resize(before >> LG_PAGE, extent.pages());
    drop(locked);
    if zero && !zeroed {
        contents::zero(extent, before);
    }
    true
}

/// Makes a large block at least `size` bytes long, at a multiple of `align`, by moving its memory
/// to other addresses. The new part reads zero. `None`: that cannot be done, or copying is as good;
/// nothing changed.
pub(crate) fn lengthen_by_move(
    extent: &'static Extent,
    size: usize,
    align: usize,
) -> Option<&'static Extent> {
    let bytes = usable(size)?;
    let before = extent.bytes();
    if before < moves::SHORTEST || bytes <= before {
        return None;
    }
    // A run of a created arena is not moved, because a reset may come in between.
    let arena = arena_list::by_id(extent.arena())
        .filter(|arena| !arena.is_created() && !arena.is_hooked())?;
    let (provider, new) = {
        let allocator = &mut arena.pages.lock().allocator;
        (allocator.source().provider(), allocator.begin_move(extent, bytes >> LG_PAGE, align)?)
    };
    let moved = moves::move_pages(provider, extent, new);
    let mut pages = arena.pages.lock();
    if !pages.allocator.end_move(extent, new, moved) {
        return None;
    }
    // At another address it is another block, as if it had been copied.
    pages.large.add(bytes >> LG_PAGE);
    pages.large.remove(before >> LG_PAGE);
    drop(pages);
    huge::back(provider, new, new.bytes());
    Some(new)
}

/// Prepares a fresh block of which its caller will fill `size` bytes.
pub(crate) fn make_ready(extent: &'static Extent, size: usize) {
    if extent.zeroed.get() && extent.bytes() >= huge::SHORTEST {
        back_by_huge_pages(extent, size);
    } else {
        back_room(extent);
    }
}

/// Asks for huge pages at a block's end, which a resized or reused block may need.
fn back_room(extent: &'static Extent) {
    if huge::has_room(extent)
        && let Some(arena) = arena_list::by_id(extent.arena())
    {
        let provider = arena.provider();
        huge::back_room(provider, extent);
    }
}

fn back_by_huge_pages(extent: &'static Extent, size: usize) {
    let Some(arena) = arena_list::by_id(extent.arena()) else { return };
    let provider = arena.provider();
    huge::back(provider, extent, huge_page_policy::worth_huge_pages(extent, size));
}

/// Makes all of a fresh block read zero, if it does not do so yet.
pub(crate) fn make_zero(extent: &'static Extent) {
    if extent.zeroed.get() {
        return;
    }
    let threshold = options::current().calloc_madvise_threshold;
    let arena = arena_list::by_id(extent.arena()).filter(|arena| !arena.waits_for_hook());
    if let Some(arena) = arena {
        let provider = arena.provider();
        let zeroing = if extent.bytes() >= threshold.max(1) {
            Zeroing::GiveBack
        } else {
            contents::better_zeroing(provider, extent)
        };
        if contents::zero_by(provider, extent, zeroing) {
            return;
        }
    }
    contents::zero(extent, 0);
}
