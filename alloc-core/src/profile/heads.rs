//! The first records of the lists of a hash table, which grows under its owner's lock. Whether a
//! list is empty can be seen without the lock.

use crate::back::metadata;
use core::sync::atomic::{AtomicPtr, Ordering};

/// log2 of the lists of a new table.
const LG_FIRST: u32 = 4;
/// log2 of how many times more lists there are after the table has grown.
const LG_GROWTH: u32 = 2;
/// The low bits of an array's address, which hold log2 of its length.
const LG_BITS: usize = 63;

/// The first record of a list. Null: the list is empty.
pub(super) type Head<T> = AtomicPtr<T>;

/// The heads of all lists of a table.
#[repr(C)]
pub(super) struct Heads<T: 'static> {
    first: [Head<T>; 1 << LG_FIRST],
    /// The heads in use, with log2 of their number. Null: those above.
    more: AtomicPtr<Head<T>>,
}

impl<T> Heads<T> {
    /// Creates the heads of empty lists.
    pub(super) const fn new() -> Heads<T> {
        Heads {
            first: [const { AtomicPtr::new(core::ptr::null_mut()) }; 1 << LG_FIRST],
            more: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Returns the heads of all lists.
    ///
    /// Without the lock they may be those of before the table grew, which keep what they held then.
    /// A thread that has synchronised with the one that added a record finds the record's list not
    /// empty in either.
    pub(super) fn all(&self) -> &[Head<T>] {
        // Acquire: pairs with the Release in `grow`.
        let more = self.more.load(Ordering::Acquire);
        if more.is_null() {
            return &self.first;
        }
        let heads = more.map_addr(|address| address & !LG_BITS);
        // SAFETY: `grow` stored an array of that length, which is never unmapped.
        unsafe { core::slice::from_raw_parts(heads, 1 << (more.addr() & LG_BITS)) }
    }

    /// Returns the head of the list of a hash, whose upper bits choose it.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> &Head<T> {
        of(self.all(), hash)
    }

    /// Makes more lists. `records` moves the records: it is called with each old list's first one,
    /// and calls the function that it is given with each record and its hash, to get the head
    /// that the record becomes the first one of. Without memory nothing changes. Called under the
    /// lock.
    pub(super) fn grow(&self, mut records: impl FnMut(*mut T, &dyn Fn(u64) -> &'static Head<T>)) {
        let old = self.all();
        let lg = old.len().ilog2() + LG_GROWTH;
        let bytes = size_of::<Head<T>>() << lg;
        let Some(memory) = metadata::allocate(bytes, LG_BITS + 1) else { return };
        let heads = memory.cast::<Head<T>>().as_ptr();
        // SAFETY: fresh memory, zeroed, which are null pointers. It is never unmapped.
        let new: &'static [Head<T>] = unsafe { core::slice::from_raw_parts(heads, 1 << lg) };
        // The old heads stay as they are, for those who look without the lock.
        for head in old {
            records(head.load(Ordering::Relaxed), &|hash| of(new, hash));
        }
        let tagged = heads.map_addr(|address| address | lg as usize);
        // Release: pairs with the Acquire in `all`.
        self.more.store(tagged, Ordering::Release);
    }
}

/// Returns how often a table had grown when it had these heads.
#[inline]
pub(super) fn generation<T>(heads: &[Head<T>]) -> u32 {
    (heads.len().ilog2() - LG_FIRST) / LG_GROWTH
}

/// Returns the head of the list of a hash among those that [`Heads::all`] has returned.
#[inline]
pub(super) fn of<T>(heads: &[Head<T>], hash: u64) -> &Head<T> {
    let index = hash >> (u64::BITS - heads.len().ilog2());
    // SAFETY: the length is a power of two above 1, and the index has as many bits.
    unsafe { heads.get_unchecked(index as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_after_the_table_has_grown_and_old_ones_stay() {
        let heads: &Heads<u64> = std::boxed::Box::leak(std::boxed::Box::new(Heads::new()));
        let records: std::vec::Vec<u64> = (0..16).map(|n| n << 60 | n << 56).collect();
        let pointer = |record: &u64| core::ptr::from_ref(record).cast_mut();
        for record in &records {
            heads.of(*record).store(pointer(record), Ordering::Relaxed);
        }
        let old = heads.all();
        for lists in [64, 256] {
            heads.grow(|first, place| {
                // SAFETY: one of the records above, or null.
                let record = unsafe { first.as_ref() };
                record
                    .into_iter()
                    .for_each(|record| place(*record).store(first, Ordering::Relaxed));
            });
            assert_eq!(heads.all().len(), lists);
            for record in &records {
                assert_eq!(heads.of(*record).load(Ordering::Relaxed), pointer(record));
            }
            let used = heads.all().iter().filter(|head| !head.load(Ordering::Relaxed).is_null());
            assert_eq!(used.count(), records.len());
        }
        assert!(old.iter().all(|head| !head.load(Ordering::Relaxed).is_null()));
    }
}
