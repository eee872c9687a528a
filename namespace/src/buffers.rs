//! The untyped buffers of `mallctl`, and jemalloc's rules for their lengths.
use crate::error::Error;
use crate::value::{Type, Value};
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::slice;

/// The four buffer arguments of `mallctl`.
#[derive(Clone, Copy)]
pub struct Buffers {
    /// Where to store the value, or NULL.
    pub oldp: *mut c_void,
    /// The length of the buffer at `oldp`, or NULL.
    pub oldlenp: *mut usize,
    /// The value to write, or NULL.
    pub newp: *const c_void,
    /// The length of the value at `newp`, or 0.
    pub newlen: usize,
}

impl Buffers {
    /// Whether the caller gave anything to read into.
    #[must_use]
    pub fn reads(self) -> bool {
        !self.oldp.is_null() || !self.oldlenp.is_null()
    }

    /// Whether the caller gave anything to write.
    #[must_use]
    pub fn writes(self) -> bool {
        !self.newp.is_null() || self.newlen != 0
    }

    /// Whether the caller gave no value of a type, or a text that is NULL. As in jemalloc, `newlen`
    /// counts only with `newp`.
    ///
    /// # Safety
    /// `newp` must be readable for `newlen` bytes when non-null.
    #[must_use]
    pub(crate) unsafe fn lacks_value(self, kind: Type) -> bool {
        if self.newp.is_null() {
            return true;
        }
        // SAFETY: newp is non-null and has the length of a pointer.
        kind == Type::Str
            && self.newlen == kind.size()
            && unsafe { ptr::read_unaligned(self.newp.cast::<usize>()) } == 0
    }

    /// Whether there is a place for an answer.
    #[must_use]
    pub fn has_place(self) -> bool {
        !self.oldp.is_null() && !self.oldlenp.is_null()
    }

    /// The length of the place for an answer, or 0 if there is none.
    ///
    /// # Safety
    /// `oldlenp` must be NULL or valid.
    #[must_use]
    pub unsafe fn room(self) -> usize {
        if !self.has_place() {
            return 0;
        }
        // SAFETY: oldlenp is non-null, and the caller vouches for it.
        unsafe { ptr::read_unaligned(self.oldlenp) }
    }

    /// Stores the length of the answer in `*oldlenp`.
    ///
    /// # Safety
    /// `oldlenp` must be NULL or valid.
    pub unsafe fn set_length(self, length: usize) {
        if !self.oldlenp.is_null() {
            // SAFETY: oldlenp is non-null, and the caller vouches for it.
            unsafe { ptr::write_unaligned(self.oldlenp, length) };
        }
    }

    /// Stores a value of a type as the answer, as far as it fits.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the place has another length; `*oldlenp` is then the number of bytes
    /// copied.
    ///
    /// # Safety
    /// `oldp` must be writable for `*oldlenp` bytes when both are non-null.
    pub unsafe fn answer(self, kind: Type, value: Value<'_>) -> Result<(), Error> {
        if !self.has_place() {
            return Ok(());
        }
        let bytes = encode(value);
        let size = kind.size();
        // SAFETY: the caller upholds the contract.
        let room = unsafe { self.room() };
        let length = size.min(room);
        // SAFETY: `bytes` holds 8 bytes and no value is longer; the caller's buffer holds `room`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.oldp.cast::<u8>(), length) };
        if room == size {
            return Ok(());
        }
        // SAFETY: the caller upholds the contract.
        unsafe { self.set_length(length) };
        Err(Error::Invalid)
    }

    /// Copies a text to the place that the pointer at `oldp` leads to, if there is one. `text` is
    /// as long as that place, with NULs at its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `oldp` is not as long as a pointer, or the pointer is NULL.
    ///
    /// # Safety
    /// `oldp` must be writable for `*oldlenp` bytes when both are non-null, and the place writable
    /// for the length of the text.
    pub(crate) unsafe fn copy_text(self, text: &[u8]) -> Result<(), Error> {
        if !self.has_place() {
            return Ok(());
        }
        // SAFETY: the caller upholds the contract.
        if unsafe { self.room() } != size_of::<*mut c_char>() {
            return Err(Error::Invalid);
        }
        // SAFETY: there is a place, and it is as long as a pointer.
        let place = unsafe { ptr::read_unaligned(self.oldp.cast::<*mut u8>()) };
        if place.is_null() {
            return Err(Error::Invalid);
        }
        // SAFETY: the caller vouches for so many bytes.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), place, text.len()) };
        Ok(())
    }

    /// Returns the pointer that is stored at `newp`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is none.
    ///
    /// # Safety
    /// `newp` must be readable for `newlen` bytes when non-null.
    pub(crate) unsafe fn given_pointer(self) -> Result<*mut c_void, Error> {
        if self.newp.is_null() || self.newlen != size_of::<*mut c_void>() {
            return Err(Error::Invalid);
        }
        // SAFETY: newp is as long as a pointer.
        Ok(unsafe { ptr::read_unaligned(self.newp.cast::<*mut c_void>()) })
    }

    /// Returns the text that the pointer at `newp` leads to.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is none.
    ///
    /// # Safety
    /// As [`Buffers::given_pointer`]; the text must be NUL-terminated, and outlive the result.
    pub(crate) unsafe fn given_text<'a>(self) -> Result<&'a CStr, Error> {
        // SAFETY: the caller upholds the contract.
        let text = unsafe { self.given_pointer() }?.cast::<c_char>();
        // SAFETY: the caller vouches for the text; it is not null.
        if text.is_null() { Err(Error::Invalid) } else { Ok(unsafe { CStr::from_ptr(text) }) }
    }

    /// Checks that there is a place for the answer, and that it has the length of the type.
    ///
    /// # Errors
    /// [`Error::Invalid`] otherwise; `*oldlenp` is 0 then.
    ///
    /// # Safety
    /// `oldlenp` must be NULL or valid.
    pub unsafe fn require_place(self, kind: Type) -> Result<(), Error> {
        // SAFETY: the caller upholds the contract.
        if self.has_place() && unsafe { self.room() } == kind.size() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.set_length(0) };
        Err(Error::Invalid)
    }

    /// Hands the value at `newp`, if there is one, to `take`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `newlen` is not the size of the type, and for a text that is NULL;
    /// otherwise what `take` returns.
    ///
    /// # Safety
    /// `newp` must be readable for `newlen` bytes when non-null, and a text in it NUL-terminated.
    pub unsafe fn given<T>(
        self,
        kind: Type,
        take: impl FnOnce(Option<Value<'_>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.newp.is_null() {
            return take(None);
        }
        if self.newlen != kind.size() {
            return Err(Error::Invalid);
        }
        // SAFETY: newp is non-null and has the type's length; the text lives as long as the call.
        let value = unsafe { decode(kind, self.newp.cast()) }?;
        take(Some(value))
    }

    /// The value at `newp`, as bytes.
    ///
    /// # Safety
    /// `newp` must be readable for `newlen` bytes when non-null, as long as the slice lives.
    pub(crate) unsafe fn input<'a>(self) -> &'a [u8] {
        if self.newp.is_null() {
            return &[];
        }
        // SAFETY: newp is non-null, and the caller vouches for its length.
        unsafe { slice::from_raw_parts(self.newp.cast(), self.newlen) }
    }
}

/// The place for an answer of any length.
pub struct Output {
    place: *mut u8,
    room: usize,
}

impl Output {
    /// The place at `oldp`.
    ///
    /// # Safety
    /// `oldp` must be writable for `*oldlenp` bytes when both are non-null, as long as the
    /// [`Output`] lives.
    pub(crate) unsafe fn of(buffers: Buffers) -> Self {
        // SAFETY: the caller upholds the contract.
        Output { place: buffers.oldp.cast(), room: unsafe { buffers.room() } }
    }

    /// The length of the place in bytes; 0 also when there is no place.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Stores bytes at an offset.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the bytes do not fit; nothing is stored then.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let end = offset.checked_add(bytes.len()).ok_or(Error::Invalid)?;
        if end > self.room {
            return Err(Error::Invalid);
        }
        let to = self.place.wrapping_add(offset);
        // SAFETY: the caller of `of` vouches for `room` bytes, and `bytes` ends within them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}

/// A value as C lays it out; only the first [`Type::size`] bytes matter.
fn encode(value: Value<'_>) -> [u8; 8] {
    let mut bytes = [0; 8];
    let mut put = |from: &[u8]| bytes.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    match value {
        Value::Bool(value) => put(&[u8::from(value)]),
        Value::Unsigned(value) | Value::U32(value) => put(&value.to_ne_bytes()),
        Value::U64(value) => put(&value.to_ne_bytes()),
        Value::I64(value) => put(&value.to_ne_bytes()),
        Value::Size(value) => put(&value.to_ne_bytes()),
        Value::Ssize(value) => put(&value.to_ne_bytes()),
        Value::Str(value) => put(&value.as_ptr().expose_provenance().to_ne_bytes()),
        Value::Pointer(value) => put(&value.expose_provenance().to_ne_bytes()),
    }
    bytes
}

/// Reads the value that C laid out at `newp`.
///
/// # Safety
/// `newp` must be readable for the size of the type, and a text in it NUL-terminated and valid as
/// long as the value lives.
unsafe fn decode<'a>(kind: Type, newp: *const u8) -> Result<Value<'a>, Error> {
    let mut bytes = [0u8; 8];
    // SAFETY: the caller vouches for newp; no type is longer than 8 bytes.
    unsafe { ptr::copy_nonoverlapping(newp, bytes.as_mut_ptr(), kind.size()) };
    let [a, b, c, d, ..] = bytes;
    let word = usize::from_ne_bytes(bytes);
    match kind {
        Type::Bool => Ok(Value::Bool(a != 0)),
        Type::Unsigned => Ok(Value::Unsigned(u32::from_ne_bytes([a, b, c, d]))),
        Type::U32 => Ok(Value::U32(u32::from_ne_bytes([a, b, c, d]))),
        Type::U64 => Ok(Value::U64(u64::from_ne_bytes(bytes))),
        Type::I64 => Ok(Value::I64(i64::from_ne_bytes(bytes))),
        Type::Size => Ok(Value::Size(word)),
        Type::Ssize => Ok(Value::Ssize(isize::from_ne_bytes(bytes))),
        Type::Pointer(_) => Ok(Value::Pointer(ptr::with_exposed_provenance_mut(word))),
        Type::Str if word == 0 => Err(Error::Invalid),
        // SAFETY: the caller vouches for the text; it is not null.
        Type::Str => Ok(Value::Str(unsafe { CStr::from_ptr(text(word)) })),
        Type::Void | Type::Layout(_) => Err(Error::NotPermitted),
    }
}

fn text(word: usize) -> *const c_char {
    ptr::with_exposed_provenance(word)
}
