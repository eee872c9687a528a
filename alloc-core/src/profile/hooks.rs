//! Functions of the program that the profiler calls. Source: jemalloc, `experimental.hooks.prof_*`.
//!
//! They run under no lock of the allocator, and the rules of
//! [`callback`] hold for them.

use super::backtrace::{self, Call, MOST_OWN, Unwinder};
use crate::ground::callback::{self, Callback};
use core::ffi::{CStr, c_char, c_uint, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The most return addresses of a stack. Source: jemalloc, `opt.prof_bt_max`.
pub(crate) const DEEPEST: usize = 256;

/// Writes at most as many return addresses as the last argument says, the innermost first, and
/// stores their number. The places must be writable. Source: jemalloc, `prof_backtrace_hook_t`.
pub type BacktraceHook = unsafe extern "C" fn(*mut *mut c_void, *mut c_uint, c_uint);
/// Takes the name of a profile's file. Source: jemalloc, `prof_dump_hook_t`.
pub type DumpHook = extern "C" fn(*const c_char);
/// Takes a sample's address, its requested bytes, its return addresses with their number, and the
/// bytes of its block. Source: jemalloc, `prof_sample_hook_t`.
pub type SampleHook = extern "C" fn(*const c_void, usize, *mut *mut c_void, c_uint, usize);
/// Takes the address of a sample that was freed, and the bytes of its block. Source: jemalloc,
/// `prof_sample_free_hook_t`.
pub type SampleFreeHook = extern "C" fn(*const c_void, usize);

/// Takes the address of a block that was allocated, and the bytes that were requested.
pub type AllocatedHook = extern "C" fn(*const c_void, usize);
/// Takes the address of a block that is about to be freed.
pub type FreedHook = extern "C" fn(*const c_void);

/// A hook of the type `F`, which is one of the types above.
pub(crate) struct Hook<F> {
    function: AtomicPtr<()>,
    kind: PhantomData<F>,
}

pub(crate) static BACKTRACE: Hook<BacktraceHook> = Hook::none();
/// Walks stacks instead of the allocator's own unwinder.
pub(crate) static UNWINDER: Hook<Unwinder> = Hook::none();
pub(crate) static DUMP: Hook<DumpHook> = Hook::none();
pub(crate) static SAMPLE: Hook<SampleHook> = Hook::none();
pub(crate) static SAMPLE_FREE: Hook<SampleFreeHook> = Hook::none();
pub(crate) static ALLOCATED: Hook<AllocatedHook> = Hook::none();
pub(crate) static FREED: Hook<FreedHook> = Hook::none();

/// Returns whether the program is told of each allocation or each free.
#[inline]
pub(crate) fn see_all() -> bool {
    ALLOCATED.is_set() || FREED.is_set()
}

impl<F: Copy> Hook<F> {
    const fn none() -> Hook<F> {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        Hook { function: AtomicPtr::new(core::ptr::null_mut()), kind: PhantomData }
    }

    /// Returns whether a function is set.
    pub(crate) fn is_set(&self) -> bool {
        !self.function.load(Ordering::Relaxed).is_null()
    }

    /// Returns the function, if one is set.
    pub(crate) fn get(&self) -> Option<F> {
        // Acquire: pairs with the Release in `set`.
        Self::function(self.function.load(Ordering::Acquire))
    }

    /// Sets the function, or none. Returns the one before.
    pub(crate) fn set(&self, function: Option<F>) -> Option<F> {
        let pointer = match function {
            // SAFETY: `F` is a function pointer, which has the size of a pointer.
            Some(function) => unsafe { core::mem::transmute_copy::<F, *mut ()>(&function) },
            None => core::ptr::null_mut(),
        };
        // AcqRel: pairs with the Acquire in `get`, which then sees what was set up for the
        // function, and with itself for the one before.
        Self::function(self.function.swap(pointer, Ordering::AcqRel))
    }

    fn function(pointer: *mut ()) -> Option<F> {
        // SAFETY: only `set` stores here, and it stores only functions of this type.
        (!pointer.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut (), F>(&pointer) })
    }
}

/// Writes the return addresses of the calling thread's callers, without the allocator's own frames.
///
/// # Safety
/// `addresses` must have room for `most`, and `count` must be writable.
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe extern "C" fn default_backtrace(
    addresses: *mut *mut c_void,
    count: *mut c_uint,
    most: c_uint,
) {
    let mut stack = backtrace::room::<{ DEEPEST + MOST_OWN }>();
    let found = walk(&mut stack, DEEPEST.min(most as usize));
    // SAFETY: the caller's promise.
    unsafe { addresses.cast::<usize>().copy_from_nonoverlapping(found.as_ptr(), found.len()) };
    // SAFETY: the caller's promise.
    unsafe { count.write(found.len() as c_uint) };
    backtrace::keep_frame();
}

/// Returns the return addresses of a sample, at most `most`, as the hook or the allocator itself
/// finds them.
pub(super) fn take_backtrace(
    stack: &mut [MaybeUninit<usize>; DEEPEST + MOST_OWN],
    most: usize,
) -> &mut [usize] {
    let most = most.min(DEEPEST);
    let Some(hook) = BACKTRACE.get() else {
        return walk(stack, most);
    };
    // What the hook does not write is 0.
    *stack = [const { MaybeUninit::new(0) }; DEEPEST + MOST_OWN];
    // SAFETY: just written.
    let stack = unsafe { stack.assume_init_mut() };
    let mut count: c_uint = 0;
    let addresses = stack.as_mut_ptr().cast::<*mut c_void>();
    // SAFETY: `most` addresses have room, and whoever set the hook vouches for it.
    let call = || unsafe { hook(addresses, &raw mut count, most as c_uint) };
    callback::run(Callback::Profiler, call);
    stack.get_mut(..(count as usize).min(most)).unwrap_or_default()
}

#[inline(always)]
fn walk(stack: &mut [MaybeUninit<usize>], most: usize) -> &mut [usize] {
    let Some(unwind) = UNWINDER.get() else {
        return backtrace::take(stack, most, Call::Allocation);
    };
    let mut found: &mut [usize] = &mut [];
    callback::run(Callback::Profiler, || {
        // SAFETY: whoever set the unwinder vouches for it.
        found = unsafe { backtrace::take_by(unwind, stack, most) };
    });
    found
}

/// Tells the program of a sample.
pub(super) fn tell_sample(address: usize, requested: usize, stack: &mut [usize], usable: usize) {
    let Some(hook) = SAMPLE.get() else { return };
    let block = core::ptr::with_exposed_provenance(address);
    let addresses = stack.as_mut_ptr().cast::<*mut c_void>();
    let depth = stack.len() as c_uint;
    callback::run(Callback::Profiler, || hook(block, requested, addresses, depth, usable));
}

/// Tells the program that a sample was freed.
pub(super) fn tell_free(address: usize, usable: usize) {
    let Some(hook) = SAMPLE_FREE.get() else { return };
    let block = core::ptr::with_exposed_provenance(address);
    callback::run(Callback::Profiler, || hook(block, usable));
}

/// Tells the program of an allocation, unless it is by a function of the program that the allocator
/// calls.
pub(crate) fn tell_allocated(address: usize, size: usize) {
    let Some(hook) = ALLOCATED.get().filter(|_| callback::is_outside()) else { return };
    let block = core::ptr::with_exposed_provenance(address);
    callback::run(Callback::Profiler, || hook(block, size));
}

/// As [`tell_allocated`], of a free that follows.
pub(crate) fn tell_freed(address: usize) {
    let Some(hook) = FREED.get().filter(|_| callback::is_outside()) else { return };
    let block = core::ptr::with_exposed_provenance(address);
    callback::run(Callback::Profiler, || hook(block));
}

/// Tells the program that a profile was written to a file.
pub(crate) fn tell_dump(name: &CStr) {
    let Some(hook) = DUMP.get() else { return };
    callback::run(Callback::Profiler, || hook(name.as_ptr()));
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn first(_: *const c_void, _: usize) {}
    extern "C" fn second(_: *const c_void, _: usize) {}

    #[test]
    fn setting_a_hook_returns_the_one_before() {
        let hook: Hook<SampleFreeHook> = Hook::none();
        assert!(!hook.is_set() && hook.get().is_none() && hook.set(Some(first)).is_none());
        let is = |got: Option<SampleFreeHook>, expected: SampleFreeHook| {
            got.is_some_and(|got| core::ptr::fn_addr_eq(got, expected))
        };
        assert!(hook.is_set() && is(hook.get(), first) && is(hook.set(Some(second)), first));
        assert!(is(hook.set(None), second) && hook.get().is_none());
    }

    #[test]
    fn the_default_backtrace_writes_no_more_than_was_asked_for() {
        let mut addresses = [core::ptr::null_mut(); 4];
        let mut count = 9;
        // SAFETY: there is room for two.
        unsafe { default_backtrace(addresses.as_mut_ptr(), &raw mut count, 2) };
        assert_eq!(count, 2);
        assert!(!addresses[1].is_null() && addresses[2].is_null());
    }
}
