//! The calling convention of `mallctl`: untyped buffers with lengths, and jemalloc's rules for
//! them.
//!
//! | situation | result |
//! |---|---|
//! | `newp` or `newlen` given for a key that cannot be written | `EPERM` |
//! | `oldp` or `oldlenp` given for a key without a value, or that is only written | `EPERM` |
//! | `*oldlenp` is not the size | what fits is copied, `*oldlenp` says how much; `EINVAL` |
//! | the same for a key that makes something | nothing is made, `*oldlenp` is 0; `EINVAL` |
//! | `newlen` is not the size | nothing is written, `EINVAL` |
//! | `newp` is NULL for a key that is only written | `EINVAL`, but for a few that then act |
//! | `oldp` or `oldlenp` is NULL | nothing is read |
//!
//! A call that reads and writes returns the old value, except for `epoch`, which returns the new
//! one. If the first fails, the other one does not follow. So the old value is there also when the
//! write of it fails.
use crate::buffers::{Buffers, Output};
use crate::entry::Entry;
use crate::error::Error;
use crate::row::{Access, Asker, Exchanger, UnsafeMaker, UnsafeWriter};
use crate::tree;
use crate::value::{Type, Value};
use core::ffi::CStr;
use core::ptr;

/// `mallctl(name, …)`.
///
/// # Errors
/// [`Error::NoEntry`] when the name does not lead to a key; otherwise as [`access`].
///
/// # Safety
/// As [`access`].
pub unsafe fn by_name(name: &CStr, buffers: Buffers) -> Result<(), Error> {
    let mib = tree::complete(name.to_bytes())?;
    // SAFETY: the caller upholds the contract.
    unsafe { access(mib.as_slice(), buffers) }
}

/// `mallctlbymib(mib, …)`: reads, writes or triggers the key, by the rules at the head of this
/// module.
///
/// # Errors
/// [`Error::NoEntry`] for a MIB that names no key, [`Error::NotPermitted`] and [`Error::Invalid`]
/// by the rules, and the errors of the key itself.
///
/// # Safety
/// `oldp` must be writable for `*oldlenp` bytes when both are non-null, `newp` readable for
/// `newlen` bytes when non-null, and a text that it points to NUL-terminated. For a key that the
/// allocator trusts (`Access::Unsafe…`), the caller vouches for what the access says.
pub unsafe fn access(mib: &[usize], buffers: Buffers) -> Result<(), Error> {
    // SAFETY: the caller upholds the contract.
    unsafe { of_entry(Entry::find(mib)?, buffers) }
}

/// As [`access`], for a key that was already found.
///
/// # Safety
/// As [`access`].
#[inline]
unsafe fn of_entry(entry: Entry<'_>, buffers: Buffers) -> Result<(), Error> {
    match entry.row.access {
        Access::Trigger(_) | Access::UnsafeTrigger(_) if buffers.reads() || buffers.writes() => {
            Err(Error::NotPermitted)
        }
        Access::Trigger(trigger) => trigger(entry.mib),
        // SAFETY: the caller vouches for the blocks.
        Access::UnsafeTrigger(trigger) => unsafe { trigger(entry.mib) },
        Access::Read(_) if buffers.writes() => Err(Error::NotPermitted),
        // SAFETY: the caller upholds the contract.
        Access::Read(_) => unsafe { copy_out(entry, buffers) },
        Access::ReadOrWrite(..) if buffers.has_place() && buffers.writes() => {
            Err(Error::NotPermitted)
        }
        Access::ReadWrite(..) | Access::ReadOrWrite(..) => {
            // SAFETY: the caller upholds the contract.
            unsafe { copy_out(entry, buffers) }?;
            // SAFETY: as above.
            unsafe { copy_in(entry, buffers) }
        }
        Access::UnsafeReadWrite(_, write) => {
            // SAFETY: the caller upholds the contract.
            unsafe { copy_out(entry, buffers) }?;
            // SAFETY: as above.
            unsafe { copy_pointer_in(entry, write, buffers) }
        }
        Access::WriteThenRead(..) => {
            // SAFETY: the caller upholds the contract.
            unsafe { copy_in(entry, buffers) }?;
            // SAFETY: as above.
            unsafe { copy_out(entry, buffers) }
        }
        Access::Write(_) | Access::WriteOr(..) if buffers.reads() => Err(Error::NotPermitted),
        Access::Write(_) if buffers.newp.is_null() => Err(Error::Invalid),
        // SAFETY: the caller upholds the contract.
        Access::WriteOr(_, act) if unsafe { buffers.lacks_value(entry.row.kind) } => act(entry.mib),
        // SAFETY: as above.
        Access::Write(_) | Access::WriteOr(..) => unsafe { copy_in(entry, buffers) },
        // SAFETY: the caller upholds the contract.
        Access::Ask(input, ask) => unsafe { ask_with(entry, input, ask, buffers) },
        // SAFETY: the caller upholds the contract.
        Access::Create(input, create) => unsafe { make(entry, input, create, buffers) },
        // SAFETY: as above.
        Access::UnsafeCreate(input, make) => unsafe { make_with(entry, input, make, buffers) },
        // SAFETY: the caller upholds the contract.
        Access::Exchange(exchange) => unsafe { trade(entry, exchange, buffers) },
        // SAFETY: the caller upholds the contract, which is also the handler's.
        Access::Raw(_, handle) => unsafe { handle(entry.mib, buffers) },
        Access::Absent(_) => Err(Error::NoEntry),
    }
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
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.answer(entry.row.kind, value) }
}

/// Writes the caller's value to the key, if there is one.
///
/// # Safety
/// As [`access`], for `newp` and `newlen`.
unsafe fn copy_in(entry: Entry<'_>, buffers: Buffers) -> Result<(), Error> {
    let write = |value: Option<Value<'_>>| value.map_or(Ok(()), |value| entry.write(value));
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.given(entry.row.kind, write) }
}

/// Writes the caller's pointer to the key, if there is one.
///
/// # Safety
/// As [`access`], for `newp` and `newlen`.
unsafe fn copy_pointer_in(
    entry: Entry<'_>,
    write: UnsafeWriter,
    buffers: Buffers,
) -> Result<(), Error> {
    let write = |value: Option<Value<'_>>| match value {
        // SAFETY: the caller vouches for the pointer.
        Some(Value::Pointer(pointer)) => unsafe { write(entry.mib, pointer) },
        Some(_) => Err(Error::Invalid),
        None => Ok(()),
    };
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.given(entry.row.kind, write) }
}

/// Makes something with the pointer at `newp`, or with none, if there is a place for the answer.
///
/// # Safety
/// As [`access`].
unsafe fn make_with(
    entry: Entry<'_>,
    input: Type,
    make: UnsafeMaker,
    buffers: Buffers,
) -> Result<(), Error> {
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.require_place(entry.row.kind) }?;
    let make = |value: Option<Value<'_>>| match value {
        // SAFETY: the caller vouches for the pointer.
        Some(Value::Pointer(pointer)) => unsafe { make(entry.mib, pointer) },
        Some(_) => Err(Error::Invalid),
        // SAFETY: nothing is used.
        None => unsafe { make(entry.mib, ptr::null_mut()) },
    };
    // SAFETY: the caller upholds the contract.
    let value = unsafe { buffers.given(input, make) }?;
    // SAFETY: as above.
    unsafe { buffers.answer(entry.row.kind, value) }
}

/// Asks about the value at `newp`, and stores the answer at `oldp`.
///
/// # Safety
/// As [`access`].
unsafe fn ask_with(
    entry: Entry<'_>,
    input: Type,
    ask: Asker,
    buffers: Buffers,
) -> Result<(), Error> {
    // SAFETY: the caller upholds the contract.
    let value = unsafe { buffers.given(input, |given| ask(entry.mib, given)) }?;
    // SAFETY: as above.
    unsafe { buffers.answer(entry.row.kind, value) }
}

/// As [`ask_with`], but only when there is a place for the answer.
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
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.require_place(entry.row.kind) }?;
    // SAFETY: as above.
    unsafe { ask_with(entry, input, create, buffers) }
}

/// Hands the bytes at `newp` to the key and takes its bytes for `oldp`.
///
/// # Safety
/// As [`access`].
unsafe fn trade(entry: Entry<'_>, exchange: Exchanger, buffers: Buffers) -> Result<(), Error> {
    // SAFETY: the caller upholds the contract; the slice does not outlive the call.
    let input = unsafe { buffers.input() };
    // SAFETY: as above.
    let mut output = unsafe { Output::of(buffers) };
    exchange(entry.mib, input, &mut output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_table::Row;
    use crate::row_macros::{absent, act, ask, create, row, wo, wo_or};
    use core::ffi::c_void;

    /// Calls with a size to read into and one to write, each with its length or none.
    fn call<const N: usize>(
        row: &'static Row,
        old: Option<usize>,
        new: Option<&[usize; N]>,
    ) -> (Result<(), Error>, usize, usize) {
        let (mut answer, mut length) = (0usize, old.unwrap_or(0));
        let buffers = Buffers {
            oldp: old.map_or(ptr::null_mut(), |_| (&raw mut answer).cast()),
            oldlenp: if old.is_some() { &raw mut length } else { ptr::null_mut() },
            newp: new.map_or(ptr::null(), |new| ptr::from_ref(new).cast::<c_void>()),
            newlen: new.map_or(0, size_of_val),
        };
        // SAFETY: the buffers have the lengths given here: no test gives more than 8 for `answer`.
        let outcome = unsafe { of_entry(Entry { row, mib: &[] }, buffers) };
        (outcome, answer, length)
    }

    const NONE: Option<&[usize; 1]> = None;

    #[test]
    fn what_is_only_written_wants_a_value_and_answers_none() {
        static ROW: Row = Row::without_texts(&wo!(
            "t",
            Size,
            None,
            |_, size| if size == 5 { Ok(()) } else { Err(Error::Fault) },
            "takes five"
        ));
        assert_eq!(call(&ROW, None, Some(&[5])).0, Ok(()));
        assert_eq!(call(&ROW, None, Some(&[6])).0, Err(Error::Fault));
        assert_eq!(call(&ROW, Some(8), Some(&[5])).0, Err(Error::NotPermitted));
        assert_eq!(call(&ROW, Some(8), NONE).0, Err(Error::NotPermitted));
        assert_eq!(call(&ROW, None, NONE).0, Err(Error::Invalid));
        assert_eq!(call(&ROW, None, Some(&[5, 5])).0, Err(Error::Invalid));
    }

    #[test]
    fn without_a_value_something_is_done_whatever_its_length_is_said_to_be() {
        static ROW: Row = Row::without_texts(&wo_or!(
            "t",
            Size,
            None,
            |_, size| if size == 5 { Ok(()) } else { Err(Error::Invalid) },
            |_| Err(Error::Again),
            "takes five, or none"
        ));
        assert_eq!(call(&ROW, None, Some(&[5])).0, Ok(()));
        assert_eq!(call(&ROW, None, NONE).0, Err(Error::Again));
        let (oldp, oldlenp, newp) = (ptr::null_mut(), ptr::null_mut(), ptr::null());
        let buffers = Buffers { oldp, oldlenp, newp, newlen: 8 };
        // SAFETY: there is nothing to read or write.
        let outcome = unsafe { of_entry(Entry { row: &ROW, mib: &[] }, buffers) };
        assert_eq!(outcome, Err(Error::Again));
    }

    #[test]
    fn a_question_takes_its_input_by_newp() {
        static ROW: Row = Row::without_texts(&ask!(
            "t",
            Size => Size,
            Bytes,
            |_, size: Option<usize>| size.map(|size| size * 2).ok_or(Error::Invalid),
            "twice what comes in"
        ));
        assert_eq!(call(&ROW, Some(8), Some(&[21])), (Ok(()), 42, 8));
        assert_eq!(call(&ROW, Some(4), Some(&[21])), (Err(Error::Invalid), 42, 4));
        assert_eq!(call(&ROW, None, Some(&[21])), (Ok(()), 0, 0));
        assert_eq!(call(&ROW, Some(8), NONE), (Err(Error::Invalid), 0, 8));
        assert_eq!(call(&ROW, Some(8), Some(&[1, 2])), (Err(Error::Invalid), 0, 8));
    }

    #[test]
    fn nothing_is_made_without_a_place_for_the_answer() {
        use core::sync::atomic::{AtomicUsize, Ordering};
        static MADE: AtomicUsize = AtomicUsize::new(0);
        static ROW: Row = Row::without_texts(&create!(
            "t",
            Void => Size,
            None,
            |_| MADE.fetch_add(1, Ordering::Relaxed) + 1,
            "counts what was made"
        ));
        assert_eq!(call(&ROW, Some(4), NONE), (Err(Error::Invalid), 0, 0));
        assert_eq!(call(&ROW, None, NONE).0, Err(Error::Invalid));
        assert_eq!(call(&ROW, Some(8), Some(&[1])).0, Err(Error::NotPermitted));
        assert_eq!(call(&ROW, Some(8), NONE), (Ok(()), 1, 8));
        static OF: Row = Row::without_texts(&create!(
            "t",
            Size => Size,
            None,
            |_, of: Option<usize>| of.unwrap_or(7),
            "made of what comes in"
        ));
        assert_eq!(call(&OF, Some(8), NONE), (Ok(()), 7, 8));
        assert_eq!(call(&OF, Some(8), Some(&[3])), (Ok(()), 3, 8));
        assert_eq!(call(&OF, Some(2), Some(&[3])), (Err(Error::Invalid), 0, 0));
    }

    #[test]
    fn bytes_of_any_length_go_in_and_out() {
        static ROW: Row = Row::without_texts(&row!(
            "t",
            Layout("bytes"),
            None,
            Access::Exchange(|_, input, output| {
                let at = output.room().checked_sub(input.len()).ok_or(Error::Invalid)?;
                output.put(at, input)?;
                assert_eq!(output.put(1, &[0; 8]), Err(Error::Invalid), "one too many");
                Ok(())
            }),
            "puts what comes in at the end"
        ));
        assert_eq!(call(&ROW, Some(8), Some(&[0xabcd])), (Ok(()), 0xabcd, 8));
        assert_eq!(call(&ROW, Some(8), NONE), (Ok(()), 0, 8));
        assert_eq!(call(&ROW, Some(8), Some(&[1, 2])).0, Err(Error::Invalid));
        assert_eq!(call(&ROW, None, NONE).0, Ok(()));
    }

    #[test]
    fn what_is_not_built_in_has_no_entry_and_actions_take_no_arguments() {
        static ABSENT: Row = Row::without_texts(&absent!("t", Size, None, c"rw", "is not there"));
        static ACT: Row = Row::without_texts(&act!("t", |_| Ok(()), "does nothing"));
        for old in [None, Some(8)] {
            assert_eq!(call(&ABSENT, old, NONE).0, Err(Error::NoEntry));
            assert_eq!(call(&ABSENT, old, Some(&[1, 2])).0, Err(Error::NoEntry));
            assert_eq!(call(&ACT, old, Some(&[1])).0, Err(Error::NotPermitted));
        }
        assert_eq!(call(&ACT, None, NONE).0, Ok(()));
        assert_eq!(call(&ACT, Some(8), NONE).0, Err(Error::NotPermitted));
    }

    #[test]
    fn a_row_with_rules_of_its_own_gets_the_buffers_as_they_are() {
        static ROW: Row = Row::without_texts(&row!(
            "t",
            Size,
            None,
            Access::Raw(c"rw", |_, buffers| {
                // SAFETY: the tests give good buffers.
                unsafe { buffers.answer(Type::Size, Value::Size(buffers.newlen)) }
            }),
            "answers the length"
        ));
        assert_eq!(call(&ROW, Some(8), Some(&[1, 2])), (Ok(()), 16, 8));
    }

    #[test]
    fn a_text_that_is_null_is_refused() {
        static ROW: Row = Row::without_texts(&wo!("t", Str, None, |_, _| Ok(()), "takes a text"));
        assert_eq!(call(&ROW, None, Some(&[0])).0, Err(Error::Invalid));
    }
}
