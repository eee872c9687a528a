//! The start of the process's allocator: once, by whoever calls first.

use super::started::{self, START};
use super::{background, fork, thread_end};
use crate::front::cache::callback_scope;
use crate::front::modes::hardened::canary;
use crate::front::modes::{guarded, watch};
use crate::front::supply::layouts;
use crate::ground::callback;
use crate::ground::{conf, conf_record, fill_mode, options};
use crate::middle::arenas::arena_list;

/// Makes the start if nobody has. `false`: no memory; the next caller tries again.
///
/// The calling thread's cache is a façade that does not come back here.
pub(crate) fn ensure_started() -> bool {
    started::is_made() || start()
}

// Its options take kilobytes of stack, which the first call of a thread is not to pay for.
#[cold]
#[inline(never)]
fn start() -> bool {
    let mut start = START.lock();
    if started::is_made() {
        return true;
    }
    if !start.are_options_read {
        // SAFETY: this thread holds START, and says so before it releases the lock.
        unsafe { read_options() };
        start.are_options_read = true;
    }
    if arena_list::count() == 0 && arena_list::make_next(1).is_none() {
        return false;
    }
    callback::set_scope(&callback_scope::SCOPE);
    thread_end::register_exit();
    fork::register();
    if options::current().background_thread {
        background::want();
    }
    started::note();
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
        watch::begin();
    }
    if options::current().hardened {
        canary::prepare();
    }
    if options::current().guarded_sample > 0 {
        guarded::prepare();
    }
    if guarded::is_on() {
        layouts::prepare();
    }
}
