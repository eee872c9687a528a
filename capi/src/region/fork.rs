//! Fork: the list and the regions of threads are locked before, and unlocked after in parent and
//! child, so that no call is half done in the child.
//!
//! A region whose memory comes from a discipline of the program may be shared with the child. Its
//! lock then is the same in both, so such a region is left alone, unless malloc allocates in it:
//! the child needs malloc.

use super::abi::Vmalloc;
use super::disciplines::Source;
use super::list::Regions;
use super::shared::Shared;
use alloc_core::observe::regions;
use alloc_core::stream_list;
use core::sync::atomic::{AtomicBool, Ordering};
use lumalloc_region::raw::{Entry, note_process, usage_lock};

static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Whether the list was held for a fork by the thread that forks, and not by an outer call of it.
static HOLDS: AtomicBool = AtomicBool::new(false);

/// The same of the list of published regions, which comes first.
static HOLDS_PUBLISHED: AtomicBool = AtomicBool::new(false);

/// Whether the lock of the C library's streams, which comes before all, was taken for a fork.
static HOLDS_STREAMS: AtomicBool = AtomicBool::new(false);

/// Registers the handlers at the first call. They run before those of malloc, which were
/// registered before.
pub(super) fn register() {
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers take no arguments and exist as long as the library.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

/// Returns whether a region of threads is held for a fork.
fn is_held(vm: &Vmalloc) -> bool {
    // SAFETY: handle and discipline exist while the region is open.
    let source = unsafe { Source::new(vm.address(), vm.disc()) };
    source.is_private() || vm.head().is_of_malloc()
}

/// Iterates over the regions of threads that take turns, but those of `vmmopen`: the functions of
/// their discipline do not fork.
fn each_shared(regions: &Regions) -> impl Iterator<Item = &Vmalloc> {
    regions.each().filter(|vm| vm.head().entry() != Entry::Alone && Shared::of(vm).is_none())
}

unsafe extern "C" fn before() {
    let holds_streams = stream_list::take();
    HOLDS_PUBLISHED.store(regions::hold_for_fork(), Ordering::Relaxed);
    let regions = Regions::hold();
    for vm in each_shared(&regions) {
        let lock = vm.head().lock();
        // A region that this thread is in already stays locked until that call ends.
        if is_held(vm) { lock.hold_for_fork() } else { lock.note_fork(vm.head().entry()) }
    }
    // SAFETY: `after` leaves it.
    unsafe { usage_lock() }.hold_for_fork();
    HOLDS_STREAMS.store(holds_streams, Ordering::Relaxed);
    HOLDS.store(regions.keep(), Ordering::Relaxed);
}

unsafe extern "C" fn in_parent() {
    if after() {
        // SAFETY: `before` took it.
        unsafe { stream_list::release() };
    }
}

unsafe extern "C" fn in_child() {
    if after() {
        // SAFETY: `before` took it, and the child has one thread.
        unsafe { stream_list::release_in_child() };
    }
}

/// Ends what `before` began. Returns whether it took the lock of the streams.
fn after() -> bool {
    let regions = Regions::hold();
    // The child is another process, and marks what its thread is in as its own.
    note_process();
    regions.note_process();
    // SAFETY: `before` entered it.
    unsafe { usage_lock() }.release_after_fork();
    for vm in each_shared(&regions) {
        let lock = vm.head().lock();
        match is_held(vm) {
            true => lock.release_after_fork(),
            false => lock.follow_fork(vm.head().entry()),
        }
    }
    drop(regions);
    let holds_streams = HOLDS_STREAMS.load(Ordering::Relaxed);
    Regions::release(HOLDS.load(Ordering::Relaxed));
    // SAFETY: `before` got this, and nothing ended it since.
    unsafe { regions::release_after_fork(HOLDS_PUBLISHED.load(Ordering::Relaxed)) };
    holds_streams
}
