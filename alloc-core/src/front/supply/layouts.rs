//! Samples and frees that tell the size.
//!
//! A sized free goes by the size alone, without a look at the address, so it would put a sample
//! into a bin. Where samples are taken, it must look: C's sized frees do, by a bound of 0 on what
//! they trust; a Rust program's are inlined with constant sizes, so there the bins are *screened*:
//! every push misses, and the slow way looks. (Behind a façade it does anyway.) Bins are screened
//! from the first layout that comes, before a sample is handed out for one. C programs never say a
//! layout, and keep their fast free.

use crate::front::cache::registry::{self, REGISTRY};
use crate::front::modes::guarded;
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

struct Bound(UnsafeCell<usize>);

// SAFETY: written once, at start, before the first block is handed out.
unsafe impl Sync for Bound {}

static BOUND: Bound = Bound(UnsafeCell::new(MAX_CACHED + 1));

/// Somebody has asked for a block by a layout.
static CAME: AtomicBool = AtomicBool::new(false);

/// From now on no size is trusted. Once, at start.
pub(crate) fn prepare() {
    // SAFETY: at start, by one thread, before the first block.
    unsafe { *BOUND.0.get() = 0 };
}

/// The sizes below are those that a sized free may go by.
#[inline(always)]
pub(crate) fn bound() -> usize {
    // SAFETY: written before there was a block to free.
    unsafe { *BOUND.0.get() }
}

/// Whether the bins of real caches are screened. Under the owner's lock.
pub(crate) fn are_screened() -> bool {
    guarded::is_on() && CAME.load(Relaxed) && !options::current().hardened
}

/// Notes that a layout has come; where samples are taken the first one screens all bins. Holding no
/// lock.
#[inline]
pub(crate) fn come() {
    if !CAME.load(Relaxed) {
        screen_all();
    }
}

#[cold]
fn screen_all() {
    CAME.store(true, Relaxed);
    // A cache made after this knows it, and one made before is in the list.
    drop(REGISTRY.lock());
    for cache in registry::all().filter(|_| are_screened()) {
        let _state = cache.owner.state.lock();
        for class in SizeClass::all() {
            cache.bin(class).screen();
        }
    }
}
