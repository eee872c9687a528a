//! What is tried before an allocation fails: hooks are asked for what was lacked, and everything
//! that can be free is made free.

use super::thread_cache;
use super::thread_life;
use crate::middle::{arena_hooks, decay_pass};

/// Tries once more after everything that can be free was made free, and after each time that hooks
/// gave what was lacked. No lock is held.
pub(crate) fn with_retry(attempt: impl Fn() -> *mut u8) -> *mut u8 {
    let block = attempt();
    if block.is_null() { retry(&attempt) } else { block }
}

/// So often other threads may take what hooks gave.
const MOST_SERVED: usize = 1000;

#[cold]
fn retry(attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    let served = || {
        for _ in 0..MOST_SERVED {
            if !arena_hooks::serve() {
                break;
            }
            let block = attempt();
            if !block.is_null() {
                return block;
            }
        }
        core::ptr::null_mut()
    };
    let block = served();
    if !block.is_null() || thread_cache::current().as_real().is_none() {
        return block;
    }
    thread_life::flush_current();
    decay_pass::settle();
    let block = attempt();
    if block.is_null() { served() } else { block }
}
