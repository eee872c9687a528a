//! What the functions about whole regions do in regions of the region crate, in calls of programs
//! and in visits.

use super::super::abi::Vmalloc;
use super::super::inside::{Inside, Way, inside};
use super::kind::Span;
use lumalloc_region::raw::{self, Call, Change, Origin, Value};
use lumalloc_region::{Method, Position, Stat};

/// Enters the region of a handle with the method `M`.
#[inline]
pub(super) fn enter<M: Method, T>(
    vm: &Vmalloc,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    // SAFETY: only handles of regions with the method `M` hold the table that leads here.
    unsafe { inside(vm, Way::Call, f) }
}

/// As [`enter`], for a visitor too.
fn enter_by<M: Method, T>(
    vm: &Vmalloc,
    way: Way,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    // SAFETY: as above.
    unsafe { inside(vm, way, f) }
}

pub(super) fn clear<M: Method>(vm: &Vmalloc) -> bool {
    let Some(mut inside) = Inside::enter_to_end(vm) else { return false };
    // SAFETY: only handles of regions with the method `M` hold the table that leads here.
    unsafe { inside.call::<M>() }.clear();
    true
}

pub(super) fn stat<M: Method>(vm: &Vmalloc, way: Way) -> Option<Stat> {
    enter_by::<M, _>(vm, way, |call| call.stat())
}

pub(super) fn has_block<M: Method>(vm: &Vmalloc, way: Way, address: usize) -> bool {
    enter_by::<M, _>(vm, way, |call| M::size(call, address).is_some()).unwrap_or(false)
}

pub(super) fn give_back<M: Method>(vm: &Vmalloc, way: Way) -> bool {
    enter_by::<M, _>(vm, way, |call| M::compact(call)).is_some()
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

pub(super) fn value<M: Method>(vm: &Vmalloc, key: u64, change: Change) -> Option<Value> {
    enter::<M, _>(vm, |call| raw::change(call, key, change))
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
