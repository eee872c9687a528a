//! The kinds of regions: those of the region crate, and `Vmheap`.

mod kind;
mod looks;
mod regions;
mod stand_in;
mod vmheap;

use super::abi::Vmalloc;
use super::disciplines::Source;
use lumalloc_region::mode;

pub(super) use kind::{Kind, Span};
pub use regions::{Vmbest, Vmdebug, Vmlast, Vmpool, Vmprofile};
pub(super) use stand_in::stand_in;
pub use vmheap::Vmheap;
pub(super) use vmheap::{first, first_address, is_heap};

/// Returns whether the discipline of a region is told of events.
pub(super) fn has_exceptf(vm: &Vmalloc) -> bool {
    // SAFETY: handle and discipline exist while the region is open.
    unsafe { Source::new(vm.address(), vm.disc()) }.has_exceptf()
}

/// Returns the kind of the region of a handle.
pub(super) fn of(vm: &Vmalloc) -> &'static Kind {
    if is_heap(vm) { &vmheap::KIND } else { with_method(vm.meth.bit()).unwrap_or(&regions::BEST) }
}

/// Returns the kind of regions with a method, or `None` if there is no such method.
pub(super) fn with_method(method: u32) -> Option<&'static Kind> {
    match method {
        mode::BEST => Some(&regions::BEST),
        mode::LAST => Some(&regions::LAST),
        mode::POOL => Some(&regions::POOL),
        mode::DEBUG => Some(&regions::DEBUG),
        mode::PROFILE => Some(&regions::PROFILE),
        _ => None,
    }
}
