//! `mallctl` and `malloc_stats_print` of jemalloc(3), over the namespace of the crate
//! `lumalloc-namespace`.
//!
//! They return error numbers and leave `errno` alone.
use crate::variables;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use lumalloc_namespace::Buffers;
use lumalloc_namespace::print::{self, Choice};
use lumalloc_namespace::writer::{WriteCallback, Writer};
use lumalloc_namespace::{Error, access, by_name, name_to_mib};

/// An outcome as C sees it: 0 or an error number.
fn code(outcome: Result<(), Error>) -> c_int {
    outcome.err().map_or(0, Error::errno)
}

/// `mallctl(3)`: reads and writes the key of that name, or triggers it.
///
/// Errors: `ENOENT`, `EPERM`, `EINVAL` (see [`lumalloc_namespace::access`]; also for a null name),
/// `EAGAIN`, `EFAULT`, `ENOMEM`.
///
/// # Safety
/// `name` must be NUL-terminated; `oldp` writable for `*oldlenp` bytes when both are non-null;
/// `newp` readable for `newlen` bytes when non-null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallctl(
    name: *const c_char,
    oldp: *mut c_void,
    oldlenp: *mut usize,
    newp: *mut c_void,
    newlen: usize,
) -> c_int {
    if name.is_null() {
        return Error::Invalid.errno();
    }
    // SAFETY: the caller vouches for the name; it is not null.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: the caller's promise is ours.
    code(unsafe { by_name(name, Buffers { oldp, oldlenp, newp, newlen }) })
}

/// `mallctlnametomib(3)`: translates a name, or its beginning when `*miblenp` is smaller than the
/// number of its components, and stores how many components were translated at `*miblenp`.
///
/// Errors: `ENOENT`; `*miblenp` stays as it was. `EINVAL` for a null pointer.
///
/// # Safety
/// `name` must be NUL-terminated, `mibp` writable for `*miblenp` components.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallctlnametomib(
    name: *const c_char,
    mibp: *mut usize,
    miblenp: *mut usize,
) -> c_int {
    if name.is_null() || mibp.is_null() || miblenp.is_null() {
        return Error::Invalid.errno();
    }
    // SAFETY: the caller vouches for the name; it is not null.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: the caller vouches for miblenp.
    let room = unsafe { miblenp.read() };
    // SAFETY: the caller vouches for mibp; no name has more than MAX_DEPTH components, so no more
    // is looked at.
    let mib = unsafe { slice::from_raw_parts_mut(mibp, room.min(lumalloc_namespace::MAX_DEPTH)) };
    match name_to_mib(name.to_bytes(), mib) {
        Ok(used) => {
            // SAFETY: the caller vouches for miblenp.
            unsafe { miblenp.write(used) };
            0
        }
        Err(error) => error.errno(),
    }
}

/// `mallctlbymib(3)`: as [`mallctl`], by MIB.
///
/// Errors: as [`mallctl`]; `ENOENT` also for a MIB that ends before a key or goes on past it.
///
/// # Safety
/// `mib` must be readable for `miblen` components; the rest as [`mallctl`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallctlbymib(
    mib: *const usize,
    miblen: usize,
    oldp: *mut c_void,
    oldlenp: *mut usize,
    newp: *mut c_void,
    newlen: usize,
) -> c_int {
    if mib.is_null() || miblen > lumalloc_namespace::MAX_DEPTH {
        return Error::NoEntry.errno();
    }
    // SAFETY: the caller vouches for mib; it is not null.
    let mib = unsafe { slice::from_raw_parts(mib, miblen) };
    // SAFETY: the caller's promise is ours.
    code(unsafe { access(mib, Buffers { oldp, oldlenp, newp, newlen }) })
}

/// `malloc_stats_print(3)`: takes a new snapshot and writes it through `write_cb`, or
/// `malloc_message` when that is NULL: as text, or as JSON when `opts` contains `J`; other letters
/// leave parts out, see [`Choice`]. No lock is held while the callback runs.
///
/// # Safety
/// `write_cb` must accept `cbopaque` and any NUL-terminated text; `opts` must be NULL or
/// NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_stats_print(
    write_cb: Option<WriteCallback>,
    cbopaque: *mut c_void,
    opts: *const c_char,
) {
    let letters = if opts.is_null() {
        c""
    } else {
        // SAFETY: the caller vouches for the options.
        unsafe { CStr::from_ptr(opts) }
    };
    let callback = write_cb.unwrap_or(variables::deliver);
    // SAFETY: the caller vouches for its callback; ours takes any text.
    let mut writer = unsafe { Writer::new(callback, cbopaque) };
    print::print(&mut writer, Choice::from_letters(letters.to_bytes()));
}
