//! The events of all chunks in the order of their times.
//!
//! Only the chunks that overlap at a time are open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::decoder::{Decoder, Event};
use super::index::Index;

/// How many chunks with events of one time are looked into for a deletion.
const OTHERS: usize = 64;

/// The next event of an open chunk. Deletions come before allocations of the same time.
type Head = Reverse<(u64, bool, usize)>;

/// All events.
pub(crate) struct Merge<'a> {
    index: &'a Index,
    /// How many chunks were opened.
    opened: usize,
    /// The open chunks with their next events. Those that ended are empty.
    open: Vec<Option<(Decoder<'a>, Event)>>,
    /// The empty places in `open`.
    free: Vec<usize>,
    heads: BinaryHeap<Head>,
    has_failed: bool,
}

impl<'a> Merge<'a> {
    /// Begins with the first event.
    pub(super) fn new(index: &'a Index) -> Merge<'a> {
        let (open, free, heads) = (Vec::new(), Vec::new(), BinaryHeap::new());
        Merge { index, opened: 0, open, free, heads, has_failed: false }
    }

    fn try_next(&mut self) -> Result<Option<Event>, String> {
        self.open_chunks()?;
        let Some(Reverse((time, is_allocation, mut place))) = self.heads.pop() else {
            return Ok(None);
        };
        if is_allocation {
            place = self.deletion_first(time, place)?;
        }
        let (mut decoder, event) = self.open[place].take().expect("a head has its chunk");
        match decoder.next()? {
            Some(next) => self.put(place, decoder, next),
            None => self.free.push(place),
        }
        Ok(Some(event))
    }

    /// Opens the chunks that begin before the next event, or that have it.
    fn open_chunks(&mut self) -> Result<(), String> {
        while let Some(events) = self.index.events.get(self.opened) {
            let next = self.heads.peek().map(|Reverse((time, ..))| *time);
            if next.is_some_and(|next| events.time > next) {
                break;
            }
            self.opened += 1;
            let mut decoder = Decoder::new(self.index, events)?;
            if let Some(event) = decoder.next()? {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.open.push(None);
                    self.open.len() - 1
                });
                self.put(place, decoder, event);
            }
        }
        Ok(())
    }

    fn put(&mut self, place: usize, decoder: Decoder<'a>, event: Event) {
        self.heads.push(Reverse((event.time, event.is_allocation(), place)));
        self.open[place] = Some((decoder, event));
    }

    /// Returns the chunk to continue with in place of an allocation: one that deletes the block
    /// that was at its address before, at the same time, a few events later.
    fn deletion_first(&mut self, time: u64, place: usize) -> Result<usize, String> {
        let address = self.open[place].as_ref().map_or(0, |(_, event)| event.address);
        let mut others = Vec::new();
        while let Some(head) = self.heads.peek().copied().filter(|head| head.0.0 == time) {
            if others.len() == OTHERS {
                break;
            }
            self.heads.pop();
            others.push(head.0.2);
        }
        let mut chosen = place;
        for other in &others {
            if let Some((decoder, _)) = &mut self.open[*other]
                && decoder.deletes(address, time)?
            {
                chosen = *other;
                break;
            }
        }
        let rest = others.into_iter().chain([place]).filter(|other| *other != chosen);
        // They are all allocations: deletions would have come first.
        self.heads.extend(rest.map(|other| Reverse((time, true, other))));
        Ok(chosen)
    }

    /// How many chunks are open.
    #[cfg(test)]
    fn open_count(&self) -> usize {
        self.open.len() - self.free.len()
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Event, String>;

    fn next(&mut self) -> Option<Result<Event, String>> {
        if self.has_failed {
            return None;
        }
        let next = self.try_next().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::decoder::Kind;
    use super::super::source::Source;
    use super::super::testing::{File, Happens, START};
    use super::*;
    use proptest::prelude::*;

    fn index(file: &File) -> Index {
        Index::read(Source::Memory(file.bytes.clone())).expect("it is read")
    }

    fn addresses(file: &File) -> Vec<(u64, u64)> {
        let index = index(file);
        let events = Merge::new(&index).map(|event| event.expect("an event"));
        events.map(|event| (event.time - START, event.address)).collect()
    }

    #[test]
    fn only_chunks_that_overlap_are_open() {
        let mut file = File::default();
        for thread in 0..20 {
            let events =
                [(thread * 10, Happens::New(1, 8), 0), (thread * 10 + 15, Happens::New(2, 8), 0)];
            file = file.events(thread, &events);
        }
        let index = index(&file);
        let mut merge = Merge::new(&index);
        let mut most = 0;
        while merge.next().is_some() {
            most = most.max(merge.open_count());
        }
        assert_eq!((most, merge.open.len()), (2, 2));
    }

    #[test]
    fn deletions_come_first_at_the_same_time() {
        let new = |address| Happens::New(address, 8);
        let delete = |address| Happens::Delete(address, 0);
        let file =
            File::default().events(1, &[(5, new(0x10), 0)]).events(2, &[(5, delete(0x10), 0)]);
        let index = index(&file);
        let kinds: Vec<Kind> = Merge::new(&index).map(|event| event.expect("it").kind).collect();
        assert_eq!(kinds, [Kind::Deletion(0), Kind::Allocation(8)]);
        // The deletion stands behind another allocation of its thread.
        let file = File::default()
            .events(1, &[(5, new(0x10), 0)])
            .events(2, &[(5, new(0x20), 0), (5, delete(0x10), 0)])
            .events(3, &[(5, new(0x30), 0)]);
        let places: Vec<u64> = addresses(&file).into_iter().map(|(_, address)| address).collect();
        assert_eq!(places, [0x20, 0x10, 0x10, 0x30]);
    }

    #[test]
    fn what_is_damaged_is_left_out() {
        let file = File::default()
            .chunk(b'E', &[5, 0, 3, 4, 2, 8, 0, 3])
            .chunk(b'E', &[5, 0, 1, 3])
            .events(1, &[(9, Happens::New(2, 8), 0)]);
        assert_eq!(Merge::new(&index(&file)).filter_map(Result::ok).count(), 2);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_sorted_list(
            chunks in proptest::collection::vec(
                (1u64..5, 0u64..500, proptest::collection::vec((0u64..90, any::<bool>()), 0..9)),
                0..12
            )
        ) {
            let mut file = File::default();
            let mut expected = Vec::new();
            for (thread, begin, steps) in chunks {
                let mut time = begin;
                let mut events = Vec::new();
                for (step, is_new) in steps {
                    time += step + 1;
                    // Each address is used once, so that only the time orders the events.
                    let address = 16 * (expected.len() as u64 + 1);
                    let happens = match is_new {
                        true => Happens::New(address, step),
                        false => Happens::Delete(address, step),
                    };
                    events.push((time, happens, 0));
                    expected.push((time, thread, address, is_new, step));
                }
                file = file.events(thread, &events);
            }
            let index = index(&file);
            let mut found = Vec::new();
            for event in Merge::new(&index) {
                let event = event.expect("an event");
                let value = match event.kind {
                    Kind::Allocation(value) | Kind::Deletion(value) => value,
                };
                let time = event.time - START;
                found.push((time, event.thread, event.address, event.is_allocation(), value));
            }
            prop_assert!(found.is_sorted_by_key(|event| (event.0, event.3)));
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
