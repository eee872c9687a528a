//! Settings that may be changed while the process runs.

pub(crate) mod discard;
#[allow(unsafe_code)]
pub mod arenas;
pub mod tcache;
#[allow(unsafe_code)]
pub mod limits;
#[allow(unsafe_code)]
pub mod profile;
pub mod thread;
pub mod monitor;
pub mod diversion;
#[allow(unsafe_code)]
pub(crate) mod arena_handle;

pub use crate::ground::fill_mode::Fill;

use crate::front::cache::switch;
use crate::front::life::thread_begin::real_cache;
use crate::front::life::{automatic, background, most_threads, thread_end};
use crate::ground::fill_mode;
use crate::ground::os;
use crate::middle::arenas::{arena_list, choose_arena};
use crate::middle::passes::decay_pass;

/// Stands for all arenas. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
pub const ARENAS_ALL: u32 = 4096;

/// Stands for all arenas that were destroyed. Source: jemalloc(3), `MALLCTL_ARENAS_DESTROYED`.
pub const ARENAS_DESTROYED: u32 = 4097;

/// Purges the unused pages of an arena, or of all arenas for [`ARENAS_ALL`], whatever their age.
///
/// Returns `false` if there is no arena with this index. Source: jemalloc(3), `arena.<i>.purge`.
///
/// ```
/// assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
/// assert!(!lumalloc::control::purge(4000));
/// ```
pub fn purge(index: u32) -> bool {
    if index != ARENAS_ALL && index >= narenas() {
        return false;
    }
    decay_pass::purge(|arena| index == ARENAS_ALL || arena.id() == index);
    true
}

/// Empties the caches of the calling thread: all cached blocks are returned to their slabs. Returns
/// `false` if the thread has no cache, or its caches are off. Source: jemalloc(3),
/// `thread.tcache.flush`.
pub fn flush_thread_cache() -> bool {
    // Caches that are off hold nothing, but in the hardened tier freed blocks wait beside them.
    thread_end::flush_current() && thread::is_cached()
}

/// Returns which memory is filled: as `opt.junk` and `opt.zero` say, unless [`set_fill`] changed
/// it.
#[must_use]
pub fn fill() -> Fill {
    real_cache();
    fill_mode::current()
}

/// Sets which memory is filled from now on, in all threads. One operation of each thread that is
/// under way may escape. While any memory is filled, all operations take some nanoseconds longer.
/// Returns `false`, and changes nothing, if there is no memory or the system refuses `membarrier`,
/// unless it is to fill nothing.
///
/// ```
/// use lumalloc::{control, raw};
/// let before = control::fill();
/// assert!(control::set_fill(control::Fill { junk_allocated: true, ..before }));
/// let p = raw::malloc(100);
/// // SAFETY: p came from malloc, and is this long.
/// assert_eq!(unsafe { p.add(99).read() }, 0xa5);
/// // SAFETY: freed once.
/// unsafe { raw::free(p) };
/// assert!(control::set_fill(before));
/// ```
pub fn set_fill(fill: Fill) -> bool {
    change_fill(|_| fill)
}

/// As [`set_fill`], but gets what is filled until now, so that two threads may change different
/// fields at once. `change` runs under a lock, so it must neither allocate nor free.
///
/// ```
/// use lumalloc::control;
/// assert!(control::change_fill(|fill| control::Fill { zero: true, ..fill }));
/// assert!(control::change_fill(|fill| control::Fill { zero: false, ..fill }));
/// ```
pub fn change_fill(change: impl FnOnce(Fill) -> Fill) -> bool {
    real_cache();
    switch::change_fill(change)
}

/// Tells the allocator that the calling thread will do nothing for long. Its cached blocks are
/// returned to their slabs, and other threads may take the slabs that it owned, so that an idle
/// thread keeps no memory but the program's blocks. Its next calls fill the cache again, which
/// costs two or three microseconds, so this is a hint for threads that park for a while. Returns
/// `false` if the thread has no cache. Source: jemalloc(3) 5.3, `thread.idle`.
///
/// The workers of tokio park often, so this example gives the hint every hundredth time:
///
/// ```
/// use std::cell::Cell;
/// thread_local!(static PARKED: Cell<u32> = const { Cell::new(0) });
///
/// let runtime = tokio::runtime::Builder::new_multi_thread()
///     .on_thread_park(|| {
///         PARKED.set(PARKED.get() + 1);
///         if PARKED.get().is_multiple_of(100) {
///             lumalloc::control::thread_idle();
///         }
///     })
///     .build()
///     .unwrap();
/// assert_eq!(runtime.block_on(async { 6 * 7 }), 42);
/// ```
pub fn thread_idle() -> bool {
    thread_end::idle()
}

/// Returns one more than the largest index of an arena. Automatic arenas, made or still to be made,
/// come first, and created ones behind them. Source: jemalloc(3), `arenas.narenas`.
#[must_use]
pub fn narenas() -> u32 {
    real_cache();
    choose_arena::limit().max(arena_list::count()).max(arena_list::end())
}

/// Returns the most automatic arenas, whatever else is created. Source: jemalloc(3), `opt.narenas`.
///
/// ```
/// use lumalloc::control;
/// assert!((1..=control::narenas()).contains(&control::automatic_narenas()));
/// ```
#[must_use]
pub fn automatic_narenas() -> u32 {
    real_cache();
    choose_arena::limit()
}

/// Returns how many automatic arenas beside the first there may be. Source: vmalloc(3),
/// `setregmax`.
#[must_use]
pub fn regmax() -> u32 {
    choose_arena::regmax()
}

/// Sets how many automatic arenas beside the first there may be (64 unless set), and returns the
/// previous number. Arenas that exist stay. Source: vmalloc(3), `setregmax`.
///
/// ```
/// let before = lumalloc::control::set_regmax(3);
/// assert_eq!(lumalloc::control::regmax(), 3);
/// assert!(lumalloc::control::narenas() <= 4);
/// lumalloc::control::set_regmax(before);
/// ```
pub fn set_regmax(regmax: u32) -> u32 {
    choose_arena::set_regmax(regmax)
}

/// Whether the background thread is kept. Then it runs, or will run when there is something to
/// purge. One that runs for a time ([`background_thread_auto`]) does not count. Source:
/// jemalloc(3), `background_thread`.
#[must_use]
pub fn background_thread() -> bool {
    real_cache();
    background::is_on()
}

/// Starts the background thread and keeps it, or stops it and waits until it has stopped. One that
/// is stopped is not started for a time either. Returns `false` if the system refuses to start it,
/// and then also prints a message. In a forked child the background thread is off. Source:
/// jemalloc(3), `background_thread`.
///
/// ```
/// assert!(lumalloc::control::set_background_thread(true));
/// assert!(lumalloc::control::background_thread());
/// assert!(lumalloc::control::set_background_thread(false));
/// assert!(!lumalloc::control::background_thread());
/// ```
pub fn set_background_thread(on: bool) -> bool {
    real_cache();
    if on {
        return background::enable();
    }
    background::disable();
    true
}

/// Whether the background thread is started for a time when much memory is unused: after what the
/// program holds has fallen by 16 MiB, and by an eighth of what is left. It ends when nothing is
/// left to give back. A process with one thread starts none: that thread gives memory back itself
/// when what the program holds has fallen by 16 MiB and to a third. `false` also if the system has
/// refused the thread.
#[must_use]
pub fn background_thread_auto() -> bool {
    real_cache();
    automatic::is_on()
}

/// Sets whether the background thread is started for a time when much memory is unused, and whether
/// a process with one thread gives memory back at once. A thread that runs for a time ends soon if
/// it is not.
///
/// ```
/// assert!(lumalloc::control::background_thread_auto(), "the default");
/// lumalloc::control::set_background_thread_auto(false);
/// assert!(!lumalloc::control::background_thread_auto());
/// ```
pub fn set_background_thread_auto(on: bool) {
    real_cache();
    background::set_auto(on);
}

/// Returns the most background threads that may run. There is never more than one. Source:
/// jemalloc(3), `max_background_threads`.
#[must_use]
pub fn max_background_threads() -> usize {
    real_cache();
    most_threads::most()
}

/// Sets how many background threads may run, from 1 to `opt.max_background_threads`. Returns
/// `false` for other numbers. To have none, use [`set_background_thread`].
pub fn set_max_background_threads(most: usize) -> bool {
    real_cache();
    most_threads::set_most(most)
}

/// Runs a decay pass on the calling thread, as the background thread does, and returns after what
/// time the next one is due. Returns `None` if none is due until the process has allocated or freed
/// again. For programs that make the passes on a thread of their own, for example a timer's.
///
/// ```
/// let again = lumalloc::control::decay_pass();
/// assert!(again.is_none_or(|wait| wait.as_secs() <= 10));
/// ```
pub fn decay_pass() -> Option<core::time::Duration> {
    real_cache();
    let now = os::coarse_millis();
    let next = background::pass(now)?;
    Some(core::time::Duration::from_millis(next.saturating_sub(now)))
}
