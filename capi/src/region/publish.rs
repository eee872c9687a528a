//! Open regions in the list that the namespace, and with it metrics and the doctor, reads.

use super::abi::{Vmalloc, handle};
use super::disciplines::Source;
use super::inside::Way;
use super::kinds;
use super::list::Regions;
use super::shared::Shared;
use crate::errno;
use alloc_core::observe::regions::{self, About, Counts, Holder, Table, Unanswered};
use core::ffi::{CStr, c_char, c_int};
use lumalloc_region::{Position, mode};

static TABLE: Table = Table { about, count, check, compact, file };

/// Shows a region that was opened, by a name or by none.
///
/// The list of handles is not held: who asks a region may open one.
pub(super) fn add(vm: &Vmalloc, name: &[u8]) {
    // SAFETY: the region is withdrawn before its handle is gone.
    let number = unsafe { regions::publish(vm.address().cast(), &TABLE, name) };
    if let Some(number) = number {
        Regions::hold().set_number(vm, number);
    }
}

/// Withdraws a region that is to be closed.
pub(super) fn remove(vm: &Vmalloc) {
    // Who asks regions holds the other list first.
    let number = Regions::hold().number(vm);
    match number {
        Some(number) => regions::withdraw_at(number, vm.address().cast()),
        None => regions::withdraw(vm.address().cast()),
    }
}

/// The last component of a path, as the name of the region in that file.
pub(super) fn name_of(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or(&[])
}

/// `vmname`: names a region, for the namespace and all that shows it. Returns 0.
///
/// Errors: -1 with `EINVAL` for NULL, for `Vmheap`, and for a handle that is not open.
///
/// # Safety
/// `vm` must be NULL or a handle, and `name` NUL-terminated or NULL, which takes the name away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmname(vm: *mut Vmalloc, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) };
    let number = region.and_then(|vm| {
        let noted = Regions::hold().number(vm);
        noted.or_else(|| regions::lookup(vm.address().addr()))
    });
    if number.is_some_and(|number| regions::set_name(number, name.to_bytes())) {
        return 0;
    }
    errno::set(libc::EINVAL);
    -1
}

/// The handle that was published.
///
/// # Safety
/// The list is held, and the region is in it.
unsafe fn published<'a>(region: *const ()) -> &'a Vmalloc {
    // SAFETY: the caller's promise.
    unsafe { &*region.cast() }
}

unsafe fn about(region: *const ()) -> About {
    // SAFETY: the caller's promise.
    let vm = unsafe { published(region) };
    let holder = Shared::of(vm).and_then(|_| vm.head().lock().holder());
    // SAFETY: handle and discipline exist while the region is open.
    let source = unsafe { Source::new(vm.address(), vm.disc()) };
    About {
        method: mode::method_name(vm.head().mode()),
        discipline: source.name(),
        flags: vm.head().mode(),
        address: vm.address().addr(),
        holder: holder
            .map(|holder| Holder { process: holder.process, is_alive: holder.is_alive() }),
    }
}

unsafe fn count(region: *const ()) -> Option<Counts> {
    // SAFETY: the caller's promise.
    let vm = unsafe { published(region) };
    (kinds::of(vm).stat)(vm, Way::Visit).map(Counts::from)
}

unsafe fn check(region: *const ()) -> Result<usize, Unanswered> {
    // SAFETY: the caller's promise.
    let vm = unsafe { published(region) };
    let checked = (kinds::of(vm).check)(vm, Way::Visit, Position::UNKNOWN);
    checked.ok_or(Unanswered::Busy)?.ok_or(Unanswered::Unknown)
}

unsafe fn compact(region: *const ()) -> bool {
    // SAFETY: the caller's promise.
    let vm = unsafe { published(region) };
    (kinds::of(vm).compact)(vm, Way::Visit)
}

unsafe fn file(region: *const (), into: &mut [u8]) -> usize {
    // SAFETY: the caller's promise.
    let vm = unsafe { published(region) };
    Shared::of(vm).map_or(0, |shared| shared.mapping().path(into))
}
