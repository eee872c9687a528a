//! A table by hash that grows with what is in it, for records that are never removed.
//!
//! The upper bits of a hash are the index of a root, and each further bit says on which side of a
//! record the search goes on. So the records that share a root are a tree whose depth grows with
//! the logarithm of their number, and nothing has to be moved when there are many. Readers take no
//! lock; who adds holds one.

use crate::ground::checked::at;
use core::sync::atomic::{AtomicPtr, Ordering};

/// log2 of the roots.
const LG_ROOTS: u32 = 14;

/// The links of a record to those below it, by the next bit of the searched hash.
pub(super) type Below<T> = [AtomicPtr<T>; 2];

/// A record that a [`HashTree`] holds.
pub(super) trait Record: Sized + 'static {
    /// Returns the links to the records below.
    fn below(&self) -> &Below<Self>;
}

/// A table of records by a hash of 64 bits.
pub(super) struct HashTree<T> {
    roots: [AtomicPtr<T>; 1 << LG_ROOTS],
}

/// Returns the links of a record that has none below it.
pub(super) const fn nothing_below<T>() -> Below<T> {
    [const { AtomicPtr::new(core::ptr::null_mut()) }; 2]
}

impl<T: Record> HashTree<T> {
    pub(super) const fn new() -> Self {
        Self { roots: [const { AtomicPtr::new(core::ptr::null_mut()) }; 1 << LG_ROOTS] }
    }

    /// Returns the record of a hash that `is_it` says is the searched one.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&'static T> {
        self.path(hash).find_map(|link| load(link).filter(|record| is_it(record)))
    }

    /// Adds a record under its hash. The caller holds the lock for what is added to this table, and
    /// the record is in no table.
    pub(super) fn add(&self, hash: u64, record: &'static T) {
        if let Some(free) = self.path(hash).find(|link| load(link).is_none()) {
            // Release: pairs with the Acquire in `load`.
            free.store(core::ptr::from_ref(record).cast_mut(), Ordering::Release);
        }
    }

    /// Returns the links that a search for a hash follows. The last one is null.
    fn path(&self, hash: u64) -> impl Iterator<Item = &AtomicPtr<T>> {
        // SAFETY: the upper bits of a hash are an index of the array.
        let root = unsafe { at(&self.roots, (hash >> (64 - LG_ROOTS)) as usize) };
        let mut rest = hash << LG_ROOTS;
        core::iter::successors(Some(root), move |link| {
            let record = load(link)?;
            let [left, right] = record.below();
            let next = if rest >> 63 == 0 { left } else { right };
            rest <<= 1;
            Some(next)
        })
    }
}

fn load<T>(link: &AtomicPtr<T>) -> Option<&'static T> {
    // Acquire: pairs with the Release in `add`.
    let record = link.load(Ordering::Acquire);
    // SAFETY: records are never unmapped.
    unsafe { record.as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    struct Number {
        hash: u64,
        value: u64,
        below: Below<Self>,
    }

    impl Record for Number {
        fn below(&self) -> &Below<Self> {
            &self.below
        }
    }

    fn add(table: &HashTree<Number>, hash: u64, value: u64) {
        table.add(hash, Box::leak(Box::new(Number { hash, value, below: nothing_below() })));
    }

    /// The number of records that a search for a hash looks at.
    fn steps(table: &HashTree<Number>, hash: u64) -> usize {
        table.path(hash).count() - 1
    }

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(hashes in prop::collection::vec(0u64..1 << 20, 1..300)) {
            let table: &HashTree<Number> = Box::leak(Box::new(HashTree::new()));
            let mut map = HashMap::new();
            for (value, low) in hashes.into_iter().enumerate() {
                // Few roots, so that trees grow, and equal hashes.
                let hash = (low & 3) << 62 | (low >> 2) << 36;
                let found = table.find(hash, |record| record.hash == hash);
                assert_eq!(found.map(|record| record.value), map.get(&hash).copied());
                if found.is_none() {
                    add(table, hash, value as u64);
                    map.insert(hash, value as u64);
                }
            }
            for (hash, value) in map {
                let found = table.find(hash, |record| record.hash == hash).expect("it was added");
                assert_eq!(found.value, value);
            }
        }
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_record_also_when_no_bit_is_left() {
        let table: &HashTree<Number> = Box::leak(Box::new(HashTree::new()));
        (0..200).for_each(|value| add(table, u64::MAX, value));
        for value in 0..200 {
            let found = table.find(u64::MAX, |record| record.value == value).expect("it was added");
            assert_eq!(found.value, value);
        }
        assert!(table.find(u64::MAX, |record| record.value == 200).is_none());
    }

    #[test]
    fn a_search_among_many_looks_at_few() {
        let table: &HashTree<Number> = Box::leak(Box::new(HashTree::new()));
        let hash = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..1 << 17).for_each(|number| add(table, hash(number), number));
        let total: usize = (0..1 << 17).map(|number| steps(table, hash(number))).sum();
        // Lists from the same roots would be walked half: 8 records each would make 4 on average.
        assert!(total < 5 << 17, "{total}");
        let most = (0..1 << 17).map(|number| steps(table, hash(number))).max();
        assert!(most < Some(16), "{most:?}");
    }
}
