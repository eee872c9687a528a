//! What slow paths of the program's threads do about unused memory while no background thread runs.
//!
//! They make the passes, start the thread if much memory is unused, or trim where none can be
//! started. While memory waits for the next pass, or for the budget of [`trim`], a thread that
//! makes few requests would not come back for long. So it is sent here by its next request
//! ([`early`]).

use super::may_start::MayStart;
use super::{automatic, helper, may_start, trim};
use crate::front::cache::registry::{CACHES, REGISTRY};
use crate::front::cache::{current, emptying};
use crate::front::supply::early;
use crate::ground::os;
use crate::ground::sync::helper_state::State;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::{arena_list, arena_settings};
use crate::middle::handed_out;
use core::ffi::c_int;

/// From so many thread caches on, much memory may be in caches whose threads do nothing.
const MANY_CACHES: u64 = 64;
/// Milliseconds between two times that a thread is sent here for what a step has left.
const BETWEEN: u64 = 16;

/// Starts the thread for a time if that is wanted, by a look under the lock of such changes.
/// Returns `None` if another thread has the lock, else the error of the system, if any.
type Start = fn(&dyn Fn() -> bool) -> Option<Result<(), c_int>>;

/// What is done here by the background thread's module.
pub(super) struct Means {
    /// Whether the process has too few threads for a background thread.
    pub(super) is_alone: fn() -> bool,
    /// Runs a pass on the calling thread if one is due. Returns whether it did.
    pub(super) pass_if_due: fn() -> bool,
    /// Starts the thread for a time.
    pub(super) start: Start,
}

/// Does what is due. The caller holds no lock.
#[cold]
#[inline(never)]
pub(super) fn follow(means: &Means) {
    if current::lives_on_reserve() {
        return;
    }
    if handed_out::has_moved() {
        start_or_trim(means);
    }
    if (means.pass_if_due)() {
        after_pass((means.is_alone)());
    }
}

/// Starts the thread for a time because much memory is unused, or may be in the caches of many
/// threads, if it may be started now. Writes no message if the system refuses. Trims where none can
/// be started.
fn start_or_trim(means: &Means) {
    let seen = handed_out::moves();
    if (means.is_alone)() {
        let may_trim = automatic::may_trim();
        if !trim::step(may_trim) {
            handed_out::forget(seen);
        }
        return come_back_for_rest();
    }
    let is_much = seen.has_fallen() || CACHES.get() >= MANY_CACHES;
    let is_wanted = || is_much && automatic::is_on() && helper::get().get() == State::Off;
    if is_wanted() && !may_start::is_create_of_c_library() {
        automatic::note_no_threads();
    }
    let keeps_unused = arena_settings::shortest_decay_ms() < 0;
    if is_wanted() && !keeps_unused && may_start::may_start() == MayStart::Now {
        let Some(started) = (means.start)(&is_wanted) else { return };
        if let Err(error) = started {
            automatic::note_refusal(error);
        }
    }
    if helper::get().get() == State::Off {
        let may_trim = seen.has_fallen() && automatic::is_left_to_callers();
        if !trim::step(may_trim) {
            handed_out::forget(seen);
        }
        come_back_for_rest();
    }
}

/// Goes on with what there was no budget for, and comes back for what waits.
fn after_pass(is_alone: bool) {
    if trim::is_waiting() && is_for_callers_to_trim(is_alone) && trim::step(true) {
        handed_out::note_fallen();
    }
    if arena_settings::shortest_decay_ms() >= 0 {
        come_back();
    }
}

fn is_for_callers_to_trim(is_alone: bool) -> bool {
    if is_alone { automatic::may_trim() } else { automatic::is_left_to_callers() }
}

/// Comes back for what a step may have left.
fn come_back_for_rest() {
    let now = os::coarse_millis();
    if let Some(cache) = current::real_cache().filter(|cache| now >= cache.cut_at.get() + BETWEEN) {
        cache.cut_at.set(now);
        early::cut_short(cache);
    }
}

/// Has the next request of the calling thread, of any class, take a slow path.
fn come_back() {
    current::real_cache().into_iter().for_each(early::cut_short);
}

/// Has the next operation of each thread take a slow path, and go on there with what has not been
/// given back. Called by a thread that ends and has no cache. The caller holds no lock.
pub(super) fn leave_to_others() {
    if trim::is_waiting() || arena_list::all().any(Arena::has_aging_pages) {
        handed_out::note_fallen();
        emptying::rouse_all(&REGISTRY.lock());
    }
}
