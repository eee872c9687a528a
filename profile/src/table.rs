//! A hash table in memory that it is given, which never grows.

/// Maps keys of `KEYS` words to a word that is not zero.
pub(crate) struct Table<'a, const KEYS: usize> {
    /// Places of `KEYS` words and the value, which is 0 if the place is empty.
    words: &'a mut [u64],
    used: usize,
}

impl<'a, const KEYS: usize> Table<'a, KEYS> {
    /// Words of a place.
    pub(crate) const PLACE: usize = KEYS + 1;

    /// Creates an empty table in zeroed words.
    pub(crate) fn new(words: &'a mut [u64]) -> Table<'a, KEYS> {
        Table { words, used: 0 }
    }

    fn places(&self) -> usize {
        self.words.len() / Self::PLACE
    }

    /// Returns the value of a key, 0 if it is new, to be changed. `None`: the key is new, and there
    /// is no room.
    pub(crate) fn value(&mut self, key: &[u64; KEYS]) -> Option<&mut u64> {
        let places = self.places();
        // The upper bits of a product choose the place, because a division takes longer.
        let mut place = ((u128::from(hash(key)) * places as u128) >> 64) as usize;
        for _ in 0..places {
            let words = self.words.get(place * Self::PLACE..)?.get(..Self::PLACE)?;
            let (known, value) = words.split_at_checked(KEYS)?;
            let is_empty = value == [0];
            if is_empty && self.used >= places - places / 8 {
                return None;
            }
            if is_empty || known == key {
                return self.take(place, key, is_empty);
            }
            place = if place + 1 == places { 0 } else { place + 1 };
        }
        None
    }

    fn take(&mut self, place: usize, key: &[u64; KEYS], is_new: bool) -> Option<&mut u64> {
        let words = self.words.get_mut(place * Self::PLACE..)?.get_mut(..Self::PLACE)?;
        let (known, value) = words.split_at_mut_checked(KEYS)?;
        known.iter_mut().zip(key).for_each(|(known, key)| *known = *key);
        self.used += usize::from(is_new);
        value.first_mut()
    }

    /// Returns the keys and values.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&[u64; KEYS], u64)> {
        self.words.chunks_exact(Self::PLACE).filter_map(|place| {
            let (key, value) = place.split_first_chunk()?;
            value.first().filter(|value| **value != 0).map(|value| (key, *value))
        })
    }
}

fn hash<const KEYS: usize>(key: &[u64; KEYS]) -> u64 {
    let mix =
        |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    // The upper bits of the last product depend on all words.
    key.iter().fold(0, mix).rotate_right(31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::vec;

    #[test]
    fn keys_have_their_values_until_there_is_no_room() {
        let mut words = vec![0; 3 * 100 + 2];
        let mut table = Table::<2>::new(&mut words);
        let mut shadow = HashMap::new();
        for n in 0..200u64 {
            let key = [n % 120 * 16, n % 7];
            match table.value(&key) {
                Some(value) => {
                    *value += n + 1;
                    *shadow.entry(key).or_insert(0) += n + 1;
                }
                None => assert!(shadow.len() == 88 && !shadow.contains_key(&key)),
            }
        }
        assert_eq!(
            table.all().map(|(key, value)| (*key, value)).collect::<HashMap<_, _>>(),
            shadow
        );
        for words in [0, 1, 2] {
            assert!(Table::<2>::new(&mut vec![0; words]).value(&[1, 2]).is_none());
        }
    }
}
