//! The heap monitor: each allocation and each free is recorded. Source: the heap monitor of
//! Taligent.
//!
//! This module hands the events out. `lumalloc_profile::monitor` writes them to a file, which
//! `lumalloc events` shows.
//!
//! ```
//! use lumalloc::control::monitor::{self, Record, What};
//! use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
//!
//! static BYTES: AtomicUsize = AtomicUsize::new(0);
//!
//! fn add(record: Record<'_>) -> bool {
//!     if let Record::Events(events) = record {
//!         for event in events {
//!             if let What::Allocated { size } = event.what {
//!                 BYTES.fetch_add(size, Relaxed);
//!             }
//!         }
//!     }
//!     true
//! }
//!
//! assert_eq!(monitor::start(add), Ok(()));
//! let block = lumalloc::raw::malloc(1000);
//! // SAFETY: freed once.
//! unsafe { lumalloc::raw::free(block) };
//! assert!(monitor::stop());
//! assert!(BYTES.load(Relaxed) >= 1000);
//! ```

use crate::front::cache::switch;
use crate::front::life::thread_begin;
pub use crate::profile::event::{Event, NO_POINTER, What, first_word};
use crate::profile::recorder;
pub use crate::profile::recorder::{Record, Refusal, Sink};
use crate::profile::sites;

/// Events of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that the sink took.
    pub taken: u64,
    /// Those that the sink could not take.
    pub dropped: u64,
}

/// Begins to record each allocation and each free of all threads, except the one operation of each
/// thread that is under way. The events of a thread reach the sink when there are 512 of them, when
/// the thread ends, or at [`stop`].
///
/// While events are recorded, allocations and frees take some hundred nanoseconds longer. A forked
/// child records nothing.
///
/// # Errors
/// [`Refusal`] says why nothing is recorded.
pub fn start(sink: Sink) -> Result<(), Refusal> {
    thread_begin::real_cache();
    recorder::begin(sink)?;
    if switch::set_recording(true) {
        return Ok(());
    }
    recorder::end();
    Err(Refusal::System)
}

/// Ends the recording. The sink has got all events when this returns, and is called no more.
/// Returns `false` if nothing was recorded.
pub fn stop() -> bool {
    if !recorder::is_on() {
        return false;
    }
    switch::set_recording(false);
    recorder::end()
}

/// Returns whether events are being recorded.
#[must_use]
pub fn is_running() -> bool {
    recorder::is_on()
}

/// Returns the counts of the present recording, or of the last one.
#[must_use]
pub fn counts() -> Counts {
    Counts { taken: recorder::TAKEN.get(), dropped: recorder::DROPPED.get() }
}

/// Calls `f` while no thread calls the sink. `f` must not allocate or free.
pub fn alone<T>(f: impl FnOnce() -> T) -> T {
    recorder::alone(f)
}

/// Calls `see` with the stacks that have at least this number, the highest number first: their
/// numbers, and their return addresses, the innermost first. The first stack has number 1. Stacks
/// of samples are among them.
pub fn stacks_from(number: u32, mut see: impl FnMut(u32, &'static [usize])) {
    let stacks = sites::newest_first().take_while(|site| site.number() >= number);
    stacks.for_each(|site| see(site.number(), site.frames()));
}
