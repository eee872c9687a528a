//! Free bits by whole cache lines, for slabs that threads share.

use core::cell::Cell;

/// Takes up to `want` bits out of `word`, from groups of `group` bits (1, 2, 4 or 8) that are all
/// ones, and hands each to `take`. Returns how many.
#[inline]
pub(in crate::middle) fn take_groups(
    word: &Cell<u64>,
    group: usize,
    want: usize,
    mut take: impl FnMut(usize),
) -> usize {
    let mut bits = whole_groups(word.get(), group);
    let mut taken = 0;
    while bits != 0 && taken < want {
        let bit = bits.trailing_zeros() as usize;
        take(bit);
        bits &= bits - 1;
        word.set(word.get() & !(1 << bit));
        taken += 1;
    }
    taken
}

/// The bits of `word` that lie in groups of `group` bits (1, 2, 4 or 8) that are all ones.
fn whole_groups(word: u64, group: usize) -> u64 {
    let mut whole = word;
    let mut step = 1;
    while step < group {
        whole &= whole >> step;
        step *= 2;
    }
    let lowest = match group {
        1 => !0,
        2 => 0x5555_5555_5555_5555,
        4 => 0x1111_1111_1111_1111,
        _ => 0x0101_0101_0101_0101,
    };
    (whole & lowest).wrapping_mul((1 << group) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_groups_are_all_ones() {
        for (word, group, whole) in [
            (0b1011_1101u64, 1, 0b1011_1101u64),
            (0b1011_1101, 2, 0b1000_1100 & 0b0000_1100 | 0b0011_0000),
            (0xf0ff_7f0f, 4, 0xf0ff_0f0f),
            (0xff7f_00ff, 8, 0xff00_00ff),
            (!0, 8, !0),
        ] {
            assert_eq!(whole_groups(word, group), whole, "{word:x} by {group}");
        }
    }

    #[test]
    fn bits_are_taken_from_whole_groups_alone() {
        let word = Cell::new(0b1111_0111);
        let mut bits = Vec::new();
        assert_eq!(take_groups(&word, 4, 3, |bit| bits.push(bit)), 3);
        assert_eq!((bits, word.get()), (vec![4, 5, 6], 0b1000_0111));
        assert_eq!(take_groups(&word, 4, 3, |_| ()), 0);
        assert_eq!(take_groups(&word, 1, 9, |_| ()), 4);
        assert_eq!(word.get(), 0);
    }
}
