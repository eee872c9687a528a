//! What each thread has in use, in all and of each stack, for the lines of heap_v2 that
//! `jeprof --thread` reads.

use crate::table::Table;
use crate::unbias::Estimate;
use lumalloc::observe::{self, LiveSample};

/// The most samples in use that are told by thread. For more a profile would take twice the time.
const MOST: usize = 1 << 16;
/// Words of an entry in memory: those of [`Of`], and the number of the next entry of the stack.
const ENTRY: usize = 6;
/// Words for each entry.
const EACH: usize = ENTRY + 2 * Table::<1>::PLACE + 2 * Table::<2>::PLACE;
/// Stands for all stacks.
const ALL: u64 = 0;

/// What one thread has in use.
#[derive(Clone, Copy)]
pub(crate) struct Of {
    /// The number of the thread.
    pub(crate) thread: u64,
    /// What it has in use.
    pub(crate) live: Estimate,
    /// Where the thread's name is, which lives for ever.
    name: (u64, u64),
}

impl Of {
    /// Returns the name of the thread, which may be empty.
    pub(crate) fn name(&self) -> &'static [u8] {
        let (place, length) = self.name;
        if length == 0 {
            return &[];
        }
        let place = core::ptr::with_exposed_provenance(place as usize);
        // SAFETY: the name was taken apart by `add`. It lives for ever.
        unsafe { core::slice::from_raw_parts(place, length as usize) }
    }
}

/// The samples in use by stack and thread.
pub(crate) struct Threads<'a> {
    /// The number of the first entry of a stack, from 1 on.
    first: Table<'a, 1>,
    /// The number of the entry of a stack and a thread, from 1 on.
    pairs: Table<'a, 2>,
    entries: &'a mut [u64],
    used: usize,
}

impl<'a> Threads<'a> {
    /// Returns how many words the present samples need. `None`: they are too many.
    pub(crate) fn needs() -> Option<usize> {
        words_for(observe::profile_counts().live)
    }

    /// Collects the samples in use, in zeroed words. `None`: there is no room for all.
    pub(crate) fn collect(words: &'a mut [u64], lg_sample: u32) -> Option<Threads<'a>> {
        let entries = words.len() / EACH;
        let (first, rest) = words.split_at_mut_checked(entries * 2 * Table::<1>::PLACE)?;
        let (pairs, entries) = rest.split_at_mut_checked(entries * 2 * Table::<2>::PLACE)?;
        let (first, pairs) = (Table::new(first), Table::new(pairs));
        let mut threads = Threads { first, pairs, entries, used: 0 };
        let mut is_whole = true;
        observe::live_samples(|sample| {
            if sample.usable == 0 {
                // Left out of all lines.
                return;
            }
            let stack = sample.stack.as_ptr().addr() as u64;
            is_whole = is_whole
                && threads.add(ALL, &sample, lg_sample).is_some()
                && threads.add(stack, &sample, lg_sample).is_some();
        });
        is_whole.then_some(threads)
    }

    fn add(&mut self, stack: u64, sample: &LiveSample, lg_sample: u32) -> Option<()> {
        let number = self.pairs.value(&[stack, sample.thread])?;
        let is_new = *number == 0;
        if is_new {
            self.used += 1;
            *number = self.used as u64;
        }
        let at = (*number as usize).checked_sub(1)?.checked_mul(ENTRY)?;
        let words = self.entries.get_mut(at..)?.first_chunk_mut::<ENTRY>()?;
        let [thread, count, bytes, name, length, next] = words;
        if is_new {
            *thread = sample.thread;
            let first = self.first.value(&[stack])?;
            *next = core::mem::replace(first, self.used as u64);
        }
        let mut live = Estimate { count: f64::from_bits(*count), bytes: f64::from_bits(*bytes) };
        live.add(1, sample.usable, lg_sample);
        (*count, *bytes) = (live.count.to_bits(), live.bytes.to_bits());
        if !sample.thread_name.is_empty() {
            *name = sample.thread_name.as_ptr().expose_provenance() as u64;
            *length = sample.thread_name.len() as u64;
        }
        Some(())
    }

    /// Returns what each thread has in use, in all.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = Of> {
        self.chain(ALL)
    }

    /// Returns what each thread has in use of one stack.
    pub(crate) fn of_stack(&mut self, stack: &[usize]) -> impl Iterator<Item = Of> {
        self.chain(stack.as_ptr().addr() as u64)
    }

    fn chain(&mut self, stack: u64) -> impl Iterator<Item = Of> {
        let mut number = self.first.value(&[stack]).map_or(0, |first| *first);
        let entries = &*self.entries;
        core::iter::from_fn(move || {
            let at = (number as usize).checked_sub(1)?.checked_mul(ENTRY)?;
            let [thread, count, bytes, name, length, next] =
                *entries.get(at..)?.first_chunk::<ENTRY>()?;
            number = next;
            let live = Estimate { count: f64::from_bits(count), bytes: f64::from_bits(bytes) };
            Some(Of { thread, live, name: (name, length) })
        })
    }
}

fn words_for(live: usize) -> Option<usize> {
    // A sample has an entry for its stack and one for its thread. More may be taken meanwhile.
    (live <= MOST).then_some((2 * live.min(MOST) + 64) * EACH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    static STACKS: [[usize; 2]; 2] = [[1, 2], [3, 4]];

    fn sample(stack: usize, thread: u64, thread_name: &'static str) -> LiveSample {
        let stack = &STACKS[stack];
        LiveSample {
            address: 64,
            stack,
            requested: 100,
            usable: 112,
            arena: 0,
            thread,
            thread_name,
            time: 0,
        }
    }

    fn seen(all: impl Iterator<Item = Of>) -> Vec<(u64, f64, f64, &'static [u8])> {
        let one = |of: Of| (of.thread, of.live.count, of.live.bytes, of.name());
        let mut seen: Vec<_> = all.map(one).collect();
        seen.sort_by_key(|one| one.0);
        seen
    }

    #[test]
    fn samples_are_counted_by_stack_and_thread() {
        let mut words = vec![0; 1000];
        let mut threads = Threads::collect(&mut words, 0).expect("room");
        for (stack, thread, name) in [(0, 1, ""), (0, 1, "main"), (1, 1, ""), (1, 7, "")] {
            let sample = sample(stack, thread, name);
            let key = sample.stack.as_ptr().addr() as u64;
            threads.add(ALL, &sample, 0).expect("room");
            threads.add(key, &sample, 0).expect("room");
        }
        let (main, none): (&[u8], &[u8]) = (b"main", b"");
        assert_eq!(seen(threads.all()), [(1, 3.0, 336.0, main), (7, 1.0, 112.0, none)]);
        assert_eq!(seen(threads.of_stack(&STACKS[0])), [(1, 2.0, 224.0, main)]);
        let both = [(1, 1.0, 112.0, none), (7, 1.0, 112.0, none)];
        assert_eq!(seen(threads.of_stack(&STACKS[1])), both);
        assert_eq!(seen(threads.of_stack(&[9])), []);
    }

    #[test]
    fn there_is_room_for_each_sample_up_to_a_bound() {
        assert_eq!(words_for(MOST + 1), None);
        let mut words = vec![0; words_for(100).expect("few")];
        let mut threads = Threads::collect(&mut words, 0).expect("room");
        for thread in 0..100 {
            let sample = sample(0, thread, "");
            threads.add(ALL, &sample, 0).expect("room");
            threads.add(thread + 1, &sample, 0).expect("room");
        }
        assert_eq!(seen(threads.all()).len(), 100);
        assert!(words_for(MOST).is_some());
    }

    #[test]
    fn without_room_there_is_nothing() {
        for words in [0, 10, 64] {
            let mut words = vec![0; words];
            let mut threads = Threads::collect(&mut words, 0).expect("no samples");
            let added = (0..100).map(|thread| threads.add(ALL, &sample(0, thread, ""), 0));
            assert!(added.last().expect("one").is_none());
        }
    }
}
