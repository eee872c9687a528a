//! Switches of the heap profiler. Source: jemalloc(3), `prof.*` and `thread.prof.*`.
//!
//! They have an effect only in a process that was started with `prof:true`.

use crate::front::cache::current;
use crate::front::life::thread_begin;
use crate::front::supply::freed_samples;
use crate::ground::prof_prefix as prefix;
pub use crate::ground::prof_prefix::Prefix;
use crate::profile::{backtrace, sampler};
use core::ffi::CStr;

/// Returns whether the process may take samples, which `opt.prof` says at its start.
///
/// ```
/// assert!(!lumalloc::control::profile::is_enabled());
/// ```
#[must_use]
pub fn is_enabled() -> bool {
    thread_begin::real_cache();
    sampler::is_on()
}

/// Returns whether the process takes samples now. Source: jemalloc(3), `prof.active`.
#[must_use]
pub fn is_active() -> bool {
    thread_begin::real_cache();
    sampler::is_active()
}

/// Sets whether the process takes samples, and returns whether it did.
pub fn set_active(active: bool) -> bool {
    thread_begin::real_cache();
    sampler::set_active(active)
}

/// Returns whether new threads are sampled. Source: jemalloc(3), `prof.thread_active_init`.
#[must_use]
pub fn samples_new_threads() -> bool {
    thread_begin::real_cache();
    sampler::samples_new_threads()
}

/// Sets whether new threads are sampled, and returns whether they were.
pub fn set_samples_new_threads(sampled: bool) -> bool {
    thread_begin::real_cache();
    sampler::set_samples_new_threads(sampled)
}

/// Returns whether the calling thread is sampled while the process takes samples. Source:
/// jemalloc(3), `thread.prof.active`.
#[must_use]
pub fn is_thread_active() -> bool {
    thread_begin::real_cache();
    current::thread().is_some_and(|thread| thread.is_profiled())
}

/// Sets whether the calling thread is sampled, and returns whether it was.
pub fn set_thread_active(active: bool) -> bool {
    let before = is_thread_active();
    if let Some(thread) = current::thread() {
        thread.set_profiled(active);
    }
    before
}

/// Forgets all samples, and takes one in 2^`lg_sample` bytes on average from now on. Source:
/// jemalloc(3), `prof.reset`.
pub fn reset(lg_sample: u32) {
    sampler::reset(lg_sample);
}

/// Returns what the names of profiles begin with. Source: jemalloc(3), `prof.prefix`.
///
/// ```
/// assert_eq!(lumalloc::control::profile::prefix().as_c_str(), c"jeprof");
/// ```
#[must_use]
pub fn prefix() -> Prefix {
    thread_begin::real_cache();
    prefix::current()
}

/// Sets what the names of profiles begin with. At most 4095 bytes are used.
pub fn set_prefix(text: &CStr) {
    thread_begin::real_cache();
    prefix::set(text.to_bytes());
}

/// Returns the prefix that the options said. Source: jemalloc(3), `opt.prof_prefix`.
#[must_use]
pub fn prefix_option() -> &'static CStr {
    thread_begin::real_cache();
    prefix::option()
}

/// Notices the samples that the calling thread freed by their size, which otherwise are noticed
/// when their places in the thread's cache are used next.
pub fn settle_thread() {
    current::thread()
        .into_iter()
        .flat_map(|thread| thread.caches())
        .for_each(freed_samples::settle);
}

/// Notes that all code of this shared object is the allocator's. Stacks then begin outside of it.
/// Has no effect in a program.
pub fn own_module() {
    backtrace::own_module();
}
