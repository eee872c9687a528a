//! What a region of the region crate is asked.

use super::super::abi::Vmalloc;
use super::super::inside::{Inside, Way};
use super::enter::{enter, enter_by};
use super::kind::Span;
use core::ffi::{c_int, c_long, c_void};
use lumalloc_region::raw::{Call, Origin};
use lumalloc_region::{Method, Position, Stat};

/// # Safety
/// As for [`Caller::new`](super::kind::Caller::new).
pub(super) unsafe extern "C" fn offset<M: Method>(
    vm: *mut Vmalloc,
    address: *mut c_void,
    _local: c_int,
) -> c_long {
    let address = address.expose_provenance();
    // SAFETY: the caller's promise.
    unsafe { measure(vm, |vm| enter::<M, _>(vm, |call| M::offset(call, address)).flatten()) }
}

/// # Safety
/// As for [`Caller::new`](super::kind::Caller::new).
pub(super) unsafe extern "C" fn size<M: Method>(
    vm: *mut Vmalloc,
    address: *mut c_void,
    _local: c_int,
) -> c_long {
    let address = address.expose_provenance();
    // SAFETY: the caller's promise.
    unsafe { measure(vm, |vm| enter::<M, _>(vm, |call| M::size(call, address)).flatten()) }
}

/// Returns a number, or -1 for `None` and for NULL.
///
/// # Safety
/// As for [`Caller::new`](super::kind::Caller::new).
pub(super) unsafe fn measure(
    vm: *mut Vmalloc,
    number: impl FnOnce(&Vmalloc) -> Option<usize>,
) -> c_long {
    // SAFETY: the caller's promise.
    let number = unsafe { vm.as_ref() }.and_then(number);
    number.and_then(|number| c_long::try_from(number).ok()).unwrap_or(-1)
}

pub(super) fn stat<M: Method>(vm: &Vmalloc, way: Way) -> Option<Stat> {
    enter_by::<M, _>(vm, way, |call| call.stat())
}

pub(super) fn has_block<M: Method>(vm: &Vmalloc, way: Way, address: usize) -> bool {
    enter_by::<M, _>(vm, way, |call| M::size(call, address).is_some()).unwrap_or(false)
}

pub(super) fn segment<M: Method>(vm: &Vmalloc, address: usize) -> Option<usize> {
    enter::<M, _>(vm, |call| call.segment_around(address).map(|(start, _)| start)).flatten()
}

pub(super) fn segments<M: Method>(
    vm: &Vmalloc,
    way: Way,
    after: usize,
    into: &mut [Span],
) -> usize {
    let copy = |call: &mut Call<'_, M, Inside<'_>>| {
        let found = call.each_segment().skip(after);
        into.iter_mut().zip(found).map(|(place, segment)| *place = segment).count()
    };
    enter_by::<M, _>(vm, way, copy).unwrap_or(0)
}

pub(super) fn blocks<M: Method>(vm: &Vmalloc, see: &mut dyn FnMut(usize, usize)) -> bool {
    enter::<M, _>(vm, |call| M::blocks(call, see)).unwrap_or(false)
}

pub(super) fn check<M: Method>(
    vm: &Vmalloc,
    way: Way,
    position: Position,
) -> Option<Option<usize>> {
    enter_by::<M, _>(vm, way, |call| {
        call.at(Origin::Recorded(position));
        M::check(call)
    })
}
