//! Records that are written part by part where they lie.
//!
//! A record that is built as a value and then moved passes over the stack. A page of the stack that
//! was touched once stays in memory, so a large record would cost its thread that many bytes for
//! good.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// The place of a record that is not there yet.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// Makes memory the place of a record.
    ///
    /// # Safety
    /// The memory must be valid for writes of the record, and no one else may use it meanwhile.
    pub(crate) unsafe fn new(memory: NonNull<T>) -> Place<T> {
        Place(memory)
    }

    /// Writes the record.
    pub(crate) fn write(self, record: T) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.write(record) };
    }

    /// Returns the address, and lets the compiler check a pattern with the fields of the record.
    pub(crate) fn address(self, _pattern: fn(&T)) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T, const N: usize> Place<[T; N]> {
    /// Writes each element of an array.
    pub(crate) fn write_each(self, new: impl Fn() -> T) {
        for n in 0..N {
            // SAFETY: the promise of `new`; an element of the array.
            unsafe { self.0.as_ptr().cast::<T>().wrapping_add(n).write(new()) };
        }
    }
}

impl<T> Place<UnsafeCell<T>> {
    /// Returns the place of what is in the cell.
    pub(crate) fn inside(self) -> Place<T> {
        // A cell has the layout of what is in it.
        Place(self.0.cast())
    }
}

/// Writes each field of a record. `field: value` writes a value, and `field => write` calls `write`
/// with the field's place. A field that is left out stops the compiler.
macro_rules! write_fields {
    ($place:expr => $record:ident {
        $($field:ident $(: $value:expr)? $(=> $write:expr)?),* $(,)?
    }) => {{
        use $crate::ground::in_place::Place;
        let record = Place::address($place, |$record { $($field: _),* }| ());
        $(
            // SAFETY: the place was that of a whole record, so its fields lie there.
            #[allow(unsafe_code)]
            let field = unsafe { core::ptr::NonNull::new_unchecked(&raw mut (*record).$field) };
            // SAFETY: the record's place is used up, and each field gets one place.
            #[allow(unsafe_code)]
            let field = unsafe { Place::new(field) };
            $(Place::write(field, $value);)?
            $(($write)(field);)?
        )*
    }};
}
pub(crate) use write_fields;

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;

    #[test]
    fn each_field_is_written_to_its_place() {
        #[derive(Debug, PartialEq)]
        struct Record<T> {
            small: u8,
            large: [T; 3],
            other: T,
        }
        let mut memory = MaybeUninit::<Record<u64>>::uninit();
        // SAFETY: memory of a record.
        let place = unsafe { Place::<Record<u64>>::new(NonNull::from(&mut memory).cast()) };
        write_fields!(place => Record {
            small: 1,
            large => |place: Place<_>| place.write_each(|| 2),
            other => |place: Place<_>| place.write(5),
        });
        // SAFETY: all fields were just written.
        let record = unsafe { memory.assume_init() };
        assert_eq!(record, Record { small: 1, large: [2; 3], other: 5 });
    }
}
