//! How functions enter a region of the region crate.

use super::super::abi::Vmalloc;
use super::super::inside::{Inside, Way, inside};
use lumalloc_region::Method;
use lumalloc_region::raw::Call;

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
pub(super) fn enter_by<M: Method, T>(
    vm: &Vmalloc,
    way: Way,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    // SAFETY: as above.
    unsafe { inside(vm, way, f) }
}
