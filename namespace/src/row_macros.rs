//! The macros that write a row:
//!
//! | macro | access | arguments after the name |
//! |---|---|---|
//! | `ro!` | `r-` | type, unit, `\|mib\| value`, help |
//! | `rw!` | `rw` | type, unit, `\|mib\| value`, `\|mib, value\| outcome`, help |
//! | `wo!` | `-w` | type, unit, `\|mib, value\| outcome`, help |
//! | `wo_or!` | `-w` | as `wo!`, then `\|mib\| outcome` if no value is given, help |
//! | `act!` | `--` | `\|mib\| outcome`, help |
//! | `ask!` | `rw` | `input => output`, unit, `\|mib, input\| value`, help |
//! | `create!` | `r-` or `rw` | as `ask!`, but called only when there is a place for the answer |
//! | `absent!` | as given | type, access, help: the name exists, its value does not (`ENOENT`) |
//!
//! A reading function returns the value itself or a `Result` of it. Types are the variants of
//! [`Type`](crate::Type): `Size` takes and returns `usize`, `Str` a `&CStr`, and so on; pointers
//! are written `Pointer("uint64_t *")`. `.unstable()` and `.deprecated()` after a row set its
//! stability.

/// The Rust type of a value. The caller sets the lifetimes.
macro_rules! rust_type {
    (Bool) => { bool };
    (Unsigned) => { u32 };
    (U32) => { u32 };
    (U64) => { u64 };
    (I64) => { i64 };
    (Size) => { usize };
    (Ssize) => { isize };
    (Str) => { &core::ffi::CStr };
    (Pointer) => { *mut core::ffi::c_void };
}

/// The Rust type that a reading function returns.
macro_rules! answer_type {
    (Str) => { &'static core::ffi::CStr };
    ($kind:ident) => { $crate::row_macros::rust_type!($kind) };
}

/// A `Type`; pointers carry their C spelling.
macro_rules! type_of {
    ($kind:ident) => {
        $crate::Type::$kind
    };
    ($kind:ident $c:literal) => {
        $crate::Type::$kind($crate::row::c_text(concat!($c, "\0")))
    };
}

macro_rules! reader {
    ($kind:ident, $read:expr) => {
        |mib| {
            let read: fn(&[usize]) -> _ = $read;
            let answer: Result<$crate::row_macros::answer_type!($kind), $crate::Error> =
                $crate::value::Answer::answer(read(mib));
            answer.map($crate::Value::$kind)
        }
    };
}

macro_rules! writer {
    ($kind:ident, $write:expr) => {
        |mib, value| {
            let write: fn(
                &[usize],
                $crate::row_macros::rust_type!($kind),
            ) -> Result<(), $crate::Error> = $write;
            match value {
                $crate::Value::$kind(value) => write(mib, value),
                _ => Err($crate::Error::Invalid),
            }
        }
    };
}

macro_rules! asker {
    ($input:ident, $kind:ident, $ask:expr) => {
        |mib, value| {
            let ask: fn(&[usize], Option<$crate::row_macros::rust_type!($input)>) -> _ = $ask;
            let input = match value {
                Some($crate::Value::$input(value)) => Some(value),
                Some(_) => return Err($crate::Error::Invalid),
                None => None,
            };
            let answer: Result<$crate::row_macros::answer_type!($kind), $crate::Error> =
                $crate::value::Answer::answer(ask(mib, input));
            answer.map($crate::Value::$kind)
        }
    };
}

/// A row of any access.
macro_rules! row {
    ($name:expr, $kind:ident $(($c:literal))?, $unit:ident, $access:expr, $help:expr) => {
        $crate::row::Spec::new(
            $name,
            $crate::row_macros::type_of!($kind $($c)?),
            $crate::Unit::$unit,
            $access,
            $crate::row::c_text(concat!($help, "\0")),
        )
    };
}

/// A row that is read.
macro_rules! ro {
    ($name:expr, $kind:ident $(($c:literal))?, $unit:ident, $read:expr, $help:expr) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Read($crate::row_macros::reader!($kind, $read)),
            $help
        )
    };
}

/// A row that is read and written.
macro_rules! rw {
    (
        $name:expr, $kind:ident $(($c:literal))?, $unit:ident,
        $read:expr, $write:expr, $help:expr
    ) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::ReadWrite(
                $crate::row_macros::reader!($kind, $read),
                $crate::row_macros::writer!($kind, $write)
            ),
            $help
        )
    };
}

/// A row that is only written.
macro_rules! wo {
    ($name:expr, $kind:ident $(($c:literal))?, $unit:ident, $write:expr, $help:expr) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Write($crate::row_macros::writer!($kind, $write)),
            $help
        )
    };
}

/// A row that is only written, and does an action if no value is given.
macro_rules! wo_or {
    ($name:expr, $kind:ident, $unit:ident, $write:expr, $act:expr, $help:expr) => {
        $crate::row_macros::row!(
            $name,
            $kind,
            $unit,
            $crate::Access::WriteOr($crate::row_macros::writer!($kind, $write), $act),
            $help
        )
    };
}

/// A row that triggers an action.
macro_rules! act {
    ($name:expr, $act:expr, $help:expr) => {
        $crate::row_macros::row!($name, Void, None, $crate::Access::Trigger($act), $help)
    };
}

/// A row that returns an answer about its input.
macro_rules! ask {
    (
        $name:expr, $input:ident $(($i:literal))? => $kind:ident $(($c:literal))?,
        $unit:ident, $ask:expr, $help:expr
    ) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Ask(
                $crate::row_macros::type_of!($input $($i)?),
                $crate::row_macros::asker!($input, $kind, $ask)
            ),
            $help
        )
    };
}

/// A row that makes something and returns what it made.
macro_rules! create {
    (
        $name:expr, Void => $kind:ident $(($c:literal))?,
        $unit:ident, $create:expr, $help:expr
    ) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Create($crate::Type::Void, |mib, _| {
                let create: $crate::row::Reader = $crate::row_macros::reader!($kind, $create);
                create(mib)
            }),
            $help
        )
    };
    (
        $name:expr, $input:ident $(($i:literal))? => $kind:ident $(($c:literal))?,
        $unit:ident, $create:expr, $help:expr
    ) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Create(
                $crate::row_macros::type_of!($input $($i)?),
                $crate::row_macros::asker!($input, $kind, $create)
            ),
            $help
        )
    };
}

/// A row of a pointer that the allocator uses: who writes it vouches for it.
macro_rules! unsafe_rw {
    ($name:expr, Pointer($c:literal), $unit:ident, $read:expr, $write:expr, $help:expr) => {
        $crate::row_macros::row!(
            $name,
            Pointer($c),
            $unit,
            $crate::Access::UnsafeReadWrite($crate::row_macros::reader!(Pointer, $read), $write),
            $help
        )
    };
}

/// A row of an action that ends blocks: who does it vouches that they are not used.
macro_rules! unsafe_act {
    ($name:expr, $act:expr, $help:expr) => {
        $crate::row_macros::row!($name, Void, None, $crate::Access::UnsafeTrigger($act), $help)
    };
}

/// A row of a feature that is not built in, as in jemalloc without it.
macro_rules! absent {
    (
        $name:expr, $kind:ident $(($c:literal))?, $unit:ident, $access:literal, $help:expr
    ) => {
        $crate::row_macros::row!(
            $name,
            $kind $(($c))?,
            $unit,
            $crate::Access::Absent($access),
            $help
        )
    };
}

/// The seven counters under a lock's name. The function returns a `Result` of any struct that has
/// the counters as fields.
macro_rules! mutex_rows {
    ($rows:ident, $lock:literal, $what:literal, $read:expr) => {
        $crate::row_macros::counter_rows! {
            $rows, $lock, $what, $read;
            num_ops: U64 Count "times it was taken",
            num_wait: U64 Count "times that taking it had to block",
            num_spin_acq: U64 Count "times that spinning was enough",
            num_owner_switch: U64 Count "times that the taker changed",
            total_wait_time: U64 Nanoseconds "time blocked, in all",
            max_wait_time: U64 Nanoseconds "longest time blocked",
            max_num_thds: U32 Count "most threads that waited at once",
        }
    };
}

/// A row for each field of the struct that a function returns.
macro_rules! counter_rows {
    (
        $rows:ident, $lock:literal, $what:literal, $read:expr;
        $($field:ident: $kind:ident $unit:ident $help:literal,)*
    ) => {
        #[doc = concat!("The counters of `", $lock, "`.")]
        pub(crate) static $rows: &[$crate::row::Spec] = &[$(
            $crate::row_macros::ro!(
                concat!($lock, ".", stringify!($field)),
                $kind,
                $unit,
                |mib| {
                    let read: fn(&[usize]) -> Result<_, $crate::Error> = $read;
                    read(mib).map(|counters| counters.$field)
                },
                concat!($what, ": ", $help)
            ),
        )*];
    };
}

pub(crate) use {
    absent, act, answer_type, ask, asker, counter_rows, create, mutex_rows, reader, ro, row,
    rust_type, rw, type_of, unsafe_act, unsafe_rw, wo, wo_or, writer,
};
#[cfg(test)]
mod tests {

    use crate::row::Spec;
    use crate::{Error, Type, Value};
    use core::ffi::CStr;
    use std::vec::Vec;

    static TEXTS: &[Spec] = &[
        wo!("t.write", Str, None, |_, text| refuse_empty(text), "takes a text of any length"),
        ask!(
            "t.ask",
            Pointer("void *") => Unsigned,
            None,
            |_, at| at.map(|_| 7).ok_or(Error::Invalid),
            "asks about a pointer"
        ),
        ask!(
            "t.echo",
            Size => Size,
            Bytes,
            |_, size: Option<usize>| size.unwrap_or(1),
            "answers what comes in"
        ),
        create!("t.create", Void => Unsigned, None, |_| 3, "makes a thing each time"),
        create!(
            "t.create_with",
            Pointer("void *") => Unsigned,
            None,
            |_, at| u32::from(at.is_some()),
            "makes a thing of another"
        ),
        absent!("t.absent", Bool, None, c"rw", "what this build does not have"),
        ro!(
            "t.pointer",
            Pointer("uint64_t *"),
            None,
            |mib| mib.as_ptr().cast_mut().cast(),
            "a pointer"
        ),
    ];

    fn refuse_empty(text: &CStr) -> Result<(), Error> {
        if text.is_empty() { Err(Error::Invalid) } else { Ok(()) }
    }

    struct Counters {
        num_ops: u64,
        num_wait: u64,
        num_spin_acq: u64,
        num_owner_switch: u64,
        total_wait_time: u64,
        max_wait_time: u64,
        max_num_thds: u32,
    }

    mutex_rows!(LOCK, "t.lock", "the lock of the test", |mib| Ok(counters(mib)));

    fn counters(mib: &[usize]) -> Counters {
        let n = mib.len() as u64;
        Counters {
            num_ops: n,
            num_wait: n + 1,
            num_spin_acq: n + 2,
            num_owner_switch: n + 3,
            total_wait_time: n + 4,
            max_wait_time: n + 5,
            max_num_thds: n as u32 + 6,
        }
    }

    #[test]
    fn a_lock_has_seven_counters() {
        let read = |row: &Spec| row.access.reader().unwrap()(&[0, 0]);
        assert_eq!(LOCK.len(), 7);
        assert_eq!(LOCK[0].name, "t.lock.num_ops");
        assert_eq!(LOCK[0].help, c"the lock of the test: times it was taken");
        assert_eq!(read(&LOCK[0]), Ok(Value::U64(2)));
        assert_eq!(read(&LOCK[5]), Ok(Value::U64(7)));
        assert_eq!(read(&LOCK[6]), Ok(Value::U32(8)));
    }

    #[test]
    fn each_macro_says_its_access_and_types() {
        let said: Vec<_> =
            TEXTS.iter().map(|row| (row.access.notation(), row.access.input())).collect();
        let pointer = Some(Type::Pointer(c"void *"));
        let expected = [
            (c"-w", None),
            (c"rw", pointer),
            (c"rw", Some(Type::Size)),
            (c"r-", None),
            (c"rw", pointer),
            (c"rw", None),
            (c"r-", None),
        ];
        assert_eq!(said, expected);
        assert_eq!(TEXTS[6].kind.c_name(), c"uint64_t *");
    }
}
