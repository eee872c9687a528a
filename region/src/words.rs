//! Words in a region's memory: places relative to the core data, and seals that show whether a word
//! was overwritten.
//!
//! Headers and links lie between the program's blocks, so a program that writes outside a block
//! overwrites them. Each such word carries a tag of 20 bits: a keyed hash of the value and of the
//! place where it lies. A word with a wrong tag is not used.

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// The alignment of blocks.
pub(crate) const GRANULE: usize = 16;

const TAG_BITS: u32 = 20;
const VALUE_BITS: u32 = 64 - TAG_BITS;
const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;
const GRANULE_SHIFT: u32 = GRANULE.trailing_zeros();

/// How far behind its place a word that is sealed apart seems to lie, and how far a link. No word
/// lies there.
const APART: usize = 1;
const LINK: usize = 2;

/// Odd numbers without structure: the golden ratio, and the one of splitmix64.
const TAG_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const RANK_FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;

/// Access to the words of one region. Addresses are absolute, but nothing stored depends on where
/// the region lies: links are distances from the core data.
///
/// The methods read and write memory at the addresses given. Whoever makes a `Words` promises that
/// the region's code gives it only addresses of words in the region's segments.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    base: usize,
    key: u64,
}

impl Words {
    /// Access to the words of the region whose core data lies at `base`, with this key.
    ///
    /// # Safety
    /// The region's segments stay mapped while the value is in use, and no other thread uses them.
    #[inline]
    pub(crate) unsafe fn new(base: usize, key: u64) -> Words {
        Words { base, key }
    }

    /// Returns the distance of an address from the core data, which may be negative.
    #[inline]
    pub(crate) fn distance(self, address: usize) -> usize {
        address.wrapping_sub(self.base)
    }

    /// Returns the address at a distance.
    #[inline]
    pub(crate) fn address(self, distance: usize) -> usize {
        self.base.wrapping_add(distance)
    }

    /// Reads a word.
    #[inline]
    pub(crate) fn read(self, at: usize) -> u64 {
        word(at).load(Ordering::Relaxed)
    }

    /// Writes a word.
    #[inline]
    pub(crate) fn write(self, at: usize, value: u64) {
        word(at).store(value, Ordering::Relaxed);
    }

    /// Returns the value of a sealed word, or `None` if it was overwritten.
    #[inline]
    pub(crate) fn unseal(self, at: usize) -> Option<u64> {
        self.unseal_as(at, 0)
    }

    /// Writes a value of at most 44 bits, and its seal.
    #[inline]
    pub(crate) fn seal(self, at: usize, value: u64) {
        self.seal_as(at, value, 0);
    }

    /// As [`Words::unseal`], of a word that was sealed apart: none that was sealed at the same
    /// place otherwise is taken for it.
    #[inline]
    pub(crate) fn unseal_apart(self, at: usize) -> Option<u64> {
        self.unseal_as(at, APART)
    }

    /// As [`Words::seal`], for [`Words::unseal_apart`].
    #[inline]
    pub(crate) fn seal_apart(self, at: usize, value: u64) {
        self.seal_as(at, value, APART);
    }

    #[inline]
    fn unseal_as(self, at: usize, kind: usize) -> Option<u64> {
        let word = self.read(at);
        let value = word & VALUE_MASK;
        (word >> VALUE_BITS == self.tag(at + kind, value)).then_some(value)
    }

    #[inline]
    fn seal_as(self, at: usize, value: u64, kind: usize) {
        let value = value & VALUE_MASK;
        self.write(at, value | self.tag(at + kind, value) << VALUE_BITS);
    }

    /// Makes a sealed word invalid: its tag gets another bit.
    #[inline]
    pub(crate) fn erase(self, at: usize) {
        self.write(at, self.read(at) ^ 1 << 63);
    }

    /// Returns the distance that a sealed link holds: 0 for none, and for a link that was
    /// overwritten.
    #[inline]
    pub(crate) fn linked(self, at: usize) -> usize {
        self.unseal_link(at).unwrap_or_else(|| {
            crate::damage::report(self.base, at);
            0
        })
    }

    /// Returns the distance that a sealed link holds, or `None` if it was overwritten.
    ///
    /// Links stay in memory that is handed out, where headers of blocks are looked for. None is
    /// taken for another word, and no other word for a link.
    #[inline]
    pub(crate) fn unseal_link(self, at: usize) -> Option<usize> {
        self.unseal_as(at, LINK).map(distance_of)
    }

    /// Stores a distance, or 0, as a sealed link.
    #[inline]
    pub(crate) fn set_linked(self, at: usize, distance: usize) {
        self.seal_as(at, distance as u64 >> GRANULE_SHIFT, LINK);
    }

    /// Returns the address that a sealed link leads to, or 0.
    #[inline]
    pub(crate) fn link(self, at: usize) -> usize {
        match self.linked(at) {
            0 => 0,
            distance => self.address(distance),
        }
    }

    /// Stores the address of a node, or 0, as a sealed link.
    #[inline]
    pub(crate) fn set_link(self, at: usize, node: usize) {
        self.set_linked(at, if node == 0 { 0 } else { self.distance(node) });
    }

    /// Returns a number that is random but fixed for an address of this region.
    #[inline]
    pub(crate) fn rank(self, address: usize) -> u64 {
        let mixed = (self.distance(address) as u64).wrapping_mul(RANK_FACTOR);
        (mixed ^ (mixed >> 32)).wrapping_mul(TAG_FACTOR)
    }

    #[inline]
    fn tag(self, at: usize, value: u64) -> u64 {
        let place = (self.distance(at) as u64).rotate_left(32);
        (value ^ place ^ self.key).wrapping_mul(TAG_FACTOR) >> VALUE_BITS
    }
}

/// Has all words before written before any after, also if the process ends in between.
#[inline]
pub(crate) fn in_order() {
    // SeqCst: pairs with the end of the process, which leaves what was written until then. So only
    // the compiler is held back.
    compiler_fence(Ordering::SeqCst);
}

/// Returns the least common multiple of a number and of the alignment of blocks.
pub(crate) fn common_multiple(number: usize) -> Option<usize> {
    if number == 0 {
        return None;
    }
    let twos = number.trailing_zeros().min(GRANULE_SHIFT);
    number.checked_mul(GRANULE >> twos)
}

/// The distance that 44 bits of granules stand for, with the sign extended.
#[inline]
fn distance_of(value: u64) -> usize {
    ((value << TAG_BITS).cast_signed() >> (TAG_BITS - GRANULE_SHIFT)) as usize
}

/// Words are atomic so that a statistics thread may read what the region's thread writes.
#[inline]
fn word<'a>(at: usize) -> &'a AtomicU64 {
    debug_assert!(at.is_multiple_of(8));
    let pointer = core::ptr::with_exposed_provenance_mut::<u64>(at);
    // SAFETY: the address is one of an aligned word of the region (promise of `Words::new`).
    unsafe { AtomicU64::from_ptr(pointer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_words(test: impl FnOnce(Words, usize)) {
        let memory = [const { AtomicU64::new(0) }; 64];
        let base = memory.as_ptr().expose_provenance();
        // SAFETY: the array lives as long as the closure runs.
        test(unsafe { Words::new(base, 0x1234_5678_9abc_def0) }, base);
    }

    #[test]
    fn a_sealed_word_returns_its_value() {
        on_words(|words, base| {
            for value in [0, 1, 77, VALUE_MASK] {
                words.seal(base + 8, value);
                assert_eq!(words.unseal(base + 8), Some(value));
            }
        });
    }

    #[test]
    fn a_word_with_another_bit_is_not_used() {
        on_words(|words, base| {
            words.seal(base, 0x1_2345);
            let word = words.read(base);
            for bit in 0..64 {
                words.write(base, word ^ (1 << bit));
                assert_eq!(words.unseal(base), None, "bit {bit}");
            }
        });
    }

    #[test]
    fn a_word_that_was_sealed_apart_is_no_other_one() {
        on_words(|words, base| {
            for value in [0, 1, 77, VALUE_MASK] {
                words.seal_apart(base + 8, value);
                assert_eq!(
                    [words.unseal_apart(base + 8), words.unseal(base + 8)],
                    [Some(value), None]
                );
                assert_eq!(words.unseal_link(base + 8), None);
                words.seal(base + 8, value);
                assert_eq!(words.unseal_apart(base + 8), None);
            }
        });
    }

    #[test]
    fn a_link_is_no_other_word() {
        on_words(|words, base| {
            for value in [0, 1, 77, 1 << 30] {
                words.set_linked(base + 8, value * GRANULE);
                assert_eq!(words.unseal_link(base + 8), Some(value * GRANULE));
                assert_eq!([words.unseal(base + 8), words.unseal_apart(base + 8)], [None; 2]);
                words.seal(base + 8, value as u64);
                assert_eq!(words.unseal_link(base + 8), None);
            }
        });
    }

    #[test]
    fn a_word_copied_elsewhere_is_not_used() {
        on_words(|words, base| {
            words.seal(base, 5);
            words.write(base + 8, words.read(base));
            assert_eq!(words.unseal(base + 8), None);
        });
    }

    #[test]
    fn links_reach_over_the_whole_address_space() {
        on_words(|words, base| {
            let far = [base + 16, base.wrapping_sub(16), 0x7fff_ffff_f000, 0x1_0000 + base % 16];
            for node in far.map(|node| node - node % 16 + base % 16) {
                words.set_link(base, node);
                assert_eq!(words.link(base), node);
            }
            words.set_link(base, 0);
            assert_eq!(words.link(base), 0);
        });
    }
}
