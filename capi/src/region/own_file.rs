//! Files that the library opened for an option of `VMALLOC_OPTIONS`. Programs close descriptors
//! that are not theirs, and their own files get the numbers.

use crate::errno;
use alloc_core::system_calls;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The descriptor of such a file, or none.
pub(super) struct OwnFile {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

impl OwnFile {
    pub(super) const fn none() -> OwnFile {
        let [device, inode] = [const { AtomicU64::new(0) }; 2];
        OwnFile { descriptor: AtomicI32::new(-1), device, inode }
    }

    /// Notes a descriptor that the library opened.
    pub(super) fn note(&self, descriptor: c_int) {
        let Some((device, inode)) = identity(descriptor) else { return };
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_lost`.
        self.descriptor.store(descriptor, Ordering::Release);
    }

    /// Takes a descriptor from the program, which knows what file it is now.
    pub(super) fn give(&self, descriptor: c_int) {
        if self.is_lost(descriptor) {
            self.descriptor.store(-1, Ordering::Relaxed);
        }
    }

    /// Returns whether a descriptor is the one that was noted, and is that of another file by now.
    pub(super) fn is_lost(&self, descriptor: c_int) -> bool {
        // Acquire: pairs with the Release in `note`.
        if descriptor < 0 || descriptor != self.descriptor.load(Ordering::Acquire) {
            return false;
        }
        let noted = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        identity(descriptor) != Some(noted)
    }
}

/// Returns device and number of an open file.
fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    let before = errno::get();
    let found = system_calls::identity(descriptor);
    errno::set(before);
    found.map(|(device, inode, _)| (device, inode))
}
