//! What is tried before an allocation fails: hooks are asked for what was lacked, everything that
//! can be free is made free, and where a bound was reached the program is asked.

use super::limit_callback;
use crate::back::aging::limit;
use crate::back::hooked::wants;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::life::thread_end;
use crate::ground::units::LG_PAGE;
use crate::middle::arenas::{arena_hooks, arena_list};
use crate::middle::passes::decay_pass;

/// Tries once more after each thing that may help. No lock is held.
pub(crate) fn with_retry(attempt: impl Fn() -> *mut u8) -> *mut u8 {
    let refusals = limit::refusals();
    let block = attempt();
    if block.is_null() { retry(&attempt, refusals) } else { block }
}

/// So often other threads may take what hooks gave.
const MOST_SERVED: usize = 1000;
/// So often the program is asked for one allocation.
const MOST_ASKED: usize = 8;
/// What the program is told where the bound is that of all arenas.
const ALL: u32 = 4096;

/// Makes an attempt, and others as long as hooks give what it lacks.
fn served(attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    for _ in 0..MOST_SERVED {
        let displaced = wants::displaced();
        let block = attempt();
        // What was lacked may have been forgotten for what others lack.
        if !block.is_null() || !(arena_hooks::serve() || wants::displaced() != displaced) {
            return block;
        }
    }
    core::ptr::null_mut()
}

#[cold]
fn retry(attempt: &dyn Fn() -> *mut u8, refusals: u64) -> *mut u8 {
    let mut block = core::ptr::null_mut();
    if arena_hooks::are_there() {
        arena_hooks::serve();
        block = served(attempt);
    }
    // Inside the allocator, or in a function that it called, the way is short.
    if !block.is_null() || matches!(tls::current().kind(), Kind::Reentrant | Kind::Empty) {
        return block;
    }
    if current::lives_on_reserve() {
        return block;
    }
    let is_bound = limit::refusals() != refusals;
    make_room(is_bound);
    block = served(attempt);
    for _ in 0..MOST_ASKED {
        if !is_bound || !block.is_null() || !limit_callback::ask(ALL, bound_of) {
            break;
        }
        make_room(true);
        block = served(attempt);
    }
    block
}

/// Makes free what can be; where a bound was reached, pages too.
fn make_room(is_bound: bool) {
    thread_end::flush_current();
    if is_bound {
        decay_pass::purge(|_| true);
        limit::note_purge();
    } else {
        decay_pass::settle();
    }
}

/// Bytes that an arena holds, and its own bound.
fn bound_of(index: u32) -> (usize, usize) {
    arena_list::by_id(index).map_or((0, 0), |arena| {
        let mut pages = arena.pages.lock();
        (pages.allocator.held() << LG_PAGE, pages.allocator.bounds().own())
    })
}
