//! The Rust types that stand for C types.
use core::ffi::{CStr, c_void};
use lumalloc_namespace::value::{Type, Value};
use std::ffi::CString;

/// The Rust type of a key's value.
pub trait Typed {
    /// The type of a value that is read.
    type Out;
    /// The type of a value that is written.
    type In<'a>;
    /// Makes the Rust value from the row's value.
    fn from_value(value: Value<'static>) -> Option<Self::Out>;
    /// Hands the value to `take` as the row needs it.
    ///
    /// # Errors
    /// A description of the value, when C cannot hold it.
    fn with_value<R>(
        value: Self::In<'_>,
        kind: Type,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Result<R, String>;
}

macro_rules! numbers {
    ($($rust:ty: $($variant:ident)|+;)*) => {$(
        impl Typed for $rust {
            type Out = $rust;
            type In<'a> = $rust;

            fn from_value(value: Value<'static>) -> Option<$rust> {
                match value {
                    $(Value::$variant(value) => Some(value),)+
                    _ => None,
                }
            }

            fn with_value<R>(
                value: $rust,
                kind: Type,
                take: impl FnOnce(Value<'_>) -> R,
            ) -> Result<R, String> {
                Ok(take(match kind {
                    $(Type::$variant => Value::$variant(value),)+
                    _ => Value::Str(c""),
                }))
            }
        }
    )*};
}

numbers! {
    bool: Bool;
    u32: Unsigned | U32;
    u64: U64;
    i64: I64;
    usize: Size;
    isize: Ssize;
}

/// `const char *`: read as a static text, written from any `&str`.
pub struct Text;

impl Typed for Text {
    type Out = &'static CStr;
    type In<'a> = &'a str;

    fn from_value(value: Value<'static>) -> Option<&'static CStr> {
        match value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    fn with_value<R>(value: &str, _: Type, take: impl FnOnce(Value<'_>) -> R) -> Result<R, String> {
        let text = CString::new(value).map_err(|_| "a text with a NUL in it")?;
        Ok(take(Value::Str(&text)))
    }
}

/// No value: the input of a key that takes none.
impl Typed for () {
    type Out = ();
    type In<'a> = ();

    fn from_value(_: Value<'static>) -> Option<()> {
        None
    }

    fn with_value<R>((): (), _: Type, _: impl FnOnce(Value<'_>) -> R) -> Result<R, String> {
        Err("a value".into())
    }
}

/// A pointer.
impl Typed for *mut c_void {
    type Out = *mut c_void;
    type In<'a> = *mut c_void;

    fn from_value(value: Value<'static>) -> Option<*mut c_void> {
        match value {
            Value::Pointer(pointer) => Some(pointer),
            _ => None,
        }
    }

    fn with_value<R>(
        value: *mut c_void,
        _: Type,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Result<R, String> {
        Ok(take(Value::Pointer(value)))
    }
}
