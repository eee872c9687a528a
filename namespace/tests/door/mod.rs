//! `mallctl`'s untyped buffers with typed values, for tests.

use lumalloc_namespace::{Buffers, Error, by_name};
use std::ffi::CString;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs one test at a time, because indices, defaults and snapshots belong to the process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a key, or writes it, or both.
pub(crate) fn call<T, U>(name: &str, old: Option<&mut T>, new: Option<&U>) -> Result<(), Error> {
    let name = CString::new(name).unwrap();
    let mut length = size_of::<T>();
    let buffers = Buffers {
        oldlenp: if old.is_some() { &raw mut length } else { ptr::null_mut() },
        oldp: old.map_or(ptr::null_mut(), |old| ptr::from_mut(old).cast()),
        newlen: if new.is_some() { size_of::<U>() } else { 0 },
        newp: new.map_or(ptr::null(), |new| ptr::from_ref(new).cast()),
    };
    // SAFETY: the buffers are values of the types, and have their lengths.
    unsafe { by_name(&name, buffers) }
}
