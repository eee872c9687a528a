//! `mallctl`'s calling convention: untyped buffers with lengths, and jemalloc's rules for them.
//!
//! | situation | answer |
//! |---|---|
//! | `newp` or `newlen` given for a key that cannot be written | `EPERM` |
//! | `oldp` or `oldlenp` given for a key without a value | `EPERM` |
//! | `*oldlenp` is not the size | what fits is copied, `*oldlenp` says how much; `EINVAL` |
//! | `newlen` is not the size | nothing is written, `EINVAL` |
//! | `oldp` or `oldlenp` is NULL | nothing is read |
//!
//! A call that reads and writes answers the old value, except for `epoch`, which answers the new
//! one. A read that fails stops the write that would come after it, and the other way round.
use crate::entry::Entry;
use crate::row::{Access, Error, Row, Trigger, Type, Value};
use crate::tree::{self, MAX_DEPTH};
use core::ffi::{CStr, c_void};
use core::ptr;

/// The four buffer arguments of `mallctl`.
#[derive(Clone, Copy)]
pub struct Buffers {
    /// Where the value goes, or NULL.
    pub oldp: *mut c_void,
    /// The length of that buffer, or NULL.
    pub oldlenp: *mut usize,
    /// The value to write, or NULL.
    pub newp: *const c_void,
    /// Its length, or 0.
    pub newlen: usize,
}

impl Buffers {
    fn reads(self) -> bool {
        !self.oldp.is_null() || !self.oldlenp.is_null()
    }

    fn writes(self) -> bool {
        !self.newp.is_null() || self.newlen != 0
    }
}

/// `mallctl(name, …)`.
///
/// # Errors
/// [`Error::NoEntry`] when the name does not lead to a key; else as [`access`].
///
/// # Safety
/// As [`access`].
pub unsafe fn by_name(name: &CStr, buffers: Buffers) -> Result<(), Error> {
    let name = name.to_bytes();
    let mut mib = [0; MAX_DEPTH];
    let used = tree::name_to_mib(name, &mut mib)?;
    let complete = name.split(|&byte| byte == b'.').nth(used).is_none();
    let mib = mib.get(..used).filter(|_| complete).ok_or(Error::NoEntry)?;
    // SAFETY: the caller's promise is ours.
    unsafe { access(mib, buffers) }
}

/// `mallctlbymib(mib, …)`: reads, writes or triggers the key, by the rules at the head of this
/// module.
///
/// # Errors
/// [`Error::NoEntry`] for a MIB that names no key, [`Error::NotPermitted`] and [`Error::Invalid`]
/// by the rules, and what the key itself answers.
///
/// # Safety
/// `oldp` must be writable for `*oldlenp` bytes when both are non-null, `newp` readable for
/// `newlen` bytes when non-null.
pub unsafe fn access(mib: &[usize], buffers: Buffers) -> Result<(), Error> {
    let entry = Entry::find(mib)?;
    match entry.row.access {
        Access::Trigger(trigger) => pull(entry, trigger, buffers),
        Access::Read(_) if buffers.writes() => Err(Error::NotPermitted),
        // SAFETY: the caller's promise is ours.
        Access::Read(_) => unsafe { copy_out(entry, buffers) },
        Access::ReadWrite(..) => {
            // SAFETY: the caller's promise is ours.
            unsafe { copy_out(entry, buffers) }?;
            // SAFETY: as above.
            unsafe { copy_in(entry, buffers) }
        }
        Access::WriteThenRead(..) => {
            // SAFETY: the caller's promise is ours.
            unsafe { copy_in(entry, buffers) }?;
            // SAFETY: as above.
            unsafe { copy_out(entry, buffers) }
        }
    }
}

/// An action takes no arguments.
fn pull(entry: Entry<'_>, trigger: Trigger, buffers: Buffers) -> Result<(), Error> {
    if buffers.reads() || buffers.writes() {
        return Err(Error::NotPermitted);
    }
    trigger(entry.mib)
}

/// Reads the key into the caller's buffer, if there is one.
///
/// # Safety
/// As [`access`], for `oldp` and `oldlenp`.
unsafe fn copy_out(entry: Entry<'_>, buffers: Buffers) -> Result<(), Error> {
    if buffers.oldp.is_null() || buffers.oldlenp.is_null() {
        return Ok(());
    }
    let bytes = encode(entry.read()?);
    let size = entry.row.kind.size();
    // SAFETY: oldlenp is non-null, and the caller vouches for it.
    let room = unsafe { ptr::read_unaligned(buffers.oldlenp) };
    let length = size.min(room);
    // SAFETY: `bytes` holds 8 bytes and no value is longer; the caller's buffer holds `room` bytes.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffers.oldp.cast::<u8>(), length) };
    if room == size {
        return Ok(());
    }
    // SAFETY: oldlenp is non-null, and the caller vouches for it.
    unsafe { ptr::write_unaligned(buffers.oldlenp, length) };
    Err(Error::Invalid)
}

/// Writes the caller's value to the key, if there is one.
///
/// # Safety
/// As [`access`], for `newp` and `newlen`.
unsafe fn copy_in(entry: Entry<'_>, buffers: Buffers) -> Result<(), Error> {
    if buffers.newp.is_null() {
        return Ok(());
    }
    if buffers.newlen != entry.row.kind.size() {
        return Err(Error::Invalid);
    }
    // SAFETY: newp is non-null and has the row's length.
    let value = unsafe { decode(entry.row, buffers.newp.cast()) }?;
    entry.write(value)
}

/// A value as C lays it out; the first [`Type::size`] bytes count.
fn encode(value: Value) -> [u8; 8] {
    let mut bytes = [0; 8];
    let mut put = |from: &[u8]| bytes.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    match value {
        Value::Bool(value) => put(&[u8::from(value)]),
        Value::Unsigned(value) => put(&value.to_ne_bytes()),
        Value::U64(value) => put(&value.to_ne_bytes()),
        Value::Size(value) => put(&value.to_ne_bytes()),
        Value::Ssize(value) => put(&value.to_ne_bytes()),
        Value::Str(value) => put(&value.as_ptr().expose_provenance().to_ne_bytes()),
    }
    bytes
}

/// The value that C laid out at `newp`. Texts cannot be written yet: no key takes one.
///
/// # Safety
/// `newp` must be readable for the size of the row's type.
unsafe fn decode(row: &Row, newp: *const u8) -> Result<Value, Error> {
    let mut bytes = [0u8; 8];
    // SAFETY: the caller vouches for newp; no type is longer than 8 bytes.
    unsafe { ptr::copy_nonoverlapping(newp, bytes.as_mut_ptr(), row.kind.size()) };
    let [a, b, c, d, ..] = bytes;
    match row.kind {
        Type::Bool => Ok(Value::Bool(a != 0)),
        Type::Unsigned => Ok(Value::Unsigned(u32::from_ne_bytes([a, b, c, d]))),
        Type::U64 => Ok(Value::U64(u64::from_ne_bytes(bytes))),
        Type::Size => Ok(Value::Size(usize::from_ne_bytes(bytes))),
        Type::Ssize => Ok(Value::Ssize(isize::from_ne_bytes(bytes))),
        Type::Void | Type::Str => Err(Error::NotPermitted),
    }
}
