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
    let words = call.words();
    if let Some(entry) = find(words, call.head().values.place(), key) {
        let before = words.read(entry + VALUE);
        let after = match change {
            Change::Get => before,
            Change::Set(value) => value,
            Change::Add(more) => before.wrapping_add(more),
        };
        if change != Change::Get {
            words.write(entry + VALUE, after);
        }
        return Value { before: Some(before), after: Some(after) };
    }
    let (Change::Set(value) | Change::Add(value)) = change else { return Value::default() };
    Value { before: None, after: add(call, key, value).map(|()| value) }
}

/// Returns the address of a key's entry.
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

fn add<M: Method, D: Discipline>(call: &mut Call<'_, M, D>, key: u64, value: u64) -> Option<()> {
    if M::MODE == mode::POOL {
        return None;
    }
    let entry = M::alloc(call, BYTES)?;
    // The discipline may have cleared the region.
    let (words, first) = (call.words(), call.head().values.place());
    words.write(entry + KEY, key);
    words.write(entry + VALUE, value);
    words.set_link(entry + NEXT, words.link(first));
    // The process may end here: the list leads to whole entries only.
    in_order();
    words.set_link(first, entry);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::method::best::Best;
    use crate::method::call::Form;
    use crate::method::debug::Debug;
    use crate::method::last::Last;
    use crate::method::pool::Pool;

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
}
