//! Where a slab is in the lists of its guard.

use core::cell::Cell;

/// Which of its guard's lists a slab is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ListName {
    /// In no list: full and guarded by a bin, or a free record.
    None,
    /// The slab has free blocks.
    Partial,
    /// The slab has no free block. Only caches keep this list, so that they know what they own.
    Full,
}

/// The place of a record in a list. Guarded by the same lock as the slab's free bits.
pub(in crate::middle) struct Links<T: 'static> {
    pub(in crate::middle) next: Cell<Option<&'static T>>,
    pub(in crate::middle) previous: Cell<Option<&'static T>>,
    pub(in crate::middle) list: Cell<ListName>,
    /// The slab is kept in its list although all its blocks are free.
    pub(in crate::middle) spare: Cell<bool>,
}

impl<T> Links<T> {
    /// A place in no list.
    pub(in crate::middle) const fn new() -> Links<T> {
        Links {
            next: Cell::new(None),
            previous: Cell::new(None),
            list: Cell::new(ListName::None),
            spare: Cell::new(false),
        }
    }

    /// Notes that the record is in no list.
    pub(in crate::middle) fn reset(&self) {
        self.list.set(ListName::None);
        self.spare.set(false);
    }
}
