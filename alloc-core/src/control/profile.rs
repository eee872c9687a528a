//! Switches of the heap profiler. Source: jemalloc(3), `prof.*` and `thread.prof.*`.
//!
//! Most have an effect only in a process that was started with `prof:true`.
//!
//! # Hooks
//!
//! Hooks are functions of the program that the profiler calls: [`set_sample_hook`],
//! [`set_sample_free_hook`], [`set_hooks`], [`set_backtrace_hook`] and [`set_dump_hook`]. Any
//! thread may call them, several at once, and even some time after another one was set. They run
//! under no lock of the allocator, and `errno` is restored after them.
//!
//! - A hook may allocate, free and call the functions of this crate. Its allocations come from the
//!   first arena, past all caches, and are neither sampled nor told. Of samples that a hook frees,
//!   the program is told after the hook returned.
//! - A hook must not wait for a lock that a thread may hold while it allocates or frees.
//! - A hook must not unwind: a panic aborts the process.
//! - [`reset`] forgets samples. Their frees are not told.

use super::arenas;
use crate::front::cache::{current, rousing, switch};
use crate::front::calls::query;
use crate::front::life::thread_begin;
use crate::front::modes::diversion;
use crate::front::supply::freed_samples;
use crate::ground::prof_prefix as prefix;
pub use crate::ground::prof_prefix::Prefix;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_settings;
use crate::observe::SampleLog;
pub use crate::profile::backtrace::Unwinder;
use crate::profile::backtrace::{self, Heap};
pub use crate::profile::hooks::{
    AllocatedHook, BacktraceHook, DumpHook, FreedHook, SampleFreeHook, SampleHook,
};
use crate::profile::{history, hooks, names, sampler};
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
    if !active {
        sampler::note_left_out();
    }
    if let Some(thread) = current::thread() {
        thread.set_profiled(active);
    }
    before
}

/// Whether allocations of an arena are in heap profiles, and in the counts beside them.
#[must_use]
pub fn is_arena_profiled(index: u32) -> Option<bool> {
    arenas::find(index).map(Arena::is_profiled)
}

/// Sets what [`is_arena_profiled`] returns. Returns `false` if there is no arena with this index.
///
/// An arena for tools inside the process is best set so before its first allocation. Later, the
/// counts of [`class_counts`](crate::observe::class_counts()) and the samples are not of the same
/// allocations any more, and [`since_start`](crate::observe::ProfileCounts::since_start) says so.
/// The counts may be wrong by the blocks that threads of such arenas and others have of each other.
///
/// ```
/// use lumalloc::control::{arenas, profile};
/// let arena = arenas::create().unwrap();
/// assert!(profile::set_arena_profiled(arena, false));
/// assert_eq!(profile::is_arena_profiled(arena), Some(false));
/// ```
#[must_use]
pub fn set_arena_profiled(index: u32, is_profiled: bool) -> bool {
    arenas::find(index).map(|arena| arena_settings::set_profiled(arena, is_profiled)).is_some()
}

/// Returns the calling thread's name in profiles, which is empty at first: the one that was set, or
/// with `opt.prof_sys_thread_name` the system's. Source: jemalloc(3), `thread.prof.name`.
#[must_use]
pub fn thread_name() -> &'static CStr {
    thread_begin::real_cache();
    let own = current::thread().map(|thread| thread.name()).unwrap_or_default();
    names::of_thread(own).name()
}

/// Why a name was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// It has a byte that is neither a printable character of ASCII, a space nor a tab.
    Unprintable,
    /// Names are the system's, by `opt.prof_sys_thread_name`.
    FromSystem,
}

/// Sets the calling thread's name in the profiles of its later samples. Of a name that is longer
/// than 15 bytes the beginning is used. At most 3072 different names are kept; threads that set
/// others have none.
///
/// ```
/// use lumalloc::control::profile::{self, BadName};
/// assert_eq!(profile::set_thread_name(c"reader"), Ok(()));
/// assert_eq!(profile::thread_name(), c"reader");
/// assert_eq!(profile::set_thread_name(c"two\nlines"), Err(BadName::Unprintable));
/// ```
///
/// # Errors
/// [`BadName`] says why. The thread's name is then as before.
pub fn set_thread_name(name: &CStr) -> Result<(), BadName> {
    thread_begin::real_cache();
    if names::are_from_system() {
        return Err(BadName::FromSystem);
    }
    let is_printable = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t');
    if !name.to_bytes().iter().all(is_printable) {
        return Err(BadName::Unprintable);
    }
    if let Some(thread) = current::thread() {
        thread.set_name(names::index_of(name.to_bytes()));
    }
    Ok(())
}

/// Forgets all samples, and takes one in 2^`lg_sample` bytes on average from now on. Source:
/// jemalloc(3), `prof.reset`.
///
/// Threads follow at once, or where the system refuses `membarrier` later, and
/// [`is_behind`](crate::observe::ProfileCounts::is_behind) says so.
pub fn reset(lg_sample: u32) {
    sampler::reset(lg_sample);
    if sampler::is_on() && !rousing::all() {
        sampler::note_behind();
    }
}

/// Returns how many of the last samples are kept; negative: all. Source: jemalloc,
/// `experimental.prof_recent.alloc_max`.
#[must_use]
pub fn recent_samples() -> isize {
    thread_begin::real_cache();
    history::most()
}

/// Sets how many of the last samples are kept, with what becomes of them; negative: all. Returns
/// how many were. [`observe::recent_samples`](crate::observe::recent_samples) shows them.
pub fn set_recent_samples(most: isize) -> isize {
    thread_begin::real_cache();
    history::set_most(most)
}

/// Begins a log of the samples that are freed. It takes some hundred bytes of the allocator's own
/// memory for each, until it ends. Returns `false` if a log is kept already. Source: jemalloc(3),
/// `prof.log_start`.
pub fn start_log() -> bool {
    thread_begin::real_cache();
    history::begin_log()
}

/// Ends the log, and returns it. `None`: none was kept. Source: jemalloc(3), `prof.log_stop`.
#[must_use]
pub fn stop_log() -> Option<SampleLog> {
    settle();
    history::end_log().map(SampleLog::new)
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

/// Notices the samples that threads have freed by their size. Otherwise each counts as in use until
/// its place in a thread's cache is used next.
pub fn settle() {
    freed_samples::note_all();
}

/// Notes that all code of this shared object is the allocator's, unless it is the program, and what
/// was loaded with the program. `serves_loader`: whether the loader's `calloc` is this allocator's.
pub fn own_module(serves_loader: fn() -> bool) {
    // Blocks of functions that take the place of malloc are not known.
    let serves_loader = if diversion::is_on() { || false } else { serves_loader };
    backtrace::own_module(Heap { serves_loader, is_ours: query::is_ours });
}

/// Returns the function that is told of samples, if one is set.
#[must_use]
pub fn sample_hook() -> Option<SampleHook> {
    hooks::SAMPLE.get()
}

/// Sets the function that is told of each sample, before the allocation returns it, or none.
/// Returns the one before. Source: jemalloc, `experimental.hooks.prof_sample`.
///
/// ```
/// use core::ffi::{c_uint, c_void};
/// use lumalloc::control::profile;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// static BYTES: AtomicUsize = AtomicUsize::new(0);
///
/// extern "C" fn sampled(
///     _: *const c_void,
///     requested: usize,
///     _: *mut *mut c_void,
///     _: c_uint,
///     _: usize,
/// ) {
///     BYTES.fetch_add(requested, Relaxed);
/// }
///
/// assert!(profile::set_sample_hook(Some(sampled)).is_none());
/// let block = lumalloc::raw::malloc(100);
/// // Without `opt.prof` there are no samples.
/// assert_eq!(BYTES.load(Relaxed), 0);
/// # // SAFETY: freed once.
/// # unsafe { lumalloc::raw::free(block) };
/// assert!(profile::set_sample_hook(None).is_some());
/// ```
pub fn set_sample_hook(hook: Option<SampleHook>) -> Option<SampleHook> {
    hooks::SAMPLE.set(hook)
}

/// Returns the function that is told of freed samples, if one is set.
#[must_use]
pub fn sample_free_hook() -> Option<SampleFreeHook> {
    hooks::SAMPLE_FREE.get()
}

/// Sets the function that is told of each sample that is freed, or none. Returns the one before.
/// Source: jemalloc, `experimental.hooks.prof_sample_free`.
///
/// The function is called before the block is freed. Exceptions: blocks that are freed by their
/// size (Rust, `operator delete` with a size), moved by `realloc`, or end with their arena. Their
/// frees are noticed later, and the thread that notices one tells it as soon as it holds no lock.
/// Another thread may then have got the block already.
pub fn set_sample_free_hook(hook: Option<SampleFreeHook>) -> Option<SampleFreeHook> {
    hooks::SAMPLE_FREE.set(hook)
}

/// Returns the function that finds the stacks of samples.
#[must_use]
pub fn backtrace_hook() -> BacktraceHook {
    hooks::BACKTRACE.get().unwrap_or(hooks::default_backtrace)
}

/// Sets the function that finds the stacks of samples. Returns the one before. The first one is the
/// allocator's own, which the function may call. Source: jemalloc,
/// `experimental.hooks.prof_backtrace`.
///
/// # Safety
/// The function must write no more addresses than it is told, and only to the place that it gets.
pub unsafe fn set_backtrace_hook(hook: BacktraceHook) -> BacktraceHook {
    hooks::BACKTRACE.set(Some(hook)).unwrap_or(hooks::default_backtrace)
}

/// Lets another unwinder than the allocator's own find the stacks of samples, such as backtrace(3),
/// or ends that. The allocator's own frames are left out of what it finds. A hook set by
/// [`set_backtrace_hook`] comes before it.
///
/// # Safety
/// The function must write no more addresses than it is told, and only to the place that it gets.
pub unsafe fn set_unwinder(unwinder: Option<Unwinder>) {
    hooks::UNWINDER.set(unwinder);
}

/// Returns the functions that are told of each allocation and each free, as far as they are set.
#[must_use]
pub fn hooks() -> (Option<AllocatedHook>, Option<FreedHook>) {
    (hooks::ALLOCATED.get(), hooks::FREED.get())
}

/// Sets the functions that are told of each allocation, after it, and of each free, before it, or
/// none. They work without `opt.prof` too. All operations take longer meanwhile: see
/// [`control::monitor`](crate::control::monitor). A block that changes its size is freed and
/// allocated. Returns `false`, and sets none, if there is no memory or the system refuses
/// `membarrier`.
///
/// ```
/// use core::ffi::c_void;
/// use lumalloc::control::profile;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// static BYTES: AtomicUsize = AtomicUsize::new(0);
///
/// extern "C" fn allocated(_: *const c_void, size: usize) {
///     BYTES.fetch_add(size, Relaxed);
/// }
///
/// assert!(profile::set_hooks(Some(allocated), None));
/// let block = lumalloc::raw::malloc(100);
/// assert!(profile::set_hooks(None, None));
/// assert!(BYTES.load(Relaxed) >= 100);
/// # // SAFETY: freed once.
/// # unsafe { lumalloc::raw::free(block) };
/// ```
pub fn set_hooks(allocated: Option<AllocatedHook>, freed: Option<FreedHook>) -> bool {
    change_hooks(allocated.is_some() || freed.is_some(), |_| (allocated, freed))
}

/// Sets the first function of [`set_hooks`] alone. The other one is told of all operations
/// meanwhile. Returns `false`, and sets none, where [`set_hooks`] does.
#[must_use]
pub fn set_allocated_hook(hook: Option<AllocatedHook>) -> bool {
    change_hooks(hook.is_some(), |(_, freed)| (hook, freed))
}

/// Sets the second function of [`set_hooks`] alone, as [`set_allocated_hook`] sets the first.
#[must_use]
pub fn set_freed_hook(hook: Option<FreedHook>) -> bool {
    change_hooks(hook.is_some(), |(allocated, _)| (allocated, hook))
}

fn change_hooks(is_set: bool, change: impl FnOnce(switch::Hooks) -> switch::Hooks) -> bool {
    thread_begin::real_cache();
    if is_set {
        // What they allocate is not sampled.
        sampler::note_left_out();
    }
    switch::change_hooks(change)
}

/// Returns the function that is told of profiles, if one is set.
#[must_use]
pub fn dump_hook() -> Option<DumpHook> {
    hooks::DUMP.get()
}

/// Sets the function that is told the name of each profile, once its file is whole, or none.
/// Returns the one before. Source: jemalloc, `experimental.hooks.prof_dump`.
pub fn set_dump_hook(hook: Option<DumpHook>) -> Option<DumpHook> {
    hooks::DUMP.set(hook)
}

/// Calls the function of [`set_dump_hook`], if one is set.
pub fn note_dump(name: &CStr) {
    hooks::tell_dump(name);
}
