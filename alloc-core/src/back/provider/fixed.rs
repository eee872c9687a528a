//! A provider over one buffer, for tests under tools that must see every byte.

use crate::back::page_provider::{PageProvider, Purged, Reserved};
use crate::ground::units::round_up;
use core::ptr::NonNull;
use std::sync::Mutex;

/// Carves a buffer from its beginning; what is released is not handed out again.
pub(crate) struct Fixed {
    left: Mutex<(usize, usize)>,
}

impl Fixed {
    /// A provider over `size` bytes of zeroed memory, for ever.
    pub(crate) fn leak(size: usize) -> &'static Fixed {
        let buffer = keep(vec![0u8; size].into_boxed_slice());
        let base = buffer.as_mut_ptr().expose_provenance();
        keep(Box::new(Fixed { left: Mutex::new((base, base + size)) }))
    }
}

/// Keeps a box for ever, where a leak checker still finds it.
pub(crate) fn keep<T: ?Sized + Send>(value: Box<T>) -> &'static mut T {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let kept = Box::leak(value);
    KEPT.lock().unwrap().push(Kept(core::ptr::from_mut(kept).cast::<u8>()));
    kept
}

struct Kept(#[expect(dead_code, reason = "held for the leak checker alone")] *mut u8);

// SAFETY: an address, never used.
unsafe impl Send for Kept {}

// SAFETY: parts of a live buffer, each handed out once.
unsafe impl PageProvider for Fixed {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        let mut left = self.left.lock().unwrap();
        let base = round_up(left.0, align);
        if base.checked_add(size)? > left.1 {
            return None;
        }
        left.0 = base + size;
        let base = core::ptr::with_exposed_provenance_mut(base);
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
