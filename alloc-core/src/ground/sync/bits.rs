//! Bits that threads take and give back without a lock.
//!
//! All orderings are relaxed: who takes a bit learns nothing of who had it before.

use super::seam::{AtomicU64, Ordering};

/// Sets a bit that is not set, and returns its index. Looks at no more than `most` words, from
/// `begin` on.
pub(crate) fn take(words: &[AtomicU64], begin: usize, most: usize) -> Option<usize> {
    let order = (begin..words.len()).chain(0..begin.min(words.len()));
    order.take(most).find_map(|index| {
        let word = words.get(index)?;
        loop {
            let bit = word.load(Ordering::Relaxed).trailing_ones();
            if bit == u64::BITS {
                return None;
            }
            if word.fetch_or(1 << bit, Ordering::Relaxed) >> bit & 1 == 0 {
                return Some(index * 64 + bit as usize);
            }
        }
    })
}

/// Clears a bit. Returns `false` if it was not set.
pub(crate) fn give(words: &[AtomicU64], index: usize) -> bool {
    let (word, bit) = (index / 64, index % 64);
    let before = words.get(word).map(|word| word.fetch_and(!(1 << bit), Ordering::Relaxed));
    before.is_some_and(|before| before >> bit & 1 != 0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bits() -> Vec<AtomicU64> {
        (0..3).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn fixed_bits_are_taken_from_a_word_on_until_all_are_in_use() {
        let words = bits();
        let take = |begin| take(&words, begin, 3);
        assert_eq!([take(2), take(2), take(0)], [Some(128), Some(129), Some(0)]);
        let rest: Vec<usize> = std::iter::from_fn(|| take(1)).collect();
        assert_eq!((rest.len(), rest[0]), (3 * 64 - 3, 64));
        assert!(give(&words, 77) && !give(&words, 77) && !give(&words, 1000));
        assert_eq!((super::take(&words, 2, 2), super::take(&words, 2, 3)), (None, Some(77)));
        assert_eq!(take(0), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads take the last two bits of a word. Then both free the same block.
    #[test]
    fn loom_no_bit_is_taken_or_given_twice() {
        model(|| {
            let words = Arc::new([AtomicU64::new(!0b11)]);
            let other = Arc::clone(&words);
            let other = thread::spawn(move || (take(&other[..], 0, 1), give(&other[..], 5)));
            let (mine, gave) = (take(&words[..], 0, 1), give(&words[..], 5));
            let (theirs, they_gave) = other.join().unwrap();
            assert!(mine.is_some() && theirs.is_some() && mine != theirs);
            assert!(gave != they_gave, "one of them freed it twice");
        });
    }
}
