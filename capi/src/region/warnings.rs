//! Where the warnings of `Vmdebug` go. Source: vmalloc(3), Debugging.

use super::abi::Vmalloc;
use super::own_file::OwnFile;
use crate::variables::write_to;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use lumalloc_region::{Warning, mode, watch, watch_nothing};

/// Where lines are written to. Negative: nowhere.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

/// The file of an option.
static OWN: OwnFile = OwnFile::none();

/// `vmdebug`: sets the descriptor that warnings are written to, and returns the previous one, at
/// first 2. Nothing is written to a negative one.
#[unsafe(no_mangle)]
pub extern "C" fn vmdebug(fd: c_int) -> c_int {
    OWN.give(fd);
    DESCRIPTOR.swap(fd, Ordering::Relaxed)
}

/// As [`vmdebug`], for a file that the library opened.
pub(super) fn set_own(fd: c_int) {
    OWN.note(fd);
    DESCRIPTOR.store(fd, Ordering::Relaxed);
}

/// `vmdbwatch`: reports each call that allocates, resizes or frees a block at this address from now
/// on. Returns the address that had to go for it, if any. NULL drops all addresses.
#[unsafe(no_mangle)]
pub extern "C" fn vmdbwatch(addr: *mut c_void) -> *mut c_void {
    if addr.is_null() {
        watch_nothing();
        return ptr::null_mut();
    }
    watch(addr.expose_provenance()).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// Writes a warning, and ends the program if the region wants so. Control comes here at every
/// trouble, so debuggers may stop here.
#[cold]
#[inline(never)]
pub(super) fn vmdbwarn(vm: &Vmalloc, warning: &Warning) {
    let descriptor = DESCRIPTOR.load(Ordering::Relaxed);
    if descriptor >= 0 && !OWN.is_lost(descriptor) {
        write_to(descriptor, warning.line(vm.address().addr()).get());
    }
    if vm.head().mode() & mode::DBABORT != 0 {
        // SAFETY: abort has no requirements.
        unsafe { libc::abort() }
    }
}
