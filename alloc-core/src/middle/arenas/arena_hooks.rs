//! Arenas with extent hooks: what is done for them when no lock is held. See
//! [`crate::back::hooked::hooked_pages`].
//!
//! A hook may hold a lock of the program. So a thread inside a hook does not call other hooks:
//!
//! ```text
//!   it allocates        from the first arena; if that one has hooks too, what it lacks comes
//!                       from the system
//!   it frees, resizes   a block stays as long as it is, free pages stay
//!   purging, ageing     is put off until the hook is done
//!   it names an arena   to allocate there, or to destroy it: that arena's hooks are called
//! ```

use super::arena::Arena;
use super::arena_list;
use super::purge_gate;
use crate::back::hooked::hook_calls;
use crate::back::hooked::hook_requests::{self, HookRequest};
use crate::back::hooked::hooks::ExtentHooks;
use crate::back::map::extent::Extent;
use crate::back::runs::access;
use crate::back::runs::in_hand::InHand;
use crate::ground::callback;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Pairs of free neighbours that are merged before new memory is requested.
const MERGES: usize = 64;

/// Whether any arena ever had hooks.
static HOOKED: AtomicBool = AtomicBool::new(false);
/// Whether any arena ever had hooks.
pub(crate) fn are_there() -> bool {
    HOOKED.load(Relaxed)
}

/// Arenas with hooks.
fn hooked() -> impl Iterator<Item = &'static Arena> {
    let any = are_there();
    arena_list::all().filter(move |arena| any && arena.is_hooked())
}

/// Purges arenas with hooks where pages are to go at once or a purge was put off. Under no lock.
#[cold]
#[inline(never)]
pub(crate) fn tick() {
    if callback::is_in_hook() {
        return;
    }
    purge_gate::take_hooked_due();
    for arena in hooked() {
        if arena.take_put_off_purge() || arena.purges_at_once() {
            arena.purge_beyond(0, 0);
        }
    }
}

/// Ages the unused pages of arenas with hooks. Called under no lock. Returns when to call it again.
pub(crate) fn decay(now: u64) -> Option<u64> {
    let mut next = None::<u64>;
    for arena in hooked() {
        arena.pages.lock().allocator.hooks().file_ready();
        let again = arena.decay(now);
        next = [next, again].into_iter().flatten().min();
    }
    next
}

/// Purges all unused pages of the `wanted` arenas with hooks. Called under no lock.
pub(crate) fn purge(wanted: impl Fn(&Arena) -> bool) {
    for arena in hooked().filter(|arena| wanted(arena)) {
        arena.pages.lock().allocator.hooks().file_ready();
        arena.purge_beyond(0, 0);
    }
}

/// Makes the runs ready that an allocation of the calling thread lacked. Called under no lock.
/// `false`: no run was made ready.
#[cold]
#[inline(never)]
pub(crate) fn serve() -> bool {
    if !hook_requests::any() {
        return false;
    }
    let mut served = false;
    for arena in hooked().filter(|arena| arena.is_live()) {
        let request = arena.pages.lock().allocator.hooks().begin_serving();
        let Some(request) = request else { continue };
        // What a hook allocates comes from the first arena, whose own hooks are then not called.
        let by_the_way = arena.id() == 0 && callback::is_in_hook();
        served |= if by_the_way {
            take_new_by_default(arena, request)
        } else {
            make_ready(arena, request)
        };
        arena.pages.lock().allocator.hooks().end_serving();
    }
    served
}

/// In a forked child: the runs that hooks of other threads had in hand stay as they are, and no
/// thread waits for them.
pub(crate) fn forget_in_child() {
    // The hook that forks goes on in the child, and files the run that it has in hand.
    if callback::is_in_hook() {
        return;
    }
    for arena in hooked() {
        arena.pages.lock().allocator.hooks().abandon_taken();
    }
}

/// Sets an arena's table of hooks, and returns the one before. From then on its pages use it.
pub(crate) fn set(arena: &'static Arena, table: *mut ExtentHooks) -> *mut ExtentHooks {
    // First, because a thread that finds the arena hooked asks the hooks only where there are any.
    HOOKED.store(true, Relaxed);
    arena.set_hooks(table)
}

/// Makes a wanted run ready, from free runs or from new memory.
fn make_ready(arena: &'static Arena, request: HookRequest) -> bool {
    let free = |exact| arena.pages.lock().allocator.hooks().take_for(request, exact);
    cut_free(arena, free(false), request)
        || merge_free(arena) && cut_free(arena, free(false), request)
        || cut_free(arena, free(true), request)
        || cut_new(arena, request)
        || make_ready_at_last(arena, request)
}

/// Merges all neighbours that may be. If no run fits, gives all back and requests new memory.
fn make_ready_at_last(arena: &'static Arena, request: HookRequest) -> bool {
    // Each merger leaves one run less, so this ends. What hooks refuse to commit is put back in
    // parts, which could be merged again, so a run is cut only after that.
    while merge_free(arena) {}
    let taken = arena.pages.lock().allocator.hooks().take_for(request, false);
    if cut_free(arena, taken, request) {
        return true;
    }
    arena.pages.lock().allocator.hooks().file_ready();
    arena.purge_now(0, 0);
    loop {
        let retained = arena.pages.lock().allocator.hooks().take_retained();
        let Some(taken) = retained else { break };
        if !give_back_taken(arena, taken) {
            break;
        }
    }
    cut_new(arena, request)
}

/// Cuts a wanted run out of a free one. `false`: hooks refused, and the runs were put back.
fn cut_free(arena: &'static Arena, taken: Option<InHand>, request: HookRequest) -> bool {
    let Some(mut taken) = taken else { return false };
    let Some(lead) = lead_of(taken.run(), request) else { return put_back(arena, taken) };
    if lead > 0 {
        match cut(arena, taken, lead) {
            Ok((front, back)) => {
                put_back(arena, front);
                taken = back;
            }
            Err(whole) => return put_back(arena, whole),
        }
    }
    match shorten(arena, taken, request.pages) {
        // Only now, so that what is put back has no more memory than before.
        Ok(run) if hook_calls::commit(arena.hooks(), &run) => {
            arena.pages.lock().allocator.hooks().make_ready(run);
            true
        }
        Ok(refused) | Err(refused) => put_back(arena, refused),
    }
}

/// Cuts a run that is in no list in two. `Err`: refused.
fn cut(arena: &'static Arena, taken: InHand, pages: usize) -> Result<(InHand, InHand), InHand> {
    let record = arena.pages.lock().allocator.hooks().record_for_cut();
    let Some(record) = record else { return Err(taken) };
    let may = hook_calls::may_cut(arena.hooks(), &taken, pages);
    let mut locked = arena.pages.lock();
    let mut hooked = locked.allocator.hooks();
    if may {
        return Ok(hooked.cut_taken(taken, pages, record));
    }
    hooked.keep_record(record);
    Err(taken)
}

/// Cuts a run down to `pages` pages. `Err`: refused.
fn shorten(arena: &'static Arena, taken: InHand, pages: usize) -> Result<InHand, InHand> {
    if taken.run().pages() == pages {
        return Ok(taken);
    }
    let (front, back) = cut(arena, taken, pages)?;
    put_back(arena, back);
    Ok(front)
}

fn put_back(arena: &'static Arena, taken: InHand) -> bool {
    arena.pages.lock().allocator.hooks().put_back(taken);
    false
}

/// Merges two free neighbours, up to [`MERGES`] times. `false`: none may be merged.
fn merge_free(arena: &'static Arena) -> bool {
    let mut merged = false;
    for _ in 0..MERGES {
        let pair = arena.pages.lock().allocator.hooks().take_neighbours();
        let Some((left, right)) = pair else { return merged };
        let may = hook_calls::may_merge(arena.hooks(), &left, &right);
        arena.pages.lock().allocator.hooks().put_neighbours(left, right, may);
        if !may {
            return merged;
        }
        merged = true;
    }
    merged
}

/// Requests a large piece of new memory, or else exactly what is wanted.
fn cut_new(arena: &'static Arena, request: HookRequest) -> bool {
    let chunk = arena.pages.lock().allocator.hooks().next_chunk(request.pages);
    if chunk > request.pages
        && let Some(taken) = reserve(arena, chunk, request.align)
    {
        let run = taken.run();
        if cut_free(arena, Some(taken), request) {
            arena.pages.lock().allocator.hooks().note_chunk();
            return true;
        }
        // Hooks refuse to cut the piece, so it is of no use. They may not take it back either.
        arena.pages.lock().allocator.hooks().note_uncut_chunk();
        give_back_whole(arena, run, chunk);
    }
    let taken = reserve(arena, request.pages, request.align);
    cut_free(arena, taken, request)
}

fn reserve(arena: &'static Arena, pages: usize, align: usize) -> Option<InHand> {
    let (got, committed) = hook_calls::reserve(arena.hooks(), pages, align)?;
    let taken = arena.pages.lock().allocator.hooks().take_in(&got, pages);
    match &taken {
        None => hook_calls::give_up(arena.hooks(), &got, pages, committed),
        Some(taken) if !committed => hook_calls::note_uncommitted(taken),
        Some(_) => {}
    }
    taken
}

/// Makes exactly the wanted run ready, of memory from the system. No hook is called.
fn take_new_by_default(arena: &'static Arena, request: HookRequest) -> bool {
    let Some(got) = hook_calls::reserve_by_default(request.pages, request.align) else {
        return false;
    };
    let allocator = &mut arena.pages.lock().allocator;
    let taken = allocator.hooks().take_in(&got, request.pages);
    let is_taken = taken.is_some();
    match taken {
        Some(taken) => allocator.hooks().make_ready(taken),
        None => hook_calls::give_up_by_default(&got, request.pages),
    }
    is_taken
}

/// Gives back a whole free run of `pages` pages that was put back before. If refused, it stays.
fn give_back_whole(arena: &'static Arena, run: &'static Extent, pages: usize) {
    let taken = arena.pages.lock().allocator.hooks().take_run(run, pages);
    if let Some(taken) = taken {
        give_back_taken(arena, taken);
    }
}

/// Gives a run back. `false`: hooks refused, and the run was put back.
fn give_back_taken(arena: &'static Arena, taken: InHand) -> bool {
    if !hook_calls::dalloc(arena.hooks(), &taken) {
        return put_back(arena, taken);
    }
    arena.pages.lock().allocator.hooks().strike_off(taken);
    true
}

/// Lengthens a block in place to `pages`, under no lock. Returns whether the new part reads zero.
/// `None`: it cannot be lengthened.
pub(in crate::middle) fn grow(
    arena: &'static Arena,
    run: &'static Extent,
    pages: usize,
) -> Option<bool> {
    if callback::is_in_hook() {
        return None;
    }
    let more = pages - run.pages();
    let taken = arena.pages.lock().allocator.hooks().take_behind(run, more)?;
    let is_ready = |taken: &InHand| {
        access::open_if_closed(taken)
            && hook_calls::commit(arena.hooks(), taken)
            && hook_calls::may_append(arena.hooks(), run, taken)
    };
    match shorten(arena, taken, more) {
        Ok(taken) if is_ready(&taken) => {
            Some(arena.pages.lock().allocator.hooks().append(run, taken))
        }
        Ok(refused) | Err(refused) => {
            put_back(arena, refused);
            None
        }
    }
}

/// Asks hooks whether a block may be cut down in place to `pages`. Returns the record for the part
/// that is cut off. `None`: it may not. Called under no lock.
pub(in crate::middle) fn may_shrink(
    arena: &'static Arena,
    run: &Extent,
    pages: usize,
) -> Option<&'static Extent> {
    if callback::is_in_hook() {
        return None;
    }
    let record = arena.pages.lock().allocator.hooks().record_for_cut()?;
    if hook_calls::may_cut_run(arena.hooks(), run, pages) {
        return Some(record);
    }
    arena.pages.lock().allocator.hooks().keep_record(record);
    None
}

/// How many pages of a run lie before the part that fits `request`. `None`: no part fits.
fn lead_of(run: &Extent, request: HookRequest) -> Option<usize> {
    let begin = run.fit(request.pages, request.align)?;
    Some((begin - run.base()) >> crate::ground::units::LG_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::hooked::hooks::{DEFAULT, ExtentHooks};
    use crate::back::page_allocator::Memory;
    use crate::front::life::thread_begin;
    use crate::ground::callback::Callback;
    use crate::ground::units::PAGE;
    use crate::middle::arenas::choose_arena;
    use core::ffi::c_void;
    use core::sync::atomic::AtomicUsize;

    const RUN: usize = 8;

    /// An arena that no other thread knows, with hooks.
    fn arena(table: ExtentHooks) -> &'static Arena {
        let arena = choose_arena::create().expect("an arena");
        set(arena, Box::leak(Box::new(table)));
        assert!(are_there() && arena.is_hooked());
        arena
    }

    fn allocate(arena: &Arena, pages: usize) -> Option<&'static Extent> {
        arena.pages.lock().allocator.allocate(pages, PAGE, Memory::Any)
    }

    /// As an allocation that lacks a run does it.
    fn served(arena: &Arena, pages: usize) -> Option<&'static Extent> {
        assert!(allocate(arena, pages).is_none(), "nothing is ready");
        serve().then(|| allocate(arena, pages)).flatten()
    }

    #[test]
    fn what_an_allocation_lacked_comes_from_hooks() {
        let arena = arena(DEFAULT);
        let block = served(arena, RUN).unwrap();
        assert_eq!(block.pages(), RUN);
        // The chunk that the hook gave has more.
        assert!(arena.pages.lock().allocator.counts().mapped > RUN);
        assert!(served(arena, RUN).is_some());
        assert!(!serve(), "this thread lacks nothing more");
    }

    #[test]
    fn a_block_is_shortened_and_lengthened_as_hooks_allow() {
        // The process has started, so that threads know that they are inside a hook.
        thread_begin::real_cache();
        let arena = arena(DEFAULT);
        let block = served(arena, RUN).unwrap();
        let record = may_shrink(arena, block, RUN / 2).unwrap();
        arena.pages.lock().allocator.shrink_into(block, RUN / 2, record);
        assert_eq!(block.pages(), RUN / 2);
        assert_eq!(grow(arena, block, RUN), Some(false), "the end was in use");
        assert_eq!(block.pages(), RUN);
        callback::run(Callback::Hook, || {
            assert!(may_shrink(arena, block, RUN / 2).is_none());
            assert!(grow(arena, block, 2 * RUN).is_none());
        });
    }

    #[test]
    fn without_a_split_hook_each_run_is_memory_of_its_own() {
        let arena = arena(ExtentHooks { split: None, ..DEFAULT });
        let block = served(arena, RUN).unwrap();
        assert!(may_shrink(arena, block, RUN / 2).is_none());
        assert!(grow(arena, block, 2 * RUN).is_none());
        let spare = arena.pages.lock().allocator.counts().spares;
        assert!(may_shrink(arena, block, RUN / 2).is_none());
        assert_eq!(arena.pages.lock().allocator.counts().spares, spare, "the record came back");
    }

    #[test]
    fn hooks_that_neither_cut_nor_take_back_are_asked_for_one_chunk() {
        let arena = arena(ExtentHooks { split: None, dalloc: None, ..DEFAULT });
        let mapped = || arena.pages.lock().allocator.counts().mapped;
        assert!(served(arena, RUN).is_some());
        let chunk = mapped() - RUN;
        for _ in 1..10 {
            assert!(served(arena, RUN).is_some());
        }
        assert_eq!(mapped(), chunk + 10 * RUN);
    }

    /// Parts of a run that were put back because `commit` refused could be merged without end.
    #[test]
    fn what_hooks_cut_and_merge_but_do_not_commit_leaves_the_request_without_memory() {
        const ENOUGH: usize = 1000;
        static MERGED: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn take(
            _: *mut ExtentHooks,
            _: *mut c_void,
            _: usize,
            _: usize,
            _: usize,
            _: u32,
        ) -> bool {
            false
        }
        /// Refuses at last, so that the test ends in any case.
        extern "C" fn merge(
            _: *mut ExtentHooks,
            _: *mut c_void,
            _: usize,
            _: *mut c_void,
            _: usize,
            _: bool,
            _: u32,
        ) -> bool {
            MERGED.fetch_add(1, Relaxed) >= ENOUGH
        }
        let table = ExtentHooks {
            dalloc: None,
            commit: None,
            decommit: Some(take),
            merge: Some(merge),
            ..DEFAULT
        };
        let arena = arena(table);
        let block = served(arena, RUN).unwrap();
        let rest = arena.pages.lock().allocator.counts().mapped - RUN;
        let rest = served(arena, rest).unwrap();
        [block, rest].into_iter().for_each(|run| arena.pages.lock().allocator.free(run));
        arena.purge_beyond(0, 0);
        set(arena, Box::leak(Box::new(ExtentHooks { alloc: None, ..table })));
        assert!(served(arena, RUN / 2).is_none());
        let merged = MERGED.load(Relaxed);
        assert!((1..ENOUGH).contains(&merged), "{merged} mergers");
    }

    #[test]
    fn hooks_that_refuse_all_leave_the_request_without_memory() {
        let arena = arena(ExtentHooks::default());
        assert!(served(arena, RUN).is_none());
        assert_eq!(arena.pages.lock().allocator.counts().mapped, 0);
    }
}
