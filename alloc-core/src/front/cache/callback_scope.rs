//! What a thread's word points to while a callback of the program runs in the allocator: an extent
//! hook, the function that is asked for memory at a bound, a hook of the heap profiler, or a
//! function that takes the place of malloc.

use super::real_cache::RealCache;
use super::switch;
use crate::front::bins::thread_cache::{CALLBACK, HOOK, Kind};
use crate::front::bins::tls;
use crate::ground::callback::{Callback, Scope};

/// How a callback is entered and left.
pub(crate) static SCOPE: Scope = Scope {
    enter: |which| {
        let before = tls::word_for(tls::current());
        tls::set_current(match which {
            Callback::Hook => &HOOK,
            Callback::Limit | Callback::Profiler | Callback::Diversion | Callback::Thread => {
                &CALLBACK
            }
        });
        before
    },
    leave,
    is_in_hook: || core::ptr::eq(tls::current(), &HOOK),
    is_outside: || matches!(tls::current().kind(), Kind::Real | Kind::Mode | Kind::Uncached),
};

/// Restores the thread's word. A mode may have been switched meanwhile without this thread, so a
/// real cache is shown anew.
fn leave(word: *mut u8) {
    let before = tls::named_by(word);
    match RealCache::of(before) {
        Some(cache) => switch::show(cache),
        None => tls::set_current(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_a_callback_has_the_callback_s_facade() {
        for (which, facade) in [(Callback::Hook, &HOOK), (Callback::Limit, &CALLBACK)] {
            let before = tls::current();
            let word = (SCOPE.enter)(which);
            assert!(core::ptr::eq(tls::current(), facade));
            assert!(core::ptr::eq(tls::named_by(word), before));
            assert_eq!((SCOPE.is_in_hook)(), core::ptr::eq(facade, &HOOK));
            assert!(!(SCOPE.is_outside)());
            (SCOPE.leave)(word);
            assert!(core::ptr::eq(tls::current(), before) && !(SCOPE.is_in_hook)());
        }
    }
}
