//! The background thread runs decay passes and nothing else, so that an idle process gives its
//! memory back and the calls of a busy one stay cheap. Source: jemalloc(3), `background_thread`.
//!
//! Its states and their changes are those of [`HelperState`]. A slow path ([`tick`]) and a thread
//! that ends ([`tick_at_exit`]) look at the state once they hold no lock:
//!
//! [`HelperState`]: crate::ground::sync::helper_state::HelperState
//!
//! | state | a slow path | a thread that ends |
//! |---|---|---|
//! | OFF | makes a pass if due; starts the thread, or trims, if use has fallen | starts it too |
//! | WANTED | starts the thread if pages age; makes a pass if due | starts it if others are left |
//! | BUSY | – | – |
//! | NAPPING | wakes it if the growth of the heap asks for a purge | wakes it if too few are left |
//! | RESTING | wakes it | wakes it |
//! | STOPPING | – | – |
//!
//! A thread that ends and leaves too few for one that runs for a time tells it to end, whatever the
//! state is, waits for that ([`FormerThread`]), and trims.
//!
//! One thread is enough for any number of arenas, because a pass over them is cheap. The option
//! only asks for it. The first slow path that sees unused pages starts it, after releasing all
//! locks (starting a thread allocates). A program that frees nothing never starts it.
//!
//! By default it runs for a time: a slow path starts it once much of what was handed out has come
//! back ([`handed_out`]), where [`may_start`] allows that. If it is the only thread or none can be
//! started, it trims. The thread ends when nothing is left to give back, when the use of memory has
//! not fallen far for two decay times, or when one thread is left. It goes on if the use falls far
//! then.
//!
//! While there is traffic the thread naps between passes. When a pass finds all caches idle, it
//! sleeps until the next pages are due, or for ever if there are none. Any slow path then wakes it.
//! For no wake-up to be lost, the thread sets RESTING, waits for one period, and makes a pass. Only
//! if the state is still RESTING does it rely on being woken. A thread that did not see RESTING in
//! that period did its work before the pass.
//!
//! A kept thread ends when no thread is left that has allocated, so that it keeps no process alive.
//! The state is then `WANTED`, so that a later thread starts it again.

use super::former_thread::{self, CHANGE, FormerThread};
use super::may_start::MayStart;
use super::quiet::Quiet;
use super::{automatic, background_runs, helper, idle_caches, may_start, prompt_purge, trim};
use crate::back::aging::growth_purge;
use crate::front::bins::thread_cache::{Kind, REENTRANT};
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::cache::registry::{CACHES, THREADS};
use crate::ground::options;
use crate::ground::sync::helper_state::State;
use crate::ground::text::Line;
use crate::ground::{os, own_thread, warning};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::{arena_list, arena_settings};
use crate::middle::handed_out;
use crate::middle::passes::decay_pass;
use crate::profile::sampler;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The shortest nap, because the clock ticks in steps of some milliseconds.
const NAP_MIN: u64 = 10;

/// Whether the thread is kept as long as the process has threads.
static IS_KEPT: AtomicBool = AtomicBool::new(false);
/// From so many thread caches on, of up to a MiB each, idle ones may hold much memory.
const MANY_CACHES: u64 = 24;

/// Tells the program of freed samples, and runs a decay pass if one is due, or lets the background
/// thread do so. Slow paths call this once they hold no lock.
#[inline]
pub(crate) fn tick() {
    sampler::tell_freed();
    if prompt_purge::is_due() {
        prompt_purge::run();
    }
    match helper::get().get() {
        State::Off if decay_pass::is_due() || handed_out::has_moved() => decay(),
        State::Wanted => start_if_needed(),
        State::Napping if growth_purge::is_due() => helper::wake(State::Napping),
        State::Resting => helper::wake(State::Resting),
        _ => {}
    }
}

/// As [`tick`], but not inside the allocator. Called at the end of every operation past the caches,
/// also by threads without a cache.
pub(crate) fn tick_outside() {
    if tls::current().kind() != Kind::Reentrant {
        tick();
    }
}

#[cold]
#[inline(never)]
fn decay() {
    if current::lives_on_reserve() {
        return;
    }
    if handed_out::has_moved() {
        start_for_a_time();
    }
    pass_if_due();
}

/// Runs a pass now, due or not, over owners, arenas and caches of idle threads. Returns when the
/// next pass should be, in milliseconds of [`os::coarse_millis`]. `None`: not before a thread takes
/// a slow path. The caller holds no lock.
pub(crate) fn pass(now: u64) -> Option<u64> {
    // First, because the pass over arenas purges what idle caches have held.
    let caches = idle_caches::pass(now);
    [caches, decay_pass::pass(now)].into_iter().flatten().min()
}

/// Runs a pass on the calling thread, which has other work, if one is due.
fn pass_if_due() {
    if decay_pass::tick() {
        idle_caches::pass_few(os::coarse_millis());
    }
}

/// Starts the thread because much memory is unused, or may be in the caches of many threads, if it
/// may be started now. Writes no message if the system refuses. Trims where none can be started.
/// The child of a vfork starts none and forgets nothing, so that its parent can.
fn start_for_a_time() {
    let seen = handed_out::moves();
    if has_too_few_threads() {
        if !trim::step(automatic::may_trim()) && may_start::is_own_process() {
            handed_out::forget(seen);
        }
        return;
    }
    if !may_start::is_own_process() {
        return;
    }
    let is_much = seen.has_fallen() || CACHES.get() >= MANY_CACHES;
    let is_wanted = || is_much && automatic::is_on() && helper::get().get() == State::Off;
    if is_wanted() && !may_start::is_create_of_c_library() {
        automatic::note_no_threads();
    }
    let keeps_unused = arena_settings::shortest_decay_ms() < 0;
    if is_wanted() && !keeps_unused {
        match may_start::may_start() {
            MayStart::Now => {
                let started = match CHANGE.try_lock() {
                    // The next slow path trims.
                    Some(_) if has_too_few_threads() => return,
                    Some(mut change) if is_wanted() => start(&mut change),
                    Some(_) => Ok(()),
                    // The thread may be about to end. It looks once more what has moved.
                    None => return,
                };
                if let Err(error) = started {
                    automatic::note_refusal(error);
                }
            }
            MayStart::Later => return,
            MayStart::Never => {}
        }
    }
    let goes_on = helper::get().get() != State::Off
        || (seen.has_fallen() && automatic::is_left_to_callers() && trim::step(true));
    if !goes_on {
        handed_out::forget(seen);
    }
}

/// Does what the options ask for. Called before any other thread allocates.
pub(super) fn begin() {
    may_start::note_process();
    trim::begin();
    let options = options::current();
    automatic::set(options.background_thread_auto);
    if options.background_thread {
        IS_KEPT.store(true, Relaxed);
        helper::get().set(State::Wanted);
    }
}

/// Returns whether the thread is kept: it runs, or is started when it is needed.
pub(crate) fn is_on() -> bool {
    IS_KEPT.load(Relaxed)
}

/// Sets whether the thread is started for a time when much memory is unused. One that runs for a
/// time ends soon if it is not.
pub(crate) fn set_auto(on: bool) {
    automatic::set(on);
    if !on && !is_on() {
        helper::get().wake(State::Resting);
    }
}

/// Returns how many background threads run now.
pub(crate) fn threads() -> usize {
    usize::from(!is_to_start())
}

/// Starts the thread if it does not run. Returns `false`, and writes a message, if the system
/// refuses.
pub(crate) fn enable() -> bool {
    if threads() > 0 && is_on() {
        return true;
    }
    if helper::is_this_thread() {
        // The one who holds the lock may wait for this thread.
        if let Some(_change) = CHANGE.try_lock() {
            IS_KEPT.store(true, Relaxed);
        }
        return true;
    }
    let started = {
        let mut change = CHANGE.lock();
        IS_KEPT.store(true, Relaxed);
        if is_to_start() { start(&mut change) } else { Ok(()) }
    };
    judge(started)
}

/// Stops the thread, and waits until it has stopped. None is started for a time either. The thread
/// itself, which runs extent hooks, ends after its pass.
pub(crate) fn disable() {
    if helper::is_this_thread() {
        IS_KEPT.store(false, Relaxed);
        set_auto(false);
        return;
    }
    let mut change = CHANGE.lock();
    IS_KEPT.store(false, Relaxed);
    set_auto(false);
    helper::stop();
    change.wait();
}

/// Returns whether no background thread runs.
fn is_to_start() -> bool {
    matches!(helper::get().get(), State::Off | State::Wanted) || helper::is_of_parent()
}

/// Turns the background thread off in a forked child, which has none. It may be started for a time
/// once the child has threads.
pub(super) fn begin_in_child() {
    may_start::note_process();
    IS_KEPT.store(false, Relaxed);
    helper::get().set(State::Off);
    CHANGE.lock().forget();
    helper::note_thread(false);
    handed_out::forget_peaks();
}

/// Notes that a thread has ended. If too few are left, the background thread ends too. A thread
/// that lived `on_reserve` starts none.
pub(crate) fn tick_at_exit(on_reserve: bool) {
    if !is_on() && has_too_few_threads() && may_start::is_own_process() {
        end_for_a_time();
    }
    match helper::get().get() {
        State::Resting => helper::wake(State::Resting),
        State::Napping if has_too_few_threads() => helper::wake(State::Napping),
        _ if on_reserve || has_too_few_threads() => {}
        State::Wanted => start_if_needed(),
        // What its caches held has fallen.
        State::Off if handed_out::has_moved() => start_for_a_time(),
        _ => {}
    }
}

/// Ends the thread that runs for a time, if it does, and gives back what it has not yet.
#[cold]
#[inline(never)]
fn end_for_a_time() {
    {
        let mut change = CHANGE.lock();
        // The program may have turned the thread on, or started others, meanwhile.
        if is_on() || !has_too_few_threads() {
            return;
        }
        helper::stop();
        change.wait();
    }
    trim::all(automatic::may_trim());
}

#[cold]
#[inline(never)]
fn start_if_needed() {
    if current::lives_on_reserve() {
        return;
    }
    if arena_list::all().any(Arena::has_aging_pages) && may_start::may_start_wanted() {
        let started = match CHANGE.try_lock() {
            Some(mut change) if helper::get().get() == State::Wanted => start(&mut change),
            _ => Ok(()),
        };
        judge(started);
    }
    pass_if_due();
}

/// Starts the thread, under the `CHANGE` lock and no other, because the C library allocates the
/// thread's storage. These allocations find the state BUSY and go on.
fn start(change: &mut FormerThread) -> Result<(), c_int> {
    helper::zero_in_children();
    helper::get().set(State::Busy);
    let started = change.start(body);
    if started.is_err() {
        IS_KEPT.store(false, Relaxed);
        helper::get().set(State::Off);
    }
    started
}

fn judge(started: Result<(), c_int>) -> bool {
    if let Err(error) = started {
        automatic::note_refusal(error);
        let mut line = Line::<100>::new();
        line.text("<lumalloc>: the background thread cannot be started (error ");
        line.number(error.unsigned_abs().into()).text(")\n");
        warning::warn(line.as_bytes());
    }
    started.is_ok()
}

/// Returns whether the process has too few threads that allocate for the background thread: none,
/// or if it runs for a time, one.
fn has_too_few_threads() -> bool {
    if is_on() { THREADS.get() == 0 } else { !may_start::has_threads() }
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    // This thread allocates nothing. What the C library frees when the thread ends bypasses all
    // caches.
    tls::set_current(&REENTRANT);
    own_thread::name(c"lumalloc_bg");
    helper::note_thread(true);
    let mut quiet = Quiet::since(os::coarse_millis());
    while !leaves() {
        let now = os::coarse_millis();
        let is_quiet = quiet.note(now);
        let mut next = pass(now);
        if next.is_none() && !is_on() {
            // All was given back, so it does not count any more. The pass after that sees what came
            // meanwhile, and what comes later is known as a new fall.
            handed_out::forget_peaks();
            next = pass(now);
        }
        background_runs::RUNS.add(1);
        if !is_on() && (is_quiet || next.is_none()) && retires() {
            break;
        }
        // Turned off in a pass, it ends soon.
        sleep(now, if is_on() || automatic::is_on() { next } else { Some(now) });
        background_runs::SLEPT.add(os::coarse_millis().saturating_sub(now));
    }
    helper::note_thread(false);
    core::ptr::null_mut()
}

/// Returns whether the thread ends here, because it was told to or because too few others are left.
fn leaves() -> bool {
    if helper::get().ends() {
        return true;
    }
    if !is_on() {
        if has_too_few_threads() || !automatic::is_on() {
            trim::all(automatic::may_trim());
            handed_out::forget_peaks();
            return retires();
        }
        return false;
    }
    while has_too_few_threads() {
        decay_pass::purge(|_| true);
        let left = if is_on() { State::Wanted } else { State::Off };
        if helper::get().retires(left) || helper::get().ends() {
            return true;
        }
    }
    false
}

/// Ends a thread that runs for a time, unless it is to be kept or stopped, or the use of memory has
/// fallen far meanwhile.
fn retires() -> bool {
    let has_work = || handed_out::has_fallen() && automatic::is_on() && !has_too_few_threads();
    // The one who holds the lock may wait for this thread.
    let Some(change) = CHANGE.try_lock() else { return false };
    !is_on() && helper::get().retires_without_work(change, former_thread::lock, has_work)
}

/// Sleeps after a pass at `now`. `next` is when the next pass should be.
fn sleep(now: u64, next: Option<u64>) {
    let period = decay_pass::period();
    let left = next.map(|next| next.saturating_sub(now).max(NAP_MIN));
    match left.filter(|left| *left <= period) {
        Some(nap) => helper::get().nap(nap),
        // After one period in which the state was RESTING, the thread relies on being woken.
        None => helper::get().rest(Some(period), left),
    }
}
