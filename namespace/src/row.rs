//! The parts of one row of the table. Rows are written with the macros of `row_macros`.
use crate::buffers::{Buffers, Output};
use crate::error::Error;
use crate::value::{Type, Unit, Value};
use core::ffi::{CStr, c_void};

/// Reads a key. The slice is the key's MIB: the index for an `<i>` stands at the place of that
/// component.
pub type Reader = fn(&[usize]) -> Result<Value<'static>, Error>;
/// Writes a key. The value has the row's type.
pub type Writer = fn(&[usize], Value<'_>) -> Result<(), Error>;
/// Does the action of a `void` key.
pub type Trigger = fn(&[usize]) -> Result<(), Error>;
/// Answers a question. The input, if there is one, has the type that [`Access`] names.
pub type Asker = fn(&[usize], Option<Value<'_>>) -> Result<Value<'static>, Error>;
/// Takes and returns bytes of any length. Missing buffers are empty.
pub type Exchanger = fn(&[usize], &[u8], &mut Output) -> Result<(), Error>;
/// Does everything itself: it gets the buffers of `mallctl` as they are.
pub type Handler = unsafe fn(&[usize], Buffers) -> Result<(), Error>;
/// Writes a pointer that the allocator uses later. The caller vouches for what lies there.
pub type UnsafeWriter = unsafe fn(&[usize], *mut c_void) -> Result<(), Error>;
/// Ends blocks. The caller vouches that nobody uses them any more.
pub type UnsafeTrigger = unsafe fn(&[usize]) -> Result<(), Error>;
/// Makes something with a pointer that the allocator uses later, NULL for none. The caller vouches
/// for what lies there.
pub type UnsafeMaker = unsafe fn(&[usize], *mut c_void) -> Result<Value<'static>, Error>;

/// What may be done with a key, and the functions that do it.
#[derive(Clone, Copy)]
pub enum Access {
    /// `r-`
    Read(Reader),
    /// `rw`; a call that does both returns the value from before the write.
    ReadWrite(Reader, Writer),
    /// As [`Access::ReadWrite`], but a call that does both is refused.
    ReadOrWrite(Reader, Writer),
    /// `rw`; a call that does both returns the value from after the write (`epoch`).
    WriteThenRead(Reader, Writer),
    /// `-w`; a value must be given.
    Write(Writer),
    /// `-w`; without a value, or with a text that is NULL, the action is done.
    WriteOr(Writer, Trigger),
    /// `--`
    Trigger(Trigger),
    /// `rw`: takes an input at `newp` and returns an answer about it.
    Ask(Type, Asker),
    /// As [`Access::Ask`], for actions whose result must not be lost: unless the answer has a place
    /// of the right length, nothing happens. `r-` when the input is [`Type::Void`].
    Create(Type, Asker),
    /// `rw`: bytes of any length, in and out.
    Exchange(Exchanger),
    /// A key with rules of its own; the text is its access as the manual writes it.
    Raw(&'static CStr, Handler),
    /// `rw`, of a pointer that the allocator uses: who writes it vouches for it.
    UnsafeReadWrite(Reader, UnsafeWriter),
    /// `--`, of an action that ends blocks: who does it vouches that they are not used.
    UnsafeTrigger(UnsafeTrigger),
    /// As [`Access::Create`] of a pointer that the allocator uses: who gives one vouches for it.
    UnsafeCreate(Type, UnsafeMaker),
    /// The name exists and nothing can be done with it, as in jemalloc for a feature that was not
    /// built in. The text is the access that the key would have.
    Absent(&'static CStr),
}

impl Access {
    /// The access as the manual writes it: `rw`, `r-`, `-w` or `--`.
    #[must_use]
    pub const fn notation(self) -> &'static CStr {
        match self {
            Access::Read(_) | Access::Create(Type::Void, _) => c"r-",
            Access::ReadWrite(..)
            | Access::ReadOrWrite(..)
            | Access::WriteThenRead(..)
            | Access::Ask(..)
            | Access::Create(..)
            | Access::Exchange(_)
            | Access::UnsafeReadWrite(..)
            | Access::UnsafeCreate(..) => c"rw",
            Access::Write(_) | Access::WriteOr(..) => c"-w",
            Access::Trigger(_) | Access::UnsafeTrigger(_) => c"--",
            Access::Raw(notation, _) | Access::Absent(notation) => notation,
        }
    }

    /// The function that reads, if the key has a value that needs no input and reading makes
    /// nothing.
    #[must_use]
    pub const fn reader(self) -> Option<Reader> {
        match self {
            Access::Read(read)
            | Access::ReadWrite(read, _)
            | Access::ReadOrWrite(read, _)
            | Access::WriteThenRead(read, _)
            | Access::UnsafeReadWrite(read, _) => Some(read),
            _ => None,
        }
    }

    /// The function that writes, if the key can be written, whatever the value is.
    #[must_use]
    pub const fn writer(self) -> Option<Writer> {
        match self {
            Access::ReadWrite(_, write)
            | Access::ReadOrWrite(_, write)
            | Access::WriteThenRead(_, write)
            | Access::Write(write)
            | Access::WriteOr(write, _) => Some(write),
            _ => None,
        }
    }

    /// The type of the input, if reading the key takes one.
    #[must_use]
    pub const fn input(self) -> Option<Type> {
        match self {
            Access::Ask(input, _) | Access::Create(input, _) | Access::UnsafeCreate(input, _) => {
                match input {
                    Type::Void => None,
                    input => Some(input),
                }
            }
            _ => None,
        }
    }
}

/// What a program may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Stays as it is.
    Stable,
    /// May change or be removed in a minor version.
    Unstable,
    /// Kept for old programs.
    Deprecated,
}

impl Stability {
    /// The stability in one word.
    #[must_use]
    pub const fn name(self) -> &'static CStr {
        match self {
            Stability::Stable => c"stable",
            Stability::Unstable => c"unstable",
            Stability::Deprecated => c"deprecated",
        }
    }
}

/// What the file of a branch says about a key. It exists while the library is compiled:
/// [`Row`](crate::key_table::Row) is what a program has.
pub struct Spec {
    /// The dotted name. A component in `<…>` stands for any index that its rule among
    /// [`INDICES`](crate::rows::INDICES) allows.
    pub name: &'static str,
    /// The type of the value.
    pub kind: Type,
    /// What a number counts.
    pub unit: Unit,
    /// What may be done with the key.
    pub access: Access,
    /// What a program may rely on.
    pub stability: Stability,
    /// A description in one line.
    pub help: &'static CStr,
}

impl Spec {
    /// Makes a stable row.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: Type,
        unit: Unit,
        access: Access,
        help: &'static CStr,
    ) -> Spec {
        Spec { name, kind, unit, access, stability: Stability::Stable, help }
    }

    /// Makes the row unstable.
    #[must_use]
    pub const fn unstable(self) -> Spec {
        Spec { stability: Stability::Unstable, ..self }
    }

    /// Makes the row deprecated.
    #[must_use]
    pub const fn deprecated(self) -> Spec {
        Spec { stability: Stability::Deprecated, ..self }
    }
}

/// Tells which indices may stand for a component in `<…>`.
pub struct Index {
    /// The components up to and including this one.
    pub path: &'static str,
    /// Whether the index at the end of this MIB exists. The MIB is as long as the path.
    pub valid: fn(&[usize]) -> bool,
}

/// The component at one place of a MIB. The index rule of the component has checked it before.
///
/// # Errors
/// [`Error::NoEntry`] for a MIB that is too short.
pub fn index_at(mib: &[usize], place: usize) -> Result<usize, Error> {
    mib.get(place).copied().ok_or(Error::NoEntry)
}

/// Makes a C text of a literal that ends with NUL.
#[must_use]
pub const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}
