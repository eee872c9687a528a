//! Regions of the region crate: one table for each of its methods.

use super::super::abi::{Vmalloc, Vmethod, event, handle, resize};
use super::super::inside::{Inside, quickly};
use super::super::position;
use super::super::trace::Record;
use super::kind::{Caller, Failure, Kind, pointer};
use super::looks::{self, enter};
use core::ffi::{c_int, c_long, c_ushort, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicPtr;
use lumalloc_region::raw::{Call, Data, Form, Head};
use lumalloc_region::{Best, Debug, Last, Method, Misuse, Pool, Profile, Resize, mode};

pub(super) static BEST: Kind = kind::<Best>();
pub(super) static LAST: Kind = kind::<Last>();
pub(super) static POOL: Kind = kind::<Pool>();
pub(super) static DEBUG: Kind = kind::<Debug>();
pub(super) static PROFILE: Kind = kind::<Profile>();

/// `Vmbest`: the smallest free block that suffices.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmbest: AtomicPtr<Vmethod> = AtomicPtr::new((&raw const BEST.method).cast_mut());

/// `Vmlast`: blocks one behind the other.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmlast: AtomicPtr<Vmethod> = AtomicPtr::new((&raw const LAST.method).cast_mut());

/// `Vmpool`: blocks of one size.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmpool: AtomicPtr<Vmethod> = AtomicPtr::new((&raw const POOL.method).cast_mut());

/// `Vmdebug`: as `Vmbest`, and finds misuse.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmdebug: AtomicPtr<Vmethod> = AtomicPtr::new((&raw const DEBUG.method).cast_mut());

/// `Vmprofile`: as `Vmbest`, and counts by file and line.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmprofile: AtomicPtr<Vmethod> = AtomicPtr::new((&raw const PROFILE.method).cast_mut());

const fn kind<M: Method>() -> Kind {
    Kind {
        method: Vmethod {
            allocf: alloc::<M>,
            resizef: resize::<M>,
            freef: free::<M>,
            addrf: offset::<M>,
            sizef: size::<M>,
            compactf: compact::<M>,
            alignf: align::<M>,
            meth: M::MODE as c_ushort,
        },
        open: open::<M>,
        close: close::<M>,
        clear: looks::clear::<M>,
        stat: looks::stat::<M>,
        segment: looks::segment::<M>,
        segments: looks::segments::<M>,
        has_block: looks::has_block::<M>,
        compact: looks::give_back::<M>,
        blocks: looks::blocks::<M>,
        value: looks::value::<M>,
        check: looks::check::<M>,
    }
}

/// Does what needs neither discipline nor position, and what nobody is told of, if the method can.
/// Returns `None` for other calls, and if the method cannot at once.
///
/// # Safety
/// As for [`Caller::new`].
#[inline]
unsafe fn quick<M: Method, T>(
    vm: *mut Vmalloc,
    f: impl FnOnce(&Data<M::State>) -> Option<T>,
) -> Option<T> {
    if !M::IS_QUICK || position::are_recorded() {
        return None;
    }
    // SAFETY: the caller's promise.
    let vm = unsafe { handle(vm) }?;
    // SAFETY: only handles of regions with the method `M` hold the table that leads here.
    unsafe { quickly(vm, f) }
}

/// Runs a call that nobody is told of, and that needs no position. Returns `None` if it is not such
/// a call, or cannot be made now.
///
/// # Safety
/// As for [`Caller::new`].
#[inline]
unsafe fn plain<M: Method, T>(
    vm: *mut Vmalloc,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    if M::MODE & (mode::BEST | mode::LAST | mode::POOL) == 0 || position::are_recorded() {
        return None;
    }
    // SAFETY: the caller's promise.
    let mut inside = Inside::enter_plain(unsafe { handle(vm) }?)?;
    // SAFETY: only handles of regions with the method `M` hold the table that leads here.
    let mut call = unsafe { inside.call::<M>() };
    Some(f(&mut call))
}

/// Methods of regions that are checked here.
const CHECKED: u32 = mode::BEST | mode::PROFILE;

/// Enters the region for a call that allocates or frees, and checks it first if it wants so.
#[inline]
fn enter_for<M: Method, T>(
    caller: &Caller<'_>,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    enter::<M, _>(caller.vm, |call| {
        call.at(caller.origin());
        // The method for debugging does that itself.
        if M::MODE & CHECKED != 0 && caller.vm.head().mode() & mode::DBCHECK != 0 {
            M::check(call);
        }
        f(call)
    })
}

/// Enters the region for a call that allocates a block, and traces it.
#[inline]
fn enter_to_alloc<M: Method>(
    caller: &Caller<'_>,
    record: Record,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> Option<usize>,
) -> Option<Option<usize>> {
    enter_for::<M, _>(caller, |call| {
        f(call).inspect(|new| caller.trace(Record { new: *new, ..record }))
    })
}

/// Returns a new block, or NULL with `errno`.
#[inline]
fn finish(caller: &Caller<'_>, block: Option<Option<usize>>) -> *mut c_void {
    match block {
        Some(Some(new)) => {
            caller.tell(event::ALLOC, new);
            pointer(new)
        }
        failed => {
            let failure = if failed.is_none() { Failure::Busy } else { Failure::NoMemory };
            caller.fail(failure, 0);
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn alloc<M: Method>(vm: *mut Vmalloc, size: usize, local: c_int) -> *mut c_void {
    if M::IS_QUICK {
        // SAFETY: the caller's promise.
        return match unsafe { quick::<M, _>(vm, |data| M::quick_alloc(data, size)) } {
            Some(block) => pointer(block),
            // SAFETY: the caller's promise.
            None => unsafe { alloc_told::<M>(vm, size, local, None) },
        };
    }
    // SAFETY: the caller's promise.
    match unsafe { plain::<M, _>(vm, |call| M::alloc(call, size)) } {
        Some(Some(block)) => pointer(block),
        // SAFETY: the caller's promise.
        failed => unsafe { alloc_told::<M>(vm, size, local, failed) },
    }
}

/// As [`alloc`], after an attempt that failed or was not made.
///
/// # Safety
/// As for [`Caller::new`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
unsafe fn alloc_told<M: Method>(
    vm: *mut Vmalloc,
    size: usize,
    local: c_int,
    attempt: Option<Option<usize>>,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    let record = Record { size, ..Record::default() };
    let block =
        attempt.or_else(|| enter_to_alloc::<M>(&caller, record, |call| M::alloc(call, size)));
    finish(&caller, block)
}

/// # Safety
/// As for [`Caller::new`].
#[unsafe(link_section = "lumalloc_entries")]
unsafe extern "C" fn align<M: Method>(
    vm: *mut Vmalloc,
    size: usize,
    align: usize,
    local: c_int,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    if size == 0 || align == 0 || M::MODE == Pool::MODE {
        caller.fail(Failure::Invalid, 0);
        return ptr::null_mut();
    }
    let record = Record { size, align, ..Record::default() };
    finish(&caller, enter_to_alloc::<M>(&caller, record, |call| M::align(call, size, align)))
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn free<M: Method>(
    vm: *mut Vmalloc,
    address: *mut c_void,
    local: c_int,
) -> c_int {
    let old = address.expose_provenance();
    // SAFETY: the caller's promise.
    match unsafe { quick::<M, _>(vm, |data| M::quick_free(data, old)) } {
        Some(()) => 0,
        // SAFETY: the caller's promise.
        None => unsafe { free_plain::<M>(vm, old, local) },
    }
}

/// As [`free`], for a block that may have to be searched for.
///
/// # Safety
/// As for [`Caller::new`].
#[inline(never)]
unsafe fn free_plain<M: Method>(vm: *mut Vmalloc, old: usize, local: c_int) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { plain::<M, _>(vm, |call| M::free(call, old)) } {
        Some(Ok(_)) => 0,
        // SAFETY: the caller's promise.
        failed => unsafe { free_told::<M>(vm, old, local, failed) },
    }
}

/// As [`free`], after an attempt that failed or was not made.
///
/// # Safety
/// As for [`Caller::new`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
unsafe fn free_told<M: Method>(
    vm: *mut Vmalloc,
    old: usize,
    local: c_int,
    attempt: Option<Result<usize, Misuse>>,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return -1 };
    if old == 0 {
        return 0;
    }
    let freed = attempt.or_else(|| {
        enter_for::<M, _>(&caller, |call| {
            M::free(call, old)
                .inspect(|size| caller.trace(Record { old, size: *size, ..Record::default() }))
        })
    });
    match freed.unwrap_or(Err(Misuse::Entered)) {
        Ok(_) => {
            caller.tell(event::FREE, old);
            0
        }
        Err(misuse) => {
            caller.fail(Failure::of(misuse), old);
            -1
        }
    }
}

/// # Safety
/// As for [`Caller::new`].
#[unsafe(link_section = "lumalloc_entries")]
unsafe extern "C" fn resize<M: Method>(
    vm: *mut Vmalloc,
    address: *mut c_void,
    size: usize,
    how: c_int,
    local: c_int,
) -> *mut c_void {
    if address.is_null() {
        // SAFETY: the caller's promise.
        let new = unsafe { alloc::<M>(vm, size, local) };
        if how & resize::ZERO != 0 && !new.is_null() {
            // SAFETY: the block is new, and so long.
            unsafe { new.write_bytes(0, size) };
        }
        return new;
    }
    if size == 0 {
        // SAFETY: the caller's promise.
        unsafe { free::<M>(vm, address, local) };
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    let old = address.expose_provenance();
    let how = Resize {
        copy: how & resize::COPY != 0,
        move_: how & resize::MOVE != 0,
        zero: how & resize::ZERO != 0,
    };
    let resized = enter_for::<M, _>(&caller, |call| {
        M::resize(call, old, size, how)
            .inspect(|new| caller.trace(Record { old, new: *new, size, align: 0 }))
    });
    match resized.unwrap_or(Err(Misuse::Entered)) {
        Ok(new) => {
            caller.tell(event::RESIZE, new);
            pointer(new)
        }
        Err(misuse) => {
            caller.fail(Failure::of(misuse), old);
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn offset<M: Method>(
    vm: *mut Vmalloc,
    address: *mut c_void,
    _local: c_int,
) -> c_long {
    let address = address.expose_provenance();
    // SAFETY: the caller's promise.
    unsafe { measure(vm, |vm| enter::<M, _>(vm, |call| M::offset(call, address)).flatten()) }
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn size<M: Method>(
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
/// As for [`Caller::new`].
pub(super) unsafe fn measure(
    vm: *mut Vmalloc,
    number: impl FnOnce(&Vmalloc) -> Option<usize>,
) -> c_long {
    // SAFETY: the caller's promise.
    let number = unsafe { vm.as_ref() }.and_then(number);
    number.and_then(|number| c_long::try_from(number).ok()).unwrap_or(-1)
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn compact<M: Method>(vm: *mut Vmalloc, local: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return -1 };
    let compacted = enter::<M, _>(caller.vm, |call| {
        M::compact(call);
        // The methods that are built on another one write no line, as in the library of 2011.
        if M::MODE & (mode::BEST | mode::LAST | mode::POOL) != 0 {
            caller.trace(Record::default());
        }
    });
    if compacted.is_none() {
        caller.fail(Failure::Busy, 0);
        return -1;
    }
    0
}

fn open<M: Method>(vm: &Vmalloc, form: Form) -> Option<NonNull<Head>> {
    Some(Call::<M, _>::open(&mut Inside::alone(vm), form)?.cast())
}

fn close<M: Method>(vm: &Vmalloc) -> bool {
    let Some(mut inside) = Inside::enter_to_end(vm) else { return false };
    inside.forget_lock();
    // SAFETY: the table that leads here is that of the method.
    unsafe { inside.call::<M>() }.close();
    true
}
