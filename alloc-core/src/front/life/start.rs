//! The start of the process's allocator, once, by the first caller.

use super::started::{self, START};
use super::{background, fork, process_exit, thread_end};
use crate::back::aging::{limit, soft_limit};
use crate::back::runs::source;
use crate::front::cache::{callback_scope, current};
use crate::front::modes::hardened::canary;
use crate::front::modes::watch::{self, Observer};
use crate::front::modes::{diversion, guarded, last_heap};
use crate::front::supply::layouts;
use crate::ground::callback;
use crate::ground::fatal;
use crate::ground::intervals;
use crate::ground::size_class::MAX_CACHED;
use crate::ground::trace;
use crate::ground::{conf, conf_record, fill_mode, options};
use crate::middle::arenas::arena_list;
use crate::profile::backtrace::messages;
use crate::profile::{history, names, sampler};

/// Makes the start if needed. Returns `false` if there is no memory; the next caller tries again.
///
/// The calling thread's cache must be a façade that does not lead back here.
pub(crate) fn ensure_started() -> bool {
    started::is_made() || start()
}

// Out of line, so that a thread's first call does not take the kilobytes of stack of the options.
#[cold]
#[inline(never)]
fn start() -> bool {
    let mut start = START.lock();
    if started::is_made() {
        return true;
    }
    trace::set_walk(&messages::WALK);
    fatal::set_ending(last_heap::begin);
    if !start.are_options_read {
        // SAFETY: this thread holds START, and sets `are_options_read` before it releases the lock.
        unsafe { read_options() };
        start.are_options_read = true;
    }
    if arena_list::count() == 0 && arena_list::make_next(1).is_none() {
        return false;
    }
    callback::set_scope(&callback_scope::SCOPE);
    thread_end::register_exit();
    fork::register();
    process_exit::register();
    background::begin();
    started::note();
    true
}

/// Reads the options, and puts those that concern all threads in force.
///
/// # Safety
/// Must be called once, under START.
unsafe fn read_options() {
    // SAFETY: the caller's promise: this is the only call.
    let read = unsafe { conf_record::keep(conf::read_all) };
    // SAFETY: as above.
    unsafe { options::freeze(read) };
    if let Ok(bytes) = usize::try_from(options::current().limit_soft) {
        soft_limit::set(bytes);
    }
    limit::set_hard(options::current().limit_hard);
    source::note_address_limit();
    fill_mode::set(fill_mode::of(options::current()));
    if diversion::begin() {
        watch::set_observer(Observer::Diversion, true);
        watch::begin();
    }
    if options::current().is_watching() {
        watch::begin();
    }
    if options::current().hardened {
        canary::prepare();
    } else {
        fatal::set_seen_late(MAX_CACHED);
    }
    if options::current().guarded_sample > 0 {
        guarded::prepare();
    }
    if guarded::is_on() || options::current().tells_who_frees() {
        layouts::prepare();
    }
    if options::current().prof {
        begin_profile();
    }
}

/// Makes the process one that may take samples for heap profiles.
#[cold]
fn begin_profile() {
    let options = options::current();
    sampler::prepare(&sampler::Settings {
        lg_sample: options.lg_prof_sample,
        active: options.prof_active,
        new_threads: options.prof_thread_active_init,
        seed: options.prof_seed,
    });
    intervals::set_profiles_maxima(options.prof_gdump);
    history::set_who(|| {
        let thread = current::thread();
        thread.map(|thread| (thread.number(), names::of_thread(thread.name()))).unwrap_or_default()
    });
    history::set_most(options.prof_recent_alloc_max);
    names::set_from_system(options.prof_sys_thread_name);
}
