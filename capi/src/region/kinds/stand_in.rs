//! What a discipline sees before a region has memory, at `VM_OPEN` and in the first call of
//! `memoryf`, and after, at `VM_ENDCLOSE`: a handle without core data. Its calls fail as those from
//! inside a call.

use super::super::abi::{Vmalloc, Vmdisc, Vmethod};
use super::Kind;
use crate::errno;
use core::ffi::{c_int, c_long, c_void};
use core::ptr;

/// Returns a handle without core data.
pub(in super::super) fn stand_in(kind: &Kind, disc: *mut Vmdisc) -> Vmalloc {
    let method = Vmethod {
        allocf: alloc,
        resizef: resize,
        freef: free,
        addrf: measure,
        sizef: measure,
        compactf: compact,
        alignf: align,
        meth: kind.method.meth,
    };
    Vmalloc::new(method, disc, ptr::null_mut())
}

fn busy<T>(result: T) -> T {
    errno::set(libc::EBUSY);
    result
}

unsafe extern "C" fn alloc(_vm: *mut Vmalloc, _size: usize, _local: c_int) -> *mut c_void {
    busy(ptr::null_mut())
}

unsafe extern "C" fn align(
    _vm: *mut Vmalloc,
    _size: usize,
    _align: usize,
    _local: c_int,
) -> *mut c_void {
    busy(ptr::null_mut())
}

unsafe extern "C" fn resize(
    _vm: *mut Vmalloc,
    _address: *mut c_void,
    _size: usize,
    _how: c_int,
    _local: c_int,
) -> *mut c_void {
    busy(ptr::null_mut())
}

unsafe extern "C" fn free(_vm: *mut Vmalloc, _address: *mut c_void, _local: c_int) -> c_int {
    busy(-1)
}

unsafe extern "C" fn measure(_vm: *mut Vmalloc, _address: *mut c_void, _local: c_int) -> c_long {
    busy(-1)
}

unsafe extern "C" fn compact(_vm: *mut Vmalloc, _local: c_int) -> c_int {
    busy(-1)
}
