//! Blocks of a slab by whole cache lines, for slabs that threads share.

use super::holes;
use super::slab::Slab;

impl Slab {
    /// Takes up to `want` free blocks of cache lines that are free to the last byte, and hands each
    /// to `give`. Answers how many.
    pub(crate) fn take_lines(&self, want: usize, mut give: impl FnMut(*mut u8)) -> usize {
        let (size, group) = (self.class().size(), self.class().blocks_of_lines());
        let mut left = want;
        for (index, word) in self.free_words().iter().enumerate() {
            let before = word.get();
            let mut bits = whole_groups(before, group);
            while bits != 0 && left > 0 {
                let bit = bits.trailing_zeros() as usize;
                let block = self.base() + (index * 64 + bit) * size;
                give(core::ptr::with_exposed_provenance_mut(block));
                bits &= bits - 1;
                word.set(word.get() & !(1 << bit));
                left -= 1;
            }
            if self.holes.is_marked() {
                holes::note_taken(self, index, before & !word.get());
            }
            if left == 0 {
                break;
            }
        }
        self.used.set(self.used.get() + (want - left) as u32);
        if self.fresh.are_left() {
            self.note_touched();
        }
        want - left
    }
}

/// The bits of `word` in groups of `group` (1, 2, 4 or 8) that are all ones.
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
}
