//! Keys by name, and values by index.
use crate::entry::Entry;
use crate::key_table::{self, Row};
use crate::tree::{self, MAX_DEPTH};
use crate::value::Value;

/// Room for the longest name, such as `stats.arenas.<i>.mutexes.extents_retained.num_owner_switch`.
const NAME: usize = 128;

/// A key that is looked up once, to be read with many indices.
#[derive(Clone, Copy)]
pub(super) struct Key {
    mib: [usize; MAX_DEPTH],
    used: usize,
}

impl Key {
    /// The key of a name in which each index is 0; `None` if there is no such key.
    pub(super) fn named(name: &[u8]) -> Option<Key> {
        let found = tree::complete(name).ok()?;
        let mut key = Key { mib: [0; MAX_DEPTH], used: found.as_slice().len() };
        key.mib.iter_mut().zip(found.as_slice()).for_each(|(to, from)| *to = *from);
        Some(key)
    }

    /// As [`Key::named`], but the name comes in two parts.
    pub(super) fn below(branch: &str, leaf: &str) -> Option<Key> {
        let mut name = [0; NAME];
        let bytes = branch.bytes().chain(leaf.bytes());
        name.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Key::named(name.get(..branch.len() + leaf.len())?)
    }

    /// The key with another index at one place of its MIB.
    pub(super) fn at(mut self, place: usize, index: usize) -> Key {
        if let Some(component) = self.mib.get_mut(place) {
            *component = index;
        }
        self
    }

    /// The value; `None` if there is none for these indices.
    pub(super) fn read(&self) -> Option<Value<'static>> {
        Entry::find(self.mib.get(..self.used)?).ok()?.read().ok()
    }

    /// The value as a number; 0 if it is no number.
    pub(super) fn number(&self) -> u64 {
        self.read().map_or(0, as_number)
    }
}

/// A value as a number: 0 for texts, pointers and negative numbers.
pub(super) fn as_number(value: Value<'_>) -> u64 {
    match value {
        Value::Bool(value) => u64::from(value),
        Value::Unsigned(value) | Value::U32(value) => u64::from(value),
        Value::U64(value) => value,
        Value::I64(value) => u64::try_from(value).unwrap_or(0),
        Value::Size(value) => value as u64,
        Value::Ssize(value) => u64::try_from(value).unwrap_or(0),
        Value::Str(_) | Value::Pointer(_) => 0,
    }
}

/// The value of a key without an index, as a number; 0 if there is none.
pub(super) fn number(name: &str) -> u64 {
    Key::named(name.as_bytes()).map_or(0, |key| key.number())
}

/// The keys with these names in a branch.
pub(super) fn keys<const N: usize>(branch: &str, leaves: [&str; N]) -> [Option<Key>; N] {
    leaves.map(|leaf| Key::below(branch, leaf))
}

/// The values of keys, with the index of an arena and, in arrays, of an element.
pub(super) fn numbers<const N: usize>(
    keys: [Option<Key>; N],
    arena: usize,
    element: usize,
) -> [u64; N] {
    let number = |key: Key| {
        let key = key.at(2, arena);
        if key.used > 4 && element != usize::MAX {
            key.at(4, element).number()
        } else {
            key.number()
        }
    };
    keys.map(|key| key.map_or(0, number))
}

/// All rows whose names begin with these components; they are neighbours. A component that begins
/// with `<` stands for any index.
pub(super) fn branch(path: &[&[u8]]) -> &'static [Row] {
    let rows = key_table::rows();
    let begin = rows.iter().take_while(|row| !is_below(row, path)).count();
    let rows = rows.get(begin..).unwrap_or(&[]);
    let count = rows.iter().take_while(|row| is_below(row, path)).count();
    rows.get(..count).unwrap_or(&[])
}

fn is_below(row: &Row, path: &[&[u8]]) -> bool {
    let same = |(component, wanted): (&[u8], &&[u8])| {
        if wanted.first() == Some(&tree::INDEX) {
            component.first() == Some(&tree::INDEX)
        } else {
            component == *wanted
        }
    };
    row.components().count() > path.len() && row.components().zip(path).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_in_one_or_two_parts() {
        let whole = Key::named(b"stats.allocated").unwrap();
        let parts = Key::below("stats.", "allocated").unwrap();
        assert_eq!(whole.mib, parts.mib);
        assert!(matches!(parts.read(), Some(Value::Size(_))));
        assert!(Key::below("stats.", "nonsense").is_none());
        assert!(number("arenas.page") == 4096 && number("stats.nonsense") == 0);
    }

    #[test]
    fn a_branch_has_all_its_rows_and_no_others() {
        let work = branch(&[b"stats", b"work"]);
        assert!(!work.is_empty() && work.iter().all(|row| row.name().starts_with("stats.work.")));
        let all = key_table::rows().iter().filter(|row| row.name().starts_with("stats.work."));
        assert_eq!(all.count(), work.len());
        assert!(branch(&[b"nonsense"]).is_empty());
        assert!(branch(&[b"version"]).is_empty(), "a key is no branch");
    }

    #[test]
    fn values_are_numbers_where_they_can_be() {
        assert_eq!(as_number(Value::Bool(true)), 1);
        assert_eq!(as_number(Value::Ssize(-1)), 0);
        assert_eq!(as_number(Value::I64(7)), 7);
        assert_eq!(as_number(Value::Str(c"7")), 0);
    }
}
