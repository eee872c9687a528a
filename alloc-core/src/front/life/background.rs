//! The background thread: decay passes by a thread that does nothing else, so that an idle process
//! gives its memory back and a busy one's calls stay cheap. Source: jemalloc(3),
//! `background_thread`.
//!
//! ```text
//!   OFF ◀──fork, refused── WANTED ──first unused pages──▶ BUSY ⇄ NAPPING    until the next pass
//!    ▲                        ▲                            ⇅
//!    └── STOPPING ◀──write false── (any)               RESTING              until anybody comes by
//! ```
//! One thread is enough for any number of arenas: a pass over them is cheap. `opt` only asks for
//! it: it is started by the first slow path that sees unused pages, after that path has let go of
//! everything (starting a thread allocates), and is never part of a program that frees nothing.
//!
//! While there is traffic it naps between passes. When a pass finds all caches idle, it sleeps
//! until the next pages are due, or for ever if there are none; then any slow path wakes it. That
//! must not be lost: the thread says RESTING, waits for one period, makes a pass, and only if it
//! still says RESTING then it trusts in being woken. Whoever did not see the word in that period
//! did what it did before the pass.
//!
//! It ends when no thread of the program's is left that has allocated (`WANTED` again, so that a
//! later one starts it), and so never keeps a process alive whose last thread has called
//! `pthread_exit`.

use crate::back::aging::{debt, limit};
use crate::front::bins::thread_cache::{Kind, REENTRANT};
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::cache::registry::THREADS;
use crate::ground::counters::SharedCount;
use crate::ground::options;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::text::Line;
use crate::ground::{message, os, own_thread};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::{arena_hooks, purge_gate};
use crate::middle::passes::decay_pass;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};

const OFF: u32 = 0;
const WANTED: u32 = 1;
const BUSY: u32 = 2;
const NAPPING: u32 = 3;
const RESTING: u32 = 4;
const STOPPING: u32 = 5;

/// The shortest nap: the clock ticks in steps of some milliseconds.
const NAP_MIN: u64 = 10;

/// Held while the thread is started or stopped, and by a fork.
pub(crate) static CHANGE: RankedMutex<()> = RankedMutex::new(LockRank::Background, ());
static STATE: AtomicU32 = AtomicU32::new(OFF);
/// The most threads that may run; `AS_OPTIONS`: as the options say.
static MOST: AtomicUsize = AtomicUsize::new(AS_OPTIONS);
const AS_OPTIONS: usize = usize::MAX;

/// Passes made by background threads, and milliseconds slept between them.
static RUNS: SharedCount = SharedCount::new();
static SLEPT: SharedCount = SharedCount::new();

/// What slow paths call when they hold nothing any more: runs a decay pass if one is due, or sees
/// to it that the background thread does.
#[inline]
pub(crate) fn tick() {
    if purge_gate::is_hooked_due() || limit::is_due() {
        give_way();
    }
    match STATE.load(Relaxed) {
        OFF if decay_pass::is_due() => decay(),
        WANTED => start_if_needed(),
        NAPPING if debt::is_due() => rouse(NAPPING),
        RESTING => rouse(RESTING),
        _ => {}
    }
}

/// What every way past the caches ends with: as [`tick`], unless the calling thread is inside the
/// allocator already.
pub(crate) fn tick_outside() {
    if matches!(tls::current().kind(), Kind::Real | Kind::Mode | Kind::Uncached) {
        tick();
    }
}

/// What is not put off where no thread does it.
#[cold]
#[inline(never)]
fn give_way() {
    if current::lives_on_reserve() {
        return;
    }
    if purge_gate::is_hooked_due() {
        arena_hooks::tick();
    }
    if limit::is_due() && limit::reached() {
        decay_pass::purge(|_| true);
        limit::note_purge();
    }
}

#[cold]
#[inline(never)]
fn decay() {
    if !current::lives_on_reserve() {
        decay_pass::tick();
    }
}

/// Notes that the options ask for it. Before any other thread allocates.
pub(crate) fn want() {
    STATE.store(WANTED, Relaxed);
}

/// Whether it is on: running, or to be started when it is needed.
pub(crate) fn is_on() -> bool {
    !matches!(STATE.load(Relaxed), OFF | STOPPING)
}

/// How many run now.
pub(crate) fn threads() -> usize {
    usize::from(!matches!(STATE.load(Relaxed), OFF | WANTED))
}

/// Passes so far, and the mean time between two of them in nanoseconds.
pub(crate) fn runs() -> (u64, u64) {
    let runs = RUNS.get();
    (runs, SLEPT.get().saturating_mul(1_000_000).checked_div(runs).unwrap_or(0))
}

/// The most threads that may run.
pub(crate) fn most() -> usize {
    match MOST.load(Relaxed) {
        AS_OPTIONS => options::current().max_background_threads,
        most => most,
    }
}

/// Sets the most threads that may run. `false`: 0, or more than the options allow.
pub(crate) fn set_most(most: usize) -> bool {
    let fits = (1..=options::current().max_background_threads).contains(&most);
    if fits {
        MOST.store(most, Relaxed);
    }
    fits
}

/// Starts it if it does not run. `false`: the system refuses, which is also said in a message.
pub(crate) fn enable() -> bool {
    if threads() > 0 && is_on() {
        return true;
    }
    let started = {
        let _change = CHANGE.lock();
        if matches!(STATE.load(Relaxed), OFF | WANTED) { start() } else { Ok(()) }
    };
    judge(started)
}

/// Stops it, and waits until it has stopped.
pub(crate) fn disable() {
    let _change = CHANGE.lock();
    // Acquire: pairs with the Release in `leave`: its last pass is seen.
    while let state @ (BUSY | NAPPING | RESTING | STOPPING) = STATE.load(Ordering::Acquire) {
        if state == STOPPING {
            os::futex_wait(&STATE, STOPPING);
        } else if change(state, STOPPING) {
            os::futex_wake_one(&STATE);
        }
    }
    STATE.store(OFF, Relaxed);
}

/// There is no such thread in a forked child, and none is wanted.
pub(crate) fn forget_in_child() {
    STATE.store(OFF, Relaxed);
}

/// A thread has ended: where it was the last, the background thread ends.
pub(crate) fn tick_at_exit() {
    match STATE.load(Relaxed) {
        RESTING => rouse(RESTING),
        NAPPING if is_alone() => rouse(NAPPING),
        WANTED if !is_alone() => start_if_needed(),
        _ => {}
    }
}

fn change(from: u32, to: u32) -> bool {
    // Release: pairs with the Acquire in `disable`.
    STATE.compare_exchange(from, to, Ordering::Release, Relaxed).is_ok()
}

#[cold]
#[inline(never)]
fn rouse(from: u32) {
    if change(from, BUSY) {
        os::futex_wake_one(&STATE);
    }
}

#[cold]
#[inline(never)]
fn start_if_needed() {
    if current::lives_on_reserve() {
        return;
    }
    if arena_list::all().any(Arena::has_aging_pages) {
        let started = match CHANGE.try_lock() {
            Some(_change) if STATE.load(Relaxed) == WANTED => start(),
            _ => Ok(()),
        };
        judge(started);
    }
    decay_pass::tick();
}

/// Under the lock of changes, and no other: the C library allocates the thread's storage. What it
/// allocates finds the state BUSY and goes on.
fn start() -> Result<(), c_int> {
    STATE.store(BUSY, Relaxed);
    let started = own_thread::start(body);
    if started.is_err() {
        STATE.store(OFF, Relaxed);
    }
    started
}

fn judge(started: Result<(), c_int>) -> bool {
    if let Err(error) = started {
        let mut line = Line::<100>::new();
        line.text("<lumalloc>: the background thread cannot be started (error ");
        line.number(error.unsigned_abs().into()).text(")\n");
        message::write(line.as_bytes());
    }
    started.is_ok()
}

/// Whether no thread of the program's allocates any more.
fn is_alone() -> bool {
    THREADS.get() == 0
}

extern "C" fn body(_: *mut c_void) -> *mut c_void {
    // It allocates nothing; what the C library frees when it ends goes past all caches.
    tls::set_current(&REENTRANT);
    own_thread::name(c"lumalloc_bg");
    while !leave(is_alone()) {
        let now = os::coarse_millis();
        let next = decay_pass::pass(now);
        RUNS.add(1);
        sleep(now, next);
        SLEPT.add(os::coarse_millis().saturating_sub(now));
    }
    core::ptr::null_mut()
}

/// Whether it ends here: because it was told to, or because it is alone.
fn leave(alone: bool) -> bool {
    loop {
        match STATE.load(Relaxed) {
            STOPPING => {
                // Release: pairs with the Acquire in `disable`.
                STATE.store(OFF, Ordering::Release);
                os::futex_wake_one(&STATE);
                return true;
            }
            state if alone => {
                decay_pass::purge(|_| true);
                if change(state, WANTED) {
                    return true;
                }
            }
            _ => return false,
        }
    }
}

/// Sleeps after a pass at `now` that says when the next should be.
fn sleep(now: u64, next: Option<u64>) {
    let period = decay_pass::period();
    let left = next.map(|next| next.saturating_sub(now).max(NAP_MIN));
    match left.filter(|left| *left <= period) {
        // From nothing but these two: it may be told to stop at any time.
        Some(nap) if change(BUSY, NAPPING) || change(RESTING, NAPPING) => {
            os::futex_wait_for(&STATE, NAPPING, Some(nap));
            change(NAPPING, BUSY);
        }
        Some(_) => {}
        None if change(BUSY, RESTING) => os::futex_wait_for(&STATE, RESTING, Some(period)),
        // It has said so for a period: it can trust in being woken.
        None => os::futex_wait_for(&STATE, RESTING, left),
    }
}
