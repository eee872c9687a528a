//! The structures and numbers of `vmalloc.h`.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ushort, c_void};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use lumalloc_region::raw::Head;

/// Obtains, resizes and releases segments.
pub(super) type Memory = unsafe extern "C" fn(
    vm: *mut Vmalloc,
    address: *mut c_void,
    size: usize,
    new_size: usize,
    disc: *mut Vmdisc,
) -> *mut c_void;

/// Is told of an event.
pub(super) type Except = unsafe extern "C" fn(
    vm: *mut Vmalloc,
    event: c_int,
    object: *mut c_void,
    disc: *mut Vmdisc,
) -> c_int;

/// `Vmdisc_t`: where a region's memory comes from.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Vmdisc {
    pub(super) memoryf: Option<Memory>,
    pub(super) exceptf: Option<Except>,
    pub(super) round: usize,
    pub(super) size: usize,
}

/// `Vmethod_t`: what a program calls through a handle.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Vmethod {
    pub(super) allocf: unsafe extern "C" fn(*mut Vmalloc, usize, c_int) -> *mut c_void,
    pub(super) resizef:
        unsafe extern "C" fn(*mut Vmalloc, *mut c_void, usize, c_int, c_int) -> *mut c_void,
    pub(super) freef: unsafe extern "C" fn(*mut Vmalloc, *mut c_void, c_int) -> c_int,
    pub(super) addrf: unsafe extern "C" fn(*mut Vmalloc, *mut c_void, c_int) -> c_long,
    pub(super) sizef: unsafe extern "C" fn(*mut Vmalloc, *mut c_void, c_int) -> c_long,
    pub(super) compactf: unsafe extern "C" fn(*mut Vmalloc, c_int) -> c_int,
    pub(super) alignf: unsafe extern "C" fn(*mut Vmalloc, usize, usize, c_int) -> *mut c_void,
    pub(super) meth: c_ushort,
}

impl Vmethod {
    /// Returns the bit of the method.
    pub(super) fn bit(&self) -> u32 {
        u32::from(self.meth)
    }
}

/// `Vmalloc_t`: a handle on a region.
///
/// The fields that change while threads may read them are atomic. Programs read them as plain
/// pointers. The age lies where C has padding.
#[repr(C)]
pub struct Vmalloc {
    pub(super) meth: Vmethod,
    file: AtomicPtr<c_char>,
    line: AtomicI32,
    age: AtomicU32,
    func: AtomicPtr<c_char>,
    disc: AtomicPtr<Vmdisc>,
    data: AtomicPtr<c_void>,
    pub(super) next: AtomicPtr<Vmalloc>,
}

impl Vmalloc {
    /// A handle that is in no list.
    pub(super) const fn new(meth: Vmethod, disc: *mut Vmdisc, data: *mut c_void) -> Vmalloc {
        Vmalloc {
            meth,
            file: AtomicPtr::new(ptr::null_mut()),
            line: AtomicI32::new(0),
            age: AtomicU32::new(0),
            func: AtomicPtr::new(ptr::null_mut()),
            disc: AtomicPtr::new(disc),
            data: AtomicPtr::new(data),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The discipline in force.
    pub(super) fn disc(&self) -> *mut Vmdisc {
        // Acquire: pairs with the Release in `set_disc`.
        self.disc.load(Ordering::Acquire)
    }

    /// Takes another discipline.
    pub(super) fn set_disc(&self, disc: *mut Vmdisc) {
        // Release: pairs with the Acquire in `disc`.
        self.disc.store(disc, Ordering::Release);
    }

    /// The core data. NULL: the handle stands for a region that has none yet, or no more.
    pub(super) fn data(&self) -> *mut c_void {
        self.data.load(Ordering::Relaxed)
    }

    /// What every region has in its core data, unless the handle stands for a region before it has
    /// memory, or after.
    #[inline]
    pub(super) fn region(&self) -> Option<&Head> {
        (!self.data().is_null()).then(|| self.head())
    }

    /// As [`Vmalloc::region`], for a region that has its memory.
    #[inline]
    pub(super) fn head(&self) -> &Head {
        // SAFETY: the core data of a handle stays mapped while its region is open, and has atomic
        // fields only.
        unsafe { &*self.data().cast::<Head>() }
    }

    /// Tells handles apart that had the same place, and orders them: see
    /// [`Place`](super::list::Place). It changes while the list is held.
    pub(super) fn age(&self) -> &AtomicU32 {
        &self.age
    }

    pub(super) fn address(&self) -> *mut Vmalloc {
        ptr::from_ref(self).cast_mut()
    }
}

/// Returns the handle that a program passed, or `None` for NULL.
///
/// # Safety
/// A pointer other than NULL is that of a handle, which stays open during the call.
#[inline]
pub(super) unsafe fn handle<'a>(vm: *mut Vmalloc) -> Option<&'a Vmalloc> {
    // SAFETY: the caller's promise.
    unsafe { vm.as_ref() }
}

/// `Vmstat_t`: numbers about a region.
#[repr(C)]
#[derive(Default)]
pub struct Vmstat {
    pub(super) n_busy: c_int,
    pub(super) n_free: c_int,
    pub(super) s_busy: usize,
    pub(super) s_free: usize,
    pub(super) m_busy: usize,
    pub(super) m_free: usize,
    pub(super) n_seg: c_int,
    pub(super) extent: usize,
    pub(super) n_region: c_int,
    pub(super) n_open: c_int,
    pub(super) n_lock: c_int,
    pub(super) n_probe: c_int,
    pub(super) mode: c_int,
}

const _: () = {
    assert!(size_of::<Vmdisc>() == 32);
    assert!(size_of::<Vmethod>() == 64);
    assert!(size_of::<Vmalloc>() == 112);
    assert!(offset_of!(Vmalloc, func) == 80);
    assert!(size_of::<Vmstat>() == 80);
};

/// Returns a count as C has it: the largest number for what is larger.
pub(super) fn count(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// The events that `exceptf` is called for.
pub(super) mod event {
    use super::c_int;

    pub(in super::super) const OPEN: c_int = 1;
    pub(in super::super) const ENDOPEN: c_int = 2;
    pub(in super::super) const CLOSE: c_int = 3;
    pub(in super::super) const ENDCLOSE: c_int = 4;
    pub(in super::super) const DISC: c_int = 5;
    pub(in super::super) const NOMEM: c_int = 6;
    pub(in super::super) const BADADDR: c_int = -1;
    pub(in super::super) const ALLOC: c_int = 7;
    pub(in super::super) const FREE: c_int = 8;
    pub(in super::super) const RESIZE: c_int = 9;
}

/// The types of `vmresize`, combined by `|`.
pub(super) mod resize {
    use super::c_int;

    pub(in super::super) const COPY: c_int = 1;
    pub(in super::super) const MOVE: c_int = 2;
    pub(in super::super) const ZERO: c_int = 4;
}

/// Converts flags of C, of which the library knows some.
pub(super) fn flags(flags: c_int, known: u32) -> u32 {
    (flags as c_uint) & known
}
