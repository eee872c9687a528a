//! A provider over one buffer, for tests under tools that must see every byte.

use crate::back::system::page_provider::{PageProvider, Purged, Reserved};
use crate::ground::units::round_up;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

// No lock of the standard library, because the thread sanitizer does not see how it orders threads.

/// Carves a buffer from its beginning. Released memory is not handed out again.
pub(crate) struct Fixed {
    next: AtomicUsize,
    end: usize,
}

impl Fixed {
    /// A provider over `size` bytes of zeroed memory, for ever.
    pub(crate) fn leak(size: usize) -> &'static Fixed {
        let buffer = keep(vec![0u8; size].into_boxed_slice());
        let base = buffer.as_mut_ptr().expose_provenance();
        keep(Box::new(Fixed { next: AtomicUsize::new(base), end: base + size }))
    }
}

/// Keeps a box for ever, where a leak checker still finds it.
pub(crate) fn keep<T: ?Sized + Send>(value: Box<T>) -> &'static mut T {
    static LAST: AtomicPtr<Kept> = AtomicPtr::new(core::ptr::null_mut());
    let value = Box::leak(value);
    let kept = Box::leak(Box::new(Kept {
        value: core::ptr::from_mut(value).cast::<u8>(),
        before: LAST.load(Ordering::Relaxed),
    }));
    loop {
        // Release: pairs with the Acquire of the next thread that keeps something.
        let (before, now) = (kept.before, &raw mut *kept);
        match LAST.compare_exchange(before, now, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return value,
            Err(last) => kept.before = last,
        }
    }
}

/// A kept value, linked for the leak checker alone.
struct Kept {
    #[expect(dead_code, reason = "held for the leak checker alone")]
    value: *mut u8,
    before: *mut Kept,
}

// SAFETY: parts of a live buffer, each handed out once.
unsafe impl PageProvider for Fixed {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        let fits = |next| {
            let end = round_up(next, align).checked_add(size)?;
            (end <= self.end).then_some(end)
        };
        // Relaxed: the buffer was there before the provider was.
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        let base = core::ptr::with_exposed_provenance_mut(round_up(next, align));
        Some(Reserved { base: NonNull::new(base)?, zeroed: true })
    }

    unsafe fn release(&self, _base: NonNull<u8>, _size: usize) -> bool {
        false
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        // SAFETY: the caller's range lies in the buffer and is not in use.
        unsafe { base.write_bytes(0, size) };
        Purged::Zeroed
    }
}
