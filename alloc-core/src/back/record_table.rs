//! A table that finds the records of a list by their numbers, once the list is long.
//!
//! ```text
//!   number ──▶ its first place ──▶ next place ──▶ … ──▶ empty place: there is no such record
//! ```
//! At most half of the places hold a record. The list stays with its user, who shows it at each
//! call: as long as it is short, and where there is no memory for places, it is looked through.
//! One thread at a time may use a table.

use super::metadata;
use core::cell::Cell;
use core::ptr::NonNull;

/// The most records of a list that is looked through.
const SHORT: usize = 8;

/// A record that has a number for as long as it is in a table.
pub(crate) trait Numbered: 'static {
    /// Returns the number, which no other record of the table has.
    fn number(&self) -> u32;
}

/// A record, or nothing.
type Place<T> = Cell<Option<&'static T>>;

/// A table of records that are in use for ever.
pub(crate) struct RecordTable<T: 'static> {
    /// The address of the places, a multiple of 64, plus the logarithm of how many there are. It is
    /// one word, so that a fork in the middle of a change finds one table or the other. Null: there
    /// are no places.
    places: Cell<*mut Place<T>>,
    count: Cell<usize>,
}

const LG_MASK: usize = 63;

impl<T: Numbered> RecordTable<T> {
    pub(crate) const fn new() -> RecordTable<T> {
        RecordTable { places: Cell::new(core::ptr::null_mut()), count: Cell::new(0) }
    }

    fn lg(&self) -> u32 {
        (self.places.get().addr() & LG_MASK) as u32
    }

    fn places(&self) -> &[Place<T>] {
        let first = self.places.get().map_addr(|address| address & !LG_MASK);
        if first.is_null() {
            return &[];
        }
        // SAFETY: `renew` wrote so many places there. No other thread uses the table, and no
        // function here keeps the slice beyond a change.
        unsafe { core::slice::from_raw_parts(first, 1 << self.lg()) }
    }

    /// Returns all places, beginning with the first one of a number.
    fn places_of(&self, number: u32) -> impl Iterator<Item = &Place<T>> {
        // Numbers in sequence are spread evenly by a multiple of the golden ratio.
        let first = u64::from(number.wrapping_mul(0x9e37_79b9)) >> (u32::BITS - self.lg());
        let places = self.places().split_at_checked(first as usize);
        let (before, from) = places.unwrap_or_default();
        from.iter().chain(before)
    }

    /// Returns the record of a number. `list` has it if it is in the table.
    pub(crate) fn find(
        &self,
        number: u32,
        mut list: impl Iterator<Item = &'static T>,
    ) -> Option<&'static T> {
        if self.places.get().is_null() {
            return list.find(|record| record.number() == number);
        }
        self.places_of(number).map_while(Cell::get).find(|record| record.number() == number)
    }

    /// Adds a record, which is new in `list`, the part of `all` that would be looked through for
    /// it. Inlined, because every program adds some, and few go on to places.
    #[inline(always)]
    pub(crate) fn add(
        &self,
        record: &'static T,
        mut list: impl Iterator<Item = &'static T>,
        all: impl Iterator<Item = &'static T> + Clone,
    ) {
        if self.places.get().is_null() && list.nth(SHORT).is_none() {
            return;
        }
        if 2 * (self.count.get() + 1) > self.places().len() {
            return self.renew(all);
        }
        self.put(record);
    }

    fn put(&self, record: &'static T) {
        if let Some(place) = self.places_of(record.number()).find(|place| place.get().is_none()) {
            place.set(Some(record));
            self.count.set(self.count.get() + 1);
        }
    }

    /// Makes a table of these records, if there is memory for it.
    #[cold]
    #[inline(never)]
    fn renew(&self, all: impl Iterator<Item = &'static T> + Clone) {
        self.clear();
        let lg = (2 * all.clone().count()).next_power_of_two().max(SHORT).ilog2();
        // 64 bytes or more, which lie at a multiple of 64.
        let Some(first) = metadata::allocate_array(lg) else { return };
        let first: *mut Place<T> = first.as_ptr().cast();
        // SAFETY: so many words were just allocated. A zero is an empty place.
        unsafe { first.write_bytes(0, 1 << lg) };
        self.places.set(first.map_addr(|address| address | lg as usize));
        all.for_each(|record| self.put(record));
    }

    /// Forgets all records.
    pub(crate) fn clear(&self) {
        let lg = self.lg();
        let places = self.places.replace(core::ptr::null_mut());
        self.count.set(0);
        if let Some(first) = NonNull::new(places.map_addr(|address| address & !LG_MASK)) {
            // SAFETY: `renew` allocated so many words, and no place is in use any more.
            unsafe { metadata::free_array(first.cast(), lg) };
        }
    }

    /// Checks that the table has these records, and no others, or that it has no places.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self, all: impl Iterator<Item = &'static T> + Clone) {
        use crate::ground::holds::holds;
        let count = self.places().iter().filter(|place| place.get().is_some()).count();
        holds(count == self.count.get() && 2 * count <= self.places().len());
        if !self.places.get().is_null() {
            holds(count == all.clone().count());
            for record in all {
                let found = self.find(record.number(), core::iter::empty());
                holds(found.is_some_and(|found| core::ptr::eq(found, record)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::boxed::Box;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    struct Record(u32);

    impl Numbered for Record {
        fn number(&self) -> u32 {
            self.0
        }
    }

    type Table = RecordTable<Record>;

    /// The table under test, and all of its records.
    struct Shadowed {
        table: Table,
        records: BTreeMap<u32, &'static Record>,
    }

    impl Shadowed {
        fn new() -> Shadowed {
            Shadowed { table: Table::new(), records: BTreeMap::new() }
        }

        fn list(&self) -> impl Iterator<Item = &'static Record> + Clone {
            self.records.values().copied()
        }

        fn add(&mut self, number: u32) {
            let record: &'static Record = Box::leak(Box::new(Record(number)));
            self.records.insert(number, record);
            self.table.add(record, self.list(), self.list());
        }

        fn check(&self) {
            self.table.check(self.list());
        }

        /// How many records are looked at for a number, most of all.
        fn longest_search(&self) -> usize {
            let looked_at = |record: &Record| {
                let seen = self.table.places_of(record.0).map_while(Cell::get);
                seen.take_while(|other| other.0 != record.0).count() + 1
            };
            self.list().map(looked_at).max().unwrap_or(0)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(u32),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let few = (0u32..40).prop_map(Step::Add);
        let many = any::<u32>().prop_map(Step::Add);
        prop::collection::vec(prop_oneof![20 => few, 20 => many, 1 => Just(Step::Clear)], 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None, cases: 48, ..Default::default()
        })]

        #[test]
        fn it_finds_what_a_map_finds(
            steps in steps(),
            others in prop::collection::vec(0u32..60, 9),
        ) {
            let mut both = Shadowed::new();
            for step in steps {
                match step {
                    Step::Add(number) if !both.records.contains_key(&number) => both.add(number),
                    Step::Add(_) => {}
                    Step::Clear => {
                        both.records.clear();
                        both.table.clear();
                    }
                }
                both.check();
                for number in others.iter().chain(both.records.keys()) {
                    let found = both.table.find(*number, both.list()).map(|record| record.0);
                    let known = both.records.get(number).map(|record| record.0);
                    prop_assert_eq!(found, known);
                }
            }
        }
    }

    #[test]
    fn a_short_list_has_no_places() {
        let mut both = Shadowed::new();
        (0..SHORT as u32).for_each(|number| both.add(number));
        assert!(both.table.places().is_empty());
        both.add(100);
        assert_eq!((both.table.places().len(), both.table.count.get()), (32, SHORT + 1));
        both.table.clear();
        assert!(both.table.places().is_empty());
    }

    #[test]
    fn few_records_are_looked_at_however_many_there_are() {
        for lists in [1, 2, 3, 20, 64] {
            let mut both = Shadowed::new();
            // The numbers that accounts have: those of a list are in sequence.
            let numbers =
                (0..lists).flat_map(|list| (0..4095 / lists).map(move |n| list << 12 | n));
            numbers.for_each(|number| both.add(number));
            both.check();
            let longest = both.longest_search();
            assert!(longest <= 2 * SHORT, "{lists} lists: {longest}");
        }
    }

    #[test]
    fn the_list_is_looked_through_where_there_are_no_places() {
        let records: [&'static Record; 3] = [7, 8, 9].map(|n| &*Box::leak(Box::new(Record(n))));
        let found = Table::new().find(8, records.into_iter());
        assert!(found.is_some_and(|found| core::ptr::eq(found, records[1])));
    }
}
