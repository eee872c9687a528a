//! The region that malloc allocates in.

use super::abi::{Vmalloc, Vmstat, count};
use super::kinds;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use lumalloc_region::mode;

/// `Vmregion`: where malloc allocates, at first `Vmheap`. Programs may store another region, which
/// each thread uses from its next call on that its cache cannot serve. Source: vmalloc(3).
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmregion: AtomicPtr<Vmalloc> = AtomicPtr::new(kinds::first_address());

/// Calls that entered a region at once, and calls that had to wait.
static OPENED: AtomicUsize = AtomicUsize::new(0);
static WAITED: AtomicUsize = AtomicUsize::new(0);

/// Returns whether malloc is to allocate through a handle: in another region than `Vmheap`, or in a
/// `Vmheap` that is traced.
#[inline]
pub(super) fn is_replaced() -> bool {
    let vm = Vmregion.load(Ordering::Relaxed);
    vm != kinds::first_address() && !vm.is_null() || heap_is_traced()
}

fn heap_is_traced() -> bool {
    kinds::first().head().mode() & mode::TRACE != 0
}

/// Returns the region that malloc allocates in. A program that stores a handle there keeps it open
/// as long as it is there.
pub(super) fn current() -> &'static Vmalloc {
    // Acquire: pairs with the store of the program, if that is a release.
    // SAFETY: the program's promise.
    unsafe { Vmregion.load(Ordering::Acquire).as_ref() }.unwrap_or(kinds::first())
}

/// Returns the region that a call goes to, or `None` if it is the heap's, without a trace.
pub(super) fn diverted_to() -> Option<&'static Vmalloc> {
    let vm = current();
    if kinds::is_heap(vm) { Some(vm).filter(|_| heap_is_traced()) } else { adopt(vm) }
}

/// Makes a region one in which malloc allocates: threads take turns in it. Returns `None` if it
/// stays inside a call.
fn adopt(vm: &'static Vmalloc) -> Option<&'static Vmalloc> {
    let head = vm.region()?;
    (head.is_of_malloc() || head.share_with_malloc()).then_some(vm)
}

/// Lets malloc use `Vmheap` again if it uses a region, which is closed.
pub(super) fn forget(vm: &Vmalloc) {
    let heap = kinds::first_address();
    // A program may have stored another region meanwhile, which stays.
    let _ = Vmregion.compare_exchange(vm.address(), heap, Ordering::Relaxed, Ordering::Relaxed);
}

/// Counts a call of malloc that goes to a region.
pub(super) fn count_call(vm: &Vmalloc) {
    let counter = if vm.head().lock().is_held() { &WAITED } else { &OPENED };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Returns the numbers that only malloc has, for a region that it allocates in.
pub(super) fn numbers() -> Vmstat {
    Vmstat {
        n_region: 1,
        n_open: count(OPENED.load(Ordering::Relaxed)),
        n_lock: count(WAITED.load(Ordering::Relaxed)),
        ..Vmstat::default()
    }
}
