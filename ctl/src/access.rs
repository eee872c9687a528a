//! `mallctl`'s calling convention: untyped buffers with lengths, and jemalloc's rules for them.
//!
//! | situation | answer |
//! |---|---|
//! | `newp` or `newlen` given for a key that cannot be written | `EPERM` |
//! | `oldp` or `oldlenp` given for a key without a value, or that is only written | `EPERM` |
//! | `*oldlenp` is not the size | what fits is copied, `*oldlenp` says how much; `EINVAL` |
//! | the same, for a key that makes something | nothing is made, `*oldlenp` is 0; `EINVAL` |
//! | `newlen` is not the size | nothing is written, `EINVAL` |
//! | `newp` is NULL for a key that is only written | `EINVAL` |
//! | `oldp` or `oldlenp` is NULL | nothing is read |
//!
//! A call that reads and writes answers the old value, except for `epoch`, which answers the new
//! one. A read that fails stops the write that would come after it, and the other way round.
use crate::buffers::{Buffers, Output};
use crate::entry::Entry;
use crate::error::Error;
use crate::row::{Access, Asker, Exchanger, Trigger};
use crate::tree;
use crate::value::{Type, Value};
use core::ffi::CStr;

/// `mallctl(name, …)`.
///
/// # Errors
/// [`Error::NoEntry`] when the name does not lead to a key; else as [`access`].
///
/// # Safety
/// As [`access`].
pub unsafe fn by_name(name: &CStr, buffers: Buffers) -> Result<(), Error> {
    let mib = tree::complete(name.to_bytes())?;
    // SAFETY: the caller's promise is ours.
    unsafe { access(mib.as_slice(), buffers) }
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
/// `newlen` bytes when non-null, and a text that it points to NUL-terminated.
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
        Access::Write(_) if buffers.reads() => Err(Error::NotPermitted),
        Access::Write(_) if buffers.newp.is_null() => Err(Error::Invalid),
        // SAFETY: the caller's promise is ours.
        Access::Write(_) => unsafe { copy_in(entry, buffers) },
        // SAFETY: the caller's promise is ours.
        Access::Ask(input, ask) => unsafe { ask_with(entry, input, ask, buffers) },
        // SAFETY: the caller's promise is ours.
        Access::Create(input, create) => unsafe { make(entry, input, create, buffers) },
        // SAFETY: the caller's promise is ours.
        Access::Exchange(exchange) => unsafe { trade(entry, exchange, buffers) },
        // SAFETY: the caller's promise is the handler's.
        Access::Raw(_, handle) => unsafe { handle(entry.mib, buffers) },
        Access::Absent(_) => Err(Error::NoEntry),
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
    if !buffers.has_place() {
        return Ok(());
    }
    let value = entry.read()?;
    // SAFETY: the caller's promise is ours.
    unsafe { buffers.answer(entry.row.kind, value) }
}

/// Writes the caller's value to the key, if there is one.
///
/// # Safety
/// As [`access`], for `newp` and `newlen`.
unsafe fn copy_in(entry: Entry<'_>, buffers: Buffers) -> Result<(), Error> {
    let write = |value: Option<Value<'_>>| value.map_or(Ok(()), |value| entry.write(value));
    // SAFETY: the caller's promise is ours.
    unsafe { buffers.given(entry.row.kind, write) }
}

/// Asks about what came in, and answers.
///
/// # Safety
/// As [`access`].
unsafe fn ask_with(
    entry: Entry<'_>,
    input: Type,
    ask: Asker,
    buffers: Buffers,
) -> Result<(), Error> {
    // SAFETY: the caller's promise is ours.
    let value = unsafe { buffers.given(input, |given| ask(entry.mib, given)) }?;
    // SAFETY: as above.
    unsafe { buffers.answer(entry.row.kind, value) }
}

/// As [`ask_with`], when the answer has a place.
///
/// # Safety
/// As [`access`].
unsafe fn make(
    entry: Entry<'_>,
    input: Type,
    create: Asker,
    buffers: Buffers,
) -> Result<(), Error> {
    if input == Type::Void && buffers.writes() {
        return Err(Error::NotPermitted);
    }
    // SAFETY: the caller's promise is ours.
    unsafe { buffers.require_place(entry.row.kind) }?;
    // SAFETY: as above.
    unsafe { ask_with(entry, input, create, buffers) }
}

/// Bytes in, bytes out.
///
/// # Safety
/// As [`access`].
unsafe fn trade(entry: Entry<'_>, exchange: Exchanger, buffers: Buffers) -> Result<(), Error> {
    // SAFETY: the caller's promise is ours; the slice does not outlive the call.
    let input = unsafe { buffers.input() };
    // SAFETY: as above.
    let mut output = unsafe { Output::of(buffers) };
    exchange(entry.mib, input, &mut output)
}
