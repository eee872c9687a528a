//! A table by hash that grows with what is in it, for records that are never removed. Readers take
//! no lock; who adds holds one.
//!
//! A record has two links, of which tables of neighbouring sizes use one each. So a reader that
//! found the lists of before the table grew can go on in them. If it is so slow that the table
//! grows twice meanwhile, it may come into other lists and miss the record. Who finds nothing
//! searches again under the lock, before it adds.

use super::heads::{self, Head, Heads};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The table grows when it has more records than this for each list.
const MOST_IN_A_LIST: usize = 2;

/// The links of a record to the next ones of its lists.
pub(super) type Links<T> = [AtomicPtr<T>; 2];

/// A record that a [`HashTable`] holds.
pub(super) trait Record: Sized + 'static {
    /// Returns the hash, which stays the same.
    fn hash(&self) -> u64;
    /// Returns the links, which are the table's.
    fn links(&self) -> &Links<Self>;
}

/// A table of records by a hash of 64 bits.
pub(super) struct HashTable<T: 'static> {
    heads: Heads<T>,
    /// The number of records. Changed under the lock.
    count: AtomicUsize,
}

/// Returns the links of a record that is in no table.
pub(super) const fn no_links<T>() -> Links<T> {
    [const { AtomicPtr::new(core::ptr::null_mut()) }; 2]
}

impl<T: Record> HashTable<T> {
    pub(super) const fn new() -> Self {
        Self { heads: Heads::new(), count: AtomicUsize::new(0) }
    }

    /// Returns the record of a hash that `is_it` says is the searched one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&'static T> {
        let lists = self.heads.all();
        let is_odd = is_odd(lists);
        let first = load(heads::of(lists, hash));
        core::iter::successors(first, |record| load(link(*record, is_odd)))
            .find(|record| is_it(record))
    }

    /// Adds a record. The caller holds the lock for what is added to this table.
    pub(super) fn add(&self, record: &'static T) {
        let count = self.count.load(Ordering::Relaxed);
        if count >= MOST_IN_A_LIST * self.heads.all().len() {
            self.grow();
        }
        self.count.store(count + 1, Ordering::Relaxed);
        let lists = self.heads.all();
        push(heads::of(lists, record.hash()), record, is_odd(lists));
    }

    /// Makes more lists, if there is memory for them.
    fn grow(&self) {
        let was_odd = is_odd(self.heads.all());
        self.heads.grow(|first, head_of| {
            // SAFETY: records are never unmapped.
            let mut next = unsafe { first.as_ref() };
            while let Some(record) = next {
                next = load(link(record, was_odd));
                push(head_of(record.hash()), record, !was_odd);
            }
        });
    }
}

/// Whether an array of lists uses the second link of each record.
#[inline]
fn is_odd<T>(lists: &[Head<T>]) -> bool {
    heads::generation(lists) & 1 == 1
}

/// Returns the link of a record for its list.
#[inline]
fn link<T: Record>(record: &T, is_odd: bool) -> &AtomicPtr<T> {
    let [even, odd] = record.links();
    if is_odd { odd } else { even }
}

/// Puts a record before the first one of a list. Called under the lock.
fn push<T: Record>(head: &Head<T>, record: &'static T, is_odd: bool) {
    link(record, is_odd).store(head.load(Ordering::Relaxed), Ordering::Relaxed);
    // Release: pairs with the Acquire in `load`.
    head.store(core::ptr::from_ref(record).cast_mut(), Ordering::Release);
}

#[inline]
fn load<T>(link: &AtomicPtr<T>) -> Option<&'static T> {
    // Acquire: pairs with the Release in `push`.
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
        links: Links<Self>,
    }

    impl Record for Number {
        fn hash(&self) -> u64 {
            self.hash
        }

        fn links(&self) -> &Links<Self> {
            &self.links
        }
    }

    fn table() -> &'static HashTable<Number> {
        Box::leak(Box::new(HashTable::new()))
    }

    fn add(table: &HashTable<Number>, hash: u64, value: u64) {
        table.add(Box::leak(Box::new(Number { hash, value, links: no_links() })));
    }

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(hashes in prop::collection::vec(0u64..1 << 20, 1..3000)) {
            let (table, mut map) = (table(), HashMap::new());
            for (value, low) in hashes.into_iter().enumerate() {
                // Many in the first lists, and equal hashes.
                let hash = (low & 3) << 62 | (low >> 2) << 40;
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
    fn equal_hashes_are_told_apart_by_the_record() {
        let table = table();
        (0..200).for_each(|value| add(table, u64::MAX, value));
        for value in 0..200 {
            let found = table.find(u64::MAX, |record| record.value == value).expect("it was added");
            assert_eq!(found.value, value);
        }
        assert!(table.find(u64::MAX, |record| record.value == 200).is_none());
    }

    #[test]
    fn there_are_half_as_many_lists_as_records_at_least() {
        let table = table();
        for number in 0..100_000u64 {
            add(table, number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number);
        }
        assert!(table.heads.all().len() * MOST_IN_A_LIST >= 100_000);
    }

    /// Readers look for records that were added before they began, while the table grows.
    #[test]
    fn readers_find_what_was_added_while_the_table_grows() {
        const ALL: u64 = 200_000;
        let table = table();
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (added, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..ALL {
                    add(table, hash(number), number);
                    added.store(number as usize + 1, Ordering::Release);
                }
            });
            scope.spawn(|| {
                let mut number = 0;
                while added.load(Ordering::Acquire) < ALL as usize {
                    number = (number * 7 + 1) % added.load(Ordering::Acquire).max(1) as u64;
                    match table.find(hash(number), |record| record.hash == hash(number)) {
                        Some(found) => assert_eq!(found.value, number),
                        None if added.load(Ordering::Acquire) == 0 => {}
                        None => drop(missed.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            });
        });
        // A reader that the system stops while the table grows twice may miss one.
        assert!(missed.load(Ordering::Relaxed) < 100, "{missed:?}");
        assert!((0..ALL).all(|n| table.find(hash(n), |record| record.value == n).is_some()));
    }
}
