//! The summary of `Vmprofile`. Source: vmalloc(3), Profiling.

use super::abi::{Vmalloc, handle};
use super::kinds;
use super::list::Regions;
use crate::errno;
use crate::variables::write_to;
use core::ffi::c_int;
use lumalloc_region::{Shown, mode, summary};

/// `vmprofile`: writes a summary of what a region, or for NULL all regions with `Vmprofile`,
/// allocated where. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 with `EINVAL` for a negative descriptor and for a region with another method; with
/// `ENOMEM` when there is no memory for the summary.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmprofile(vm: *mut Vmalloc, fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let wanted = unsafe { handle(vm) };
    if fd < 0 || wanted.is_some_and(|vm| vm.meth.bit() != mode::PROFILE) {
        errno::set(libc::EINVAL);
        return -1;
    }
    let show = |data: usize| -> Option<Shown> {
        let has_it = |vm: &&Vmalloc| !kinds::is_heap(vm) && vm.data().addr() == data;
        let shown = |vm: &Vmalloc| (vm.address().addr(), vm.head().extent());
        match wanted {
            Some(wanted) => Some(wanted).filter(has_it).map(shown),
            // The list is not held while the summary is sorted and written.
            None => Regions::hold().each().find(has_it).map(shown),
        }
    };
    if summary(&show, &mut |line| write_to(fd, line)) {
        return 0;
    }
    errno::set(libc::ENOMEM);
    -1
}
