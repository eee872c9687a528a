//! `mallctl` and `malloc_stats_print` of jemalloc(3), on top of the crate `lumalloc-namespace`.
//!
//! The functions return error numbers and do not change `errno`.
use crate::variables;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use lumalloc_namespace::Buffers;
use lumalloc_namespace::print::{self, Choice};
use lumalloc_namespace::writer::{WriteCallback, Writer};
use lumalloc_namespace::{Error, access, by_name, name_to_mib};

/// Converts an outcome to C: 0 or an error number.
fn code(outcome: Result<(), Error>) -> c_int {
    outcome.err().map_or(0, Error::errno)
}

/// `mallctl(3)`: reads, writes or triggers the key with a name.
///
/// Errors: `ENOENT`, `EPERM`, `EINVAL` (see [`lumalloc_namespace::access`]; also for a null name),
/// `EAGAIN`, `EBUSY`, `EFAULT`, `ENOMEM`.
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
    // SAFETY: the caller upholds the contract.
    code(unsafe { by_name(name, Buffers { oldp, oldlenp, newp, newlen }) })
}

/// `mallctlnametomib(3)`: translates a name, or its beginning when `*miblenp` is smaller than the
/// number of its components. Stores the number of translated components at `*miblenp`.
///
/// Errors: `ENOENT`, which leaves `*miblenp` unchanged; `EINVAL` for a null pointer.
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
    // are used.
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

/// `mallctlbymib(3)`: as [`mallctl`], but the key is given by its MIB.
///
/// Errors: as [`mallctl`]; `ENOENT` also for a MIB that ends before a key or goes on past one.
///
/// # Safety
/// `mib` must be readable for `miblen` components; the buffers as for [`mallctl`].
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
    // SAFETY: the caller upholds the contract.
    code(unsafe { access(mib, Buffers { oldp, oldlenp, newp, newlen }) })
}

/// `malloc_stats_print(3)`: takes a new snapshot and writes it through `write_cb`, or through
/// `malloc_message` when that is NULL. It is written as text, or as JSON when `opts` contains `J`.
/// Other letters leave parts out, see [`Choice`]. No lock is held while the callback runs.
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
    // SAFETY: the caller vouches for its callback; `deliver` takes any text.
    let mut writer = unsafe { Writer::new(callback, cbopaque) };
    print::print(&mut writer, Choice::from_letters(letters.to_bytes()));
}
