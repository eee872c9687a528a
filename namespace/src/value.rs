//! The contents of keys: the C types of the manual, units, and values.
use core::ffi::{CStr, c_void};

/// The C type of a key's value, as the manual of jemalloc(3) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// No value: naming the key triggers an action.
    Void,
    /// `bool`, one byte.
    Bool,
    /// `unsigned`.
    Unsigned,
    /// `uint32_t`.
    U32,
    /// `uint64_t`.
    U64,
    /// `int64_t`.
    I64,
    /// `size_t`.
    Size,
    /// `ssize_t`.
    Ssize,
    /// `const char *`, NUL-terminated. A text that was read is valid until the process ends, unless
    /// the help of the key says otherwise; a text that is written is copied.
    Str,
    /// A pointer; the text is the C spelling of its type.
    Pointer(&'static CStr),
    /// Bytes with a layout of their own, whose C spelling is the text. Any length may be right.
    Layout(&'static CStr),
}

impl Type {
    /// The bytes that a value of this type takes in the caller's buffer; 0 if there is no fixed
    /// size.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Type::Void | Type::Layout(_) => 0,
            Type::Bool => 1,
            Type::Unsigned | Type::U32 => 4,
            Type::U64 | Type::I64 => 8,
            Type::Size | Type::Ssize | Type::Str | Type::Pointer(_) => size_of::<usize>(),
        }
    }

    /// The C spelling of the type.
    #[must_use]
    pub const fn c_name(self) -> &'static CStr {
        match self {
            Type::Void => c"void",
            Type::Bool => c"bool",
            Type::Unsigned => c"unsigned",
            Type::U32 => c"uint32_t",
            Type::U64 => c"uint64_t",
            Type::I64 => c"int64_t",
            Type::Size => c"size_t",
            Type::Ssize => c"ssize_t",
            Type::Str => c"const char *",
            Type::Pointer(name) | Type::Layout(name) => name,
        }
    }

    /// Whether a value is of this type.
    #[must_use]
    pub const fn holds(self, value: Value<'_>) -> bool {
        matches!(
            (self, value),
            (Type::Bool, Value::Bool(_))
                | (Type::Unsigned, Value::Unsigned(_))
                | (Type::U32, Value::U32(_))
                | (Type::U64, Value::U64(_))
                | (Type::I64, Value::I64(_))
                | (Type::Size, Value::Size(_))
                | (Type::Ssize, Value::Ssize(_))
                | (Type::Str, Value::Str(_))
                | (Type::Pointer(_), Value::Pointer(_))
        )
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No unit: a flag, a text, an action, an index.
    None,
    /// Bytes.
    Bytes,
    /// Pages of `arenas.page` bytes.
    Pages,
    /// A number of things.
    Count,
    /// Milliseconds; -1 means never.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// The base-2 logarithm of a number.
    Log2,
}

impl Unit {
    /// The unit's name; `-` for none.
    #[must_use]
    pub const fn name(self) -> &'static CStr {
        match self {
            Unit::None => c"-",
            Unit::Bytes => c"bytes",
            Unit::Pages => c"pages",
            Unit::Count => c"count",
            Unit::Milliseconds => c"ms",
            Unit::Nanoseconds => c"ns",
            Unit::Log2 => c"log2",
        }
    }
}

/// A value that was read from a key or is to be written to it. Each variant belongs to the [`Type`]
/// with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `bool`.
    Bool(bool),
    /// `unsigned`.
    Unsigned(u32),
    /// `uint32_t`.
    U32(u32),
    /// `uint64_t`.
    U64(u64),
    /// `int64_t`.
    I64(i64),
    /// `size_t`.
    Size(usize),
    /// `ssize_t`.
    Ssize(isize),
    /// `const char *`.
    Str(&'a CStr),
    /// Any pointer.
    Pointer(*mut c_void),
}

/// The result of a row's reading function: the value, or a [`Result`] of it.
pub trait Answer<T> {
    /// The value as a result.
    ///
    /// # Errors
    /// The error of the result, if it was one.
    fn answer(self) -> Result<T, crate::Error>;
}

impl<T> Answer<T> for T {
    fn answer(self) -> Result<T, crate::Error> {
        Ok(self)
    }
}

impl<T> Answer<T> for Result<T, crate::Error> {
    fn answer(self) -> Result<T, crate::Error> {
        self
    }
}
