//! The start of the process's allocator: once, by whoever calls first.

use super::guarded;
use super::hardened::canary;
use super::{background, fork, switch, thread_cache, thread_life};
use crate::ground::callback;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::{conf, conf_record, fill_mode, options};
use crate::middle::arena_list;
use core::sync::atomic::{AtomicBool, Ordering};

/// One thread makes the start. Fork waits for it.
pub(crate) static START: RankedMutex<()> = RankedMutex::new(LockRank::Pass, ());
static STARTED: AtomicBool = AtomicBool::new(false);
/// The options were read. They stay as they are, also where the start then failed.
static READ: AtomicBool = AtomicBool::new(false);

/// Makes the start if nobody has. `false`: no memory; the next caller tries again.
///
/// The calling thread's cache is a façade that does not come back here.
pub(crate) fn ensure_started() -> bool {
    // Acquire: pairs with the Release below: options, arena 0 and the exit call are there.
    if STARTED.load(Ordering::Acquire) {
        return true;
    }
    start()
}

// Its options take kilobytes of stack, which the first call of a thread is not to pay for.
#[cold]
#[inline(never)]
fn start() -> bool {
    let _start = START.lock();
    if STARTED.load(Ordering::Relaxed) {
        return true;
    }
    if !READ.load(Ordering::Relaxed) {
        // SAFETY: this thread holds START, and READ is set before the lock is released.
        unsafe { read_options() };
        READ.store(true, Ordering::Relaxed);
    }
    if arena_list::count() == 0 && arena_list::make_next(1).is_none() {
        return false;
    }
    callback::set_scope(&thread_cache::SCOPE);
    thread_life::register_exit();
    fork::register();
    if options::current().background_thread {
        background::want();
    }
    // Release: pairs with the Acquire above.
    STARTED.store(true, Ordering::Release);
    true
}

/// Reads the options, and puts in force what they say of all threads.
///
/// # Safety
/// Called once, under START.
unsafe fn read_options() {
    // SAFETY: the caller's promise: it is the one call.
    let read = unsafe { conf_record::keep(conf::read_all) };
    // SAFETY: as above.
    unsafe { options::freeze(read) };
    fill_mode::set(fill_mode::of(options::current()));
    if options::current().is_watching() {
        switch::begin_watching();
    }
    if options::current().hardened {
        canary::prepare();
    }
    if options::current().guarded_sample > 0 {
        guarded::prepare();
    }
}
