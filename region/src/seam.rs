//! What the model checker replaces where threads meet: atomics, the clock, and what comes from the
//! allocator.

#[cfg(not(loom))]
pub(crate) use core::hint::spin_loop;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64, Ordering, fence as compiler_fence,
};
#[cfg(not(loom))]
pub(crate) use lumalloc::observe::{regions, thread_number};

#[cfg(not(loom))]
use crate::{errno, owner};

#[cfg(loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(loom)]
pub(crate) use loom::thread::yield_now as pause;
#[cfg(loom)]
pub(crate) use models::{
    AtomicUsize, fence_all_threads, model, now, regions, take_number, thread_number,
};

/// Makes every running thread of the process pass a full memory fence. Returns false if the system
/// cannot, and there may be other threads.
#[cfg(not(loom))]
pub(crate) fn fence_all_threads() -> bool {
    regions::fence_all_threads() || owner::is_only_thread()
}

/// Says why nothing is known of a region of one thread.
#[cfg(not(loom))]
pub(crate) fn refused() {
    errno::set(libc::ENOSYS);
}

#[cfg(loom)]
pub(crate) fn refused() {}

/// Nanoseconds of a clock that does not go back.
#[cfg(not(loom))]
pub(crate) fn now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is this function's.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Lets other threads run.
#[cfg(not(loom))]
pub(crate) fn pause() {
    // SAFETY: sched_yield has no requirements.
    unsafe { libc::sched_yield() };
}

#[cfg(loom)]
mod models {
    use super::{Ordering, compiler_fence};
    use core::cell::Cell;
    use core::ops::Deref;

    loom::thread_local! {
        static NUMBER: Cell<usize> = Cell::new(0);
    }

    /// A word whose stores are swaps, because loom does not keep a store out of the middle of a
    /// compare-exchange. A swap orders nothing more but the word itself.
    pub(crate) struct AtomicUsize(loom::sync::atomic::AtomicUsize);

    impl AtomicUsize {
        pub(crate) fn new(value: usize) -> AtomicUsize {
            AtomicUsize(loom::sync::atomic::AtomicUsize::new(value))
        }

        pub(crate) fn store(&self, value: usize, order: Ordering) {
            self.0.swap(value, order);
        }
    }

    impl Deref for AtomicUsize {
        type Target = loom::sync::atomic::AtomicUsize;

        fn deref(&self) -> &loom::sync::atomic::AtomicUsize {
            &self.0
        }
    }

    /// Runs a model: every interleaving of its threads with at most three preemptions.
    pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    /// Sets the number of the calling thread.
    pub(crate) fn take_number(number: usize) {
        NUMBER.with(|own| own.set(number));
    }

    pub(crate) fn thread_number() -> usize {
        NUMBER.with(Cell::get)
    }

    /// The time is never up in a model.
    pub(crate) fn now() -> u64 {
        0
    }

    /// The list of regions, which one thread uses at a time.
    pub(crate) mod regions {
        use loom::sync::Mutex;

        loom::lazy_static! {
            static ref LIST: Mutex<()> = Mutex::new(());
        }

        pub(crate) fn alone<T>(f: impl FnOnce() -> T) -> T {
            let _held = LIST.lock().unwrap();
            f()
        }

        pub(crate) fn unless_asked(f: impl FnOnce()) -> bool {
            let held = LIST.try_lock();
            let is_free = held.is_ok();
            if is_free {
                f();
            }
            is_free
        }
    }

    /// membarrier(2) makes of each fence of the compiler a real one, which it is in a model.
    pub(crate) fn fence_all_threads() -> bool {
        compiler_fence(Ordering::SeqCst);
        true
    }
}
