//! Samples and frees that tell the size.
//!
//! A sized free uses the size alone, without a look at the address, so it would put a sample into a
//! bin. Where samples are taken, it must look. C's sized frees look because the bound below which
//! they trust a size is 0. A Rust program's frees are inlined with constant sizes, so there the
//! bins are *screened*: every push misses, and the slow path looks. (Behind a façade every push
//! misses anyway.) Bins are screened from the first request by a layout on, before it can get a
//! sample. C programs never make such requests, and keep their fast free.

use crate::front::cache::registry::{self, REGISTRY};
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Written once, at start, before the first block is handed out. An atomic, because the compiler
/// would make a flag of another word that has one of two values, which costs one instruction more.
static BOUND: AtomicUsize = AtomicUsize::new(MAX_CACHED + 1);

/// Whether a block was ever requested by a layout.
static CAME: AtomicBool = AtomicBool::new(false);

/// Makes sized frees trust no size, because blocks may be guarded samples, or what the options ask
/// for tells by whom and when samples of the profiler were freed. Called once, at start.
pub(crate) fn prepare() {
    BOUND.store(0, Relaxed);
}

/// Returns the bound below which a sized free trusts a size.
#[inline(always)]
pub(crate) fn bound() -> usize {
    BOUND.load(Relaxed)
}

/// Returns whether sized frees trust no size.
#[inline(always)]
pub(crate) fn trust_none() -> bool {
    bound() == 0
}

/// Returns whether the bins of real caches are screened. Called under the owner's lock.
pub(crate) fn are_screened() -> bool {
    trust_none() && CAME.load(Relaxed) && !options::current().hardened
}

/// Notes a request by a layout. The first one screens all bins if samples are taken. No lock may be
/// held.
#[inline]
pub(crate) fn come() {
    if !CAME.load(Relaxed) {
        screen_all();
    }
}

#[cold]
fn screen_all() {
    CAME.store(true, Relaxed);
    // A cache made after this sees `CAME`, and one made before is in the list.
    drop(REGISTRY.lock());
    for cache in registry::all().filter(|_| are_screened()) {
        let _state = cache.owner.state.lock();
        for class in SizeClass::all() {
            cache.bin(class).screen();
        }
    }
}
