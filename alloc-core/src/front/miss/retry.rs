//! What is tried before an allocation fails: hooks are asked for memory, everything that can be
//! freed is freed, the program is asked if a bound was reached, unused runs are joined, and some
//! addresses go back for records.

use super::limit_callback;
use crate::back::aging::refusals::{self, Refusal};
use crate::back::aging::soft_limit;
use crate::back::hooked::hook_requests;
use crate::back::metadata;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::life::thread_end;
use crate::ground::units::LG_PAGE;
use crate::middle::arenas::{arena_hooks, arena_list};
use crate::middle::passes::decay_pass;

/// Makes an attempt to allocate `bytes`, and another after each step that may help. No lock may be
/// held.
pub(crate) fn with_retry(bytes: usize, attempt: impl Fn() -> *mut u8) -> *mut u8 {
    let (refused, records) = (refusals::count(), metadata::refused());
    let block = attempt();
    if !block.is_null() {
        return block;
    }
    let block = retry(&attempt, refused);
    let block = if block.is_null() { with_joined_runs(bytes, &attempt) } else { block };
    if block.is_null() && metadata::refused() != records { with_records(&attempt) } else { block }
}

/// How often other threads may take the memory that hooks gave.
const MOST_SERVED: usize = 1000;
/// How often the program is asked for one allocation.
const MOST_ASKED: usize = 8;
/// The arena that the program is told if the bound is that of all arenas.
const ALL: u32 = 4096;

/// Makes attempts as long as hooks give the memory that was lacking.
fn served(attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    for _ in 0..MOST_SERVED {
        let displaced = hook_requests::displaced();
        let block = attempt();
        // What this thread lacked may have been displaced by another thread's request.
        if !block.is_null() || !(arena_hooks::serve() || hook_requests::displaced() != displaced) {
            return block;
        }
    }
    core::ptr::null_mut()
}

/// As [`served`]. Without a block also returns what a bound refused this thread, if that was the
/// reason.
fn served_or_refused(attempt: &dyn Fn() -> *mut u8) -> (*mut u8, Option<Refusal>) {
    for _ in 0..MOST_SERVED {
        let (refused, displaced) = (refusals::count(), refusals::displaced());
        let block = served(attempt);
        if !block.is_null() {
            return (block, None);
        }
        let refusal = refusals::take_since(refused);
        // What was refused may have been displaced by another thread's refusal.
        if refusal.is_some() || refusals::displaced() == displaced {
            return (block, refusal);
        }
    }
    (core::ptr::null_mut(), None)
}

/// Whether more is tried than to ask hooks. Inside the allocator, or in a function that it called,
/// nothing is.
fn may_make_room() -> bool {
    let is_inside = matches!(tls::current().kind(), Kind::Reentrant | Kind::Empty);
    !is_inside && !current::lives_on_reserve()
}

/// Makes more attempts after one that failed, before which bounds had refused pages `refused`
/// times.
#[cold]
fn retry(attempt: &dyn Fn() -> *mut u8, refused: u64) -> *mut u8 {
    let mut block = core::ptr::null_mut();
    if arena_hooks::are_there() {
        arena_hooks::serve();
        block = served(attempt);
    }
    if !block.is_null() || !may_make_room() {
        return block;
    }
    let mut is_bound = refusals::take_since(refused).is_some();
    make_room(is_bound);
    let mut asked = 0;
    loop {
        let (block, refusal) = served_or_refused(attempt);
        let Some(refusal) = refusal else { return block };
        // First unused pages are purged.
        if is_bound {
            if asked == MOST_ASKED || !limit_callback::ask(ALL, refusal, bound_of) {
                return block;
            }
            asked += 1;
        }
        is_bound = true;
        make_room(true);
    }
}

/// Makes another attempt after some that found no addresses, if unused ones may hold `bytes` once
/// they are joined.
#[cold]
fn with_joined_runs(bytes: usize, attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    if may_make_room() && decay_pass::join_unused(bytes) {
        attempt()
    } else {
        core::ptr::null_mut()
    }
}

/// Makes another attempt after some that found no memory for records. Records never lie in the
/// pages of an arena, so some unused addresses go back to the system, which may then have some for
/// records.
#[cold]
fn with_records(attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    if !may_make_room() {
        return core::ptr::null_mut();
    }
    decay_pass::give_addresses_for_records();
    attempt()
}

/// Frees what can be freed. If a bound was reached, also purges unused pages.
fn make_room(is_bound: bool) {
    thread_end::flush_current();
    if is_bound {
        decay_pass::purge(|_| true);
        soft_limit::note_purge();
    } else {
        decay_pass::settle();
    }
}

/// Returns the bytes that an arena holds, and its own bound.
fn bound_of(index: u32) -> (usize, usize) {
    arena_list::by_id(index).map_or((0, 0), |arena| {
        let mut pages = arena.pages.lock();
        (pages.allocator.held() << LG_PAGE, pages.allocator.bounds().own())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::life::thread_begin;
    use core::cell::Cell;
    use core::ffi::c_void;
    use std::sync::Mutex;

    #[test]
    fn an_attempt_that_succeeds_is_the_only_one() {
        let block = core::ptr::without_provenance_mut(8);
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            block
        };
        assert_eq!((with_retry(8, attempt), attempts.get()), (block, 1));
    }

    #[test]
    fn another_attempt_follows_when_room_was_made() {
        // Inside the allocator nothing more is tried, so the thread must have a cache.
        thread_begin::real_cache();
        let block = core::ptr::without_provenance_mut(8);
        let attempts = Cell::new(0);
        let second = || {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 { core::ptr::null_mut() } else { block }
        };
        assert_eq!((with_retry(8, second), attempts.get()), (block, 2));
        // Nothing more can be given back, so the failure stands. Requests of parallel tests may
        // lead to more attempts.
        let never = || {
            attempts.set(attempts.get() + 1);
            core::ptr::null_mut()
        };
        assert!(with_retry(usize::MAX, never).is_null() && attempts.get() >= 2 + 2);
    }

    /// What the program was told: bytes wanted, and the arena.
    static TOLD: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

    extern "C" fn tell(
        _: *mut c_void,
        _held: usize,
        _bound: usize,
        wanted: usize,
        arena: u32,
    ) -> bool {
        TOLD.lock().unwrap().push((wanted, arena));
        false
    }

    #[test]
    fn the_program_is_told_what_was_refused_to_this_thread_and_nothing_else() {
        // Arenas that are not there, so that no other test is refused anything by their bounds.
        let [own, other] = [100_001, 100_002];
        let note = |wanted, place| refusals::note(Refusal { wanted, place });
        let elsewhere = || std::thread::spawn(move || note(5000, other)).join().unwrap();
        let attempts = Cell::new(0);
        let fail = || {
            attempts.set(attempts.get() + 1);
            core::ptr::null_mut()
        };
        thread_begin::real_cache();
        assert!(limit_callback::set(Some(tell), core::ptr::null_mut()));
        let for_another_reason = || {
            elsewhere();
            fail()
        };
        assert!(with_retry(usize::MAX, for_another_reason).is_null() && attempts.get() >= 2);
        assert_eq!(*TOLD.lock().unwrap(), []);
        let refused = || {
            note(3000, own);
            for_another_reason()
        };
        assert!(with_retry(usize::MAX, refused).is_null() && attempts.get() >= 4);
        assert_eq!(*TOLD.lock().unwrap(), [(3000, own as u32)]);
        // The second attempt alone is refused. Unused pages are purged before the program is asked.
        let (first, second) = (attempts.get() + 1, attempts.get() + 2);
        let later = || if attempts.get() < first { fail() } else { refused() };
        assert!(with_retry(usize::MAX, later).is_null() && attempts.get() > second);
        assert_eq!(TOLD.lock().unwrap().len(), 2);
        assert!(limit_callback::set(None, core::ptr::null_mut()));
    }

    #[test]
    fn the_bound_of_an_arena_that_is_not_there_is_none() {
        assert_eq!(bound_of(u32::MAX), (0, 0));
        thread_begin::real_cache();
        assert_eq!(bound_of(0).1, 0, "no bound was set");
    }
}
