//! The most background threads that may run. One is enough, so the number is only kept. Source:
//! jemalloc(3), `max_background_threads`.

use crate::ground::options;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number. `AS_OPTIONS`: as the options say.
static MOST: AtomicUsize = AtomicUsize::new(AS_OPTIONS);
const AS_OPTIONS: usize = usize::MAX;

/// Returns the most threads that may run.
pub(crate) fn most() -> usize {
    match MOST.load(Relaxed) {
        AS_OPTIONS => options::current().max_background_threads,
        most => most,
    }
}

/// Sets the most threads that may run. Returns `false` for 0, or if the options allow fewer.
pub(crate) fn set_most(most: usize) -> bool {
    let fits = (1..=options::current().max_background_threads).contains(&most);
    if fits {
        MOST.store(most, Relaxed);
    }
    fits
}
