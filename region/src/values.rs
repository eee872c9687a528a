//! Values with keys, which a region holds for its program: the list of them lies in its blocks.
//!
//! ```text
//!   core data ──▶ [key] [value] [next] ──▶ [key] [value] [next]
//! ```
//!
//! A value is written in one step, so it is the old one or the new one if the process ends.

use crate::discipline::Discipline;
use crate::method::Method;
use crate::method::call::Call;
use crate::mode;
use crate::words::{Words, in_order};

/// The places of a block's words.
const KEY: usize = 0;
const VALUE: usize = 8;
const NEXT: usize = 16;
const BYTES: usize = 24;

/// What is done to the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Get,
    /// It becomes this one.
    Set(u64),
    /// So much is added to it. It begins at 0.
    Add(u64),
}

/// The value of a key, if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Before the change.
    pub before: Option<u64>,
    /// After it.
    pub after: Option<u64>,
}

/// Changes the value of a key. A key that had none has none after if there is no memory, and always
/// in a pool, whose blocks have the size of the program's.
pub fn change<M: Method, D: Discipline>(
    call: &mut Call<'_, M, D>,
    key: u64,
    change: Change,
) -> Value {
    if let Some(entry) = entry_of(call, key) {
        return change_entry(call.words(), entry, change);
    }
    let (Change::Set(value) | Change::Add(value)) = change else { return Value::default() };
    let block = if M::MODE == mode::POOL { None } else { M::alloc(call, BYTES) };
    // While there was no memory, the program may have given the key a value, or cleared the region.
    if let Some(entry) = entry_of(call, key) {
        let changed = change_entry(call.words(), entry, change);
        // A block whose header was overwritten stays unused.
        let _ = block.map(|block| M::free(call, block));
        return changed;
    }
    let added = block.map(|block| insert(call, block, key, value));
    Value { before: None, after: added.map(|()| value) }
}

/// Changes the value of an entry.
fn change_entry(words: Words, entry: usize, change: Change) -> Value {
    let before = words.read(entry + VALUE);
    let after = match change {
        Change::Get => before,
        Change::Set(value) => value,
        Change::Add(more) => before.wrapping_add(more),
    };
    if change != Change::Get {
        words.write(entry + VALUE, after);
    }
    Value { before: Some(before), after: Some(after) }
}

/// Returns the address of a key's entry.
fn entry_of<M: Method, D: Discipline>(call: &Call<'_, M, D>, key: u64) -> Option<usize> {
    find(call.words(), call.head().values.place(), key)
}

/// Returns the address of a key's entry in the list that a link leads to.
fn find(words: Words, first: usize, key: u64) -> Option<usize> {
    let mut link = first;
    loop {
        let entry = words.link(link);
        if entry == 0 || words.read(entry + KEY) == key {
            return (entry != 0).then_some(entry);
        }
        link = entry + NEXT;
    }
}

/// Makes a block the first entry of the list.
fn insert<M: Method, D: Discipline>(call: &Call<'_, M, D>, entry: usize, key: u64, value: u64) {
    let (words, first) = (call.words(), call.head().values.place());
    words.write(entry + KEY, key);
    words.write(entry + VALUE, value);
    words.set_link(entry + NEXT, words.link(first));
    // The process may end here: the list leads to whole entries only.
    in_order();
    words.set_link(first, entry);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Data;
    use crate::discipline::Retry;
    use crate::heap::Heap;
    use crate::method::best::{Best, State};
    use crate::method::call::{Form, Nothing};
    use crate::method::debug::Debug;
    use crate::method::last::Last;
    use crate::method::pool::Pool;
    use core::ptr::NonNull;
    use std::vec::Vec;

    fn with_region<M: Method>(f: impl FnOnce(&mut Call<'_, M, Heap>)) {
        let mut heap = Heap;
        let data = Call::<M, Heap>::open(&mut heap, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<M, Heap>::new(data, &mut heap) };
        f(&mut call);
        call.close();
    }

    fn value(before: Option<u64>, after: Option<u64>) -> Value {
        Value { before, after }
    }

    fn keeps_values<M: Method>() {
        with_region::<M>(|call| {
            assert_eq!(change(call, 1, Change::Get), value(None, None));
            assert_eq!(change(call, 1, Change::Add(5)), value(None, Some(5)));
            assert_eq!(change(call, 1, Change::Add(u64::MAX)), value(Some(5), Some(4)));
            assert_eq!(change(call, 2, Change::Set(7)), value(None, Some(7)));
            assert_eq!(change(call, 2, Change::Set(8)), value(Some(7), Some(8)));
            assert_eq!(change(call, 1, Change::Get), value(Some(4), Some(4)));
            for key in 3..1000 {
                assert_eq!(change(call, key, Change::Set(key)), value(None, Some(key)));
            }
            assert_eq!(change(call, 2, Change::Get), value(Some(8), Some(8)));
            call.clear();
            assert_eq!(change(call, 2, Change::Get), value(None, None));
        });
    }

    #[test]
    fn values_are_kept_until_the_region_is_cleared() {
        keeps_values::<Best>();
        keeps_values::<Last>();
        keeps_values::<Debug>();
    }

    #[test]
    fn a_pool_has_no_values() {
        with_region::<Pool>(|call| {
            assert_eq!(change(call, 1, Change::Set(7)), value(None, None));
            assert_eq!(change(call, 1, Change::Get), value(None, None));
        });
    }

    /// A discipline of one segment. When there is no memory, the program frees a block, and gives
    /// a key a value.
    struct Busy {
        memory: Vec<u64>,
        data: Option<NonNull<Data<State>>>,
        block: usize,
        retry: Retry,
    }

    impl Busy {
        fn run<T>(&self, f: impl FnOnce(&mut Call<'_, Best, Nothing>) -> T) -> T {
            let mut nothing = Nothing;
            // SAFETY: no other thread is in the region, whose call waits for its discipline.
            f(&mut unsafe { Call::new(self.data.unwrap(), &mut nothing) })
        }
    }

    // SAFETY: the memory belongs to the region alone.
    unsafe impl Discipline for Busy {
        fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
            let is_first = self.memory.is_empty();
            self.memory.resize(self.memory.len().max(size / 8), 0);
            NonNull::new(self.memory.as_mut_ptr().cast()).filter(|_| is_first)
        }

        unsafe fn release(&mut self, _segment: NonNull<u8>, _size: usize) -> bool {
            true
        }

        fn no_memory(&mut self, _size: usize) -> Retry {
            self.run(|call| {
                assert!(Best::free(call, self.block).is_ok());
                assert_eq!(change(call, 1, Change::Set(5)), value(None, Some(5)));
            });
            self.retry
        }
    }

    fn changes_while_there_is_no_memory(retry: Retry) {
        let mut busy = Busy { memory: Vec::new(), data: None, block: 0, retry };
        busy.data = Call::<Best, Busy>::open(&mut busy, Form::default());
        let blocks: Vec<usize> = busy.run(|call| {
            let blocks = (0..).map_while(|_| Best::alloc(call, 100)).collect();
            while Best::alloc(call, 8).is_some() {}
            blocks
        });
        busy.block = blocks[0];
        let busy_before = busy.run(|call| call.stat().busy);
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Best, Busy>::new(busy.data.unwrap(), &mut busy) };
        assert_eq!(change(&mut call, 1, Change::Add(3)), value(Some(5), Some(8)));
        assert_eq!(change(&mut call, 1, Change::Get), value(Some(8), Some(8)));
        // One block was freed, and one is the entry.
        assert_eq!(call.stat().busy, busy_before);
        call.close();
    }

    #[test]
    fn a_value_that_a_key_gets_while_there_is_no_memory_is_kept() {
        changes_while_there_is_no_memory(Retry::Repeat);
        changes_while_there_is_no_memory(Retry::Fail);
    }
}
