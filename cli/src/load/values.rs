//! Values whose contents show whether they came back whole.

use super::random::Random;
use crate::service::MAX_VALUE;

const MIN_VALUE: usize = 64;
/// The bytes at the start of every value: its length, and where its text begins in the pattern.
const HEAD: usize = 8;

/// The pattern that all values are cut from.
pub(crate) struct Values {
    pattern: Vec<u8>,
}

impl Values {
    /// Makes the pattern of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, u64::MAX);
        let words = std::iter::repeat_with(|| random.next().to_le_bytes());
        Self { pattern: words.take(2 * MAX_VALUE / 8).flatten().collect() }
    }

    /// Draws a size from 64 bytes to 64 KiB. Each power of two is as likely as the next.
    pub(crate) fn draw_size(random: &mut Random) -> usize {
        let span = (MAX_VALUE / MIN_VALUE) as f64;
        let size = (MIN_VALUE as f64 * span.powf(random.fraction())) as usize;
        size.clamp(MIN_VALUE, MAX_VALUE)
    }

    /// Appends a value of this size.
    pub(crate) fn push(&self, out: &mut Vec<u8>, size: usize, random: &mut Random) {
        let start = random.below(self.pattern.len() - size);
        out.extend_from_slice(&(size as u32).to_le_bytes());
        out.extend_from_slice(&(start as u32).to_le_bytes());
        out.extend_from_slice(&self.pattern[start..start + size - HEAD]);
    }

    /// Whether a value is as [`push`](Self::push) makes it, to the last byte.
    pub(crate) fn is_whole(&self, value: &[u8]) -> bool {
        let Some((head, text)) = value.split_first_chunk::<HEAD>() else { return false };
        let [a, b, c, d, e, f, g, h] = *head;
        let size = u32::from_le_bytes([a, b, c, d]) as usize;
        let start = u32::from_le_bytes([e, f, g, h]) as usize;
        size == value.len()
            && self.pattern.get(start..).is_some_and(|pattern| pattern.starts_with(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_values_are_whole_and_others_are_not(seed: u64, at: usize) {
            let (values, mut random) = (Values::new(1), Random::new(seed, 0));
            let mut value = Vec::new();
            values.push(&mut value, Values::draw_size(&mut random), &mut random);
            prop_assert!(values.is_whole(&value));
            prop_assert!((MIN_VALUE..=MAX_VALUE).contains(&value.len()));
            prop_assert!(!values.is_whole(&value[..value.len() - 1]));
            let at = at % value.len();
            value[at] ^= 0x80;
            prop_assert!(!values.is_whole(&value));
        }
    }

    #[test]
    fn the_largest_value_can_be_made() {
        let (values, mut random, mut value) = (Values::new(1), Random::new(1, 0), Vec::new());
        values.push(&mut value, MAX_VALUE, &mut random);
        assert!(values.is_whole(&value));
        assert!(!values.is_whole(b"short"));
    }
}
