//! What one row of the table is made of: [`Row`], the types its value can have, and the errors of
//! the namespace.
use core::ffi::{CStr, c_int};

/// The C type of a key's value, as the manual of jemalloc(3) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// No value: naming the key triggers an action.
    Void,
    /// `bool`, one byte.
    Bool,
    /// `unsigned`.
    Unsigned,
    /// `uint64_t`.
    U64,
    /// `size_t`.
    Size,
    /// `ssize_t`.
    Ssize,
    /// `const char *`, NUL-terminated and valid until the process ends.
    Str,
}

impl Type {
    /// Bytes that a value of this type takes in the caller's buffer.
    pub const fn size(self) -> usize {
        match self {
            Type::Void => 0,
            Type::Bool => 1,
            Type::Unsigned => 4,
            Type::U64 => 8,
            Type::Size | Type::Ssize | Type::Str => size_of::<usize>(),
        }
    }

    /// How C spells the type.
    pub const fn c_name(self) -> &'static str {
        match self {
            Type::Void => "void",
            Type::Bool => "bool",
            Type::Unsigned => "unsigned",
            Type::U64 => "uint64_t",
            Type::Size => "size_t",
            Type::Ssize => "ssize_t",
            Type::Str => "const char *",
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No unit: a flag, a text, an action.
    None,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// Milliseconds; -1 means never.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
}

/// A value that was read from a key or is to be written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A [`Type::Bool`].
    Bool(bool),
    /// A [`Type::Unsigned`].
    Unsigned(u32),
    /// A [`Type::U64`].
    U64(u64),
    /// A [`Type::Size`].
    Size(usize),
    /// A [`Type::Ssize`].
    Ssize(isize),
    /// A [`Type::Str`].
    Str(&'static CStr),
}

impl Value {
    /// The type of this value.
    pub const fn kind(self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::Unsigned(_) => Type::Unsigned,
            Value::U64(_) => Type::U64,
            Value::Size(_) => Type::Size,
            Value::Ssize(_) => Type::Ssize,
            Value::Str(_) => Type::Str,
        }
    }
}

/// Why a key could not be found, read or written. [`Error::errno`] is what `mallctl` returns for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ENOENT`: no such name, MIB or index.
    NoEntry,
    /// `EPERM`: a write to what can only be read, a read of what can only be written, or arguments
    /// to an action.
    NotPermitted,
    /// `EINVAL`: a buffer of the wrong length.
    Invalid,
    /// `EAGAIN`: the system refuses to start what was asked for.
    Again,
    /// `EFAULT`: the action failed.
    Fault,
}

impl Error {
    /// The error number of `<errno.h>`.
    pub const fn errno(self) -> c_int {
        match self {
            Error::NoEntry => libc::ENOENT,
            Error::NotPermitted => libc::EPERM,
            Error::Invalid => libc::EINVAL,
            Error::Again => libc::EAGAIN,
            Error::Fault => libc::EFAULT,
        }
    }
}

/// Reads a key. The slice is the key's MIB: the index of an `<i>` stands at the place of the
/// component.
pub type Reader = fn(&[usize]) -> Result<Value, Error>;
/// Writes a key. The value has the row's type.
pub type Writer = fn(&[usize], Value) -> Result<(), Error>;
/// Does what a `void` key is for.
pub type Trigger = fn(&[usize]) -> Result<(), Error>;

/// What may be done with a key, and the functions that do it.
#[derive(Clone, Copy)]
pub enum Access {
    /// `r-`
    Read(Reader),
    /// `rw`; one call that does both answers the value from before the write.
    ReadWrite(Reader, Writer),
    /// `rw`; one call that does both answers the value from after the write (`epoch`).
    WriteThenRead(Reader, Writer),
    /// `--`
    Trigger(Trigger),
}

impl Access {
    /// The access as the manual writes it: `rw`, `r-` or `--`.
    pub const fn notation(self) -> &'static str {
        match self {
            Access::Read(_) => "r-",
            Access::ReadWrite(..) | Access::WriteThenRead(..) => "rw",
            Access::Trigger(_) => "--",
        }
    }

    /// The function that reads, if the key has a value.
    pub const fn reader(self) -> Option<Reader> {
        match self {
            Access::Read(read) | Access::ReadWrite(read, _) | Access::WriteThenRead(read, _) => {
                Some(read)
            }
            Access::Trigger(_) => None,
        }
    }

    /// The function that writes, if the key can be written.
    pub const fn writer(self) -> Option<Writer> {
        match self {
            Access::ReadWrite(_, write) | Access::WriteThenRead(_, write) => Some(write),
            Access::Read(_) | Access::Trigger(_) => None,
        }
    }
}

/// One key of the namespace.
pub struct Row {
    /// The dotted name; a component `<i>` stands for any index of [`Row::index`].
    pub name: &'static str,
    /// The type of the value.
    pub kind: Type,
    /// What a number counts.
    pub unit: Unit,
    /// Whether a value of the component `<i>` exists. Not asked when the name has none.
    pub index: fn(usize) -> bool,
    /// What may be done with it.
    pub access: Access,
    /// One line for people.
    pub help: &'static str,
}

impl Row {
    /// The components of the name. (By bytes: the searches of `str` keep code that can panic.)
    pub fn components(&self) -> impl Iterator<Item = &'static [u8]> {
        self.name.as_bytes().split(|&byte| byte == b'.')
    }
}
