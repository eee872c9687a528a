//! Names of regions.

use crate::ground::text::Line;

/// Bytes for the name of a region, with the NUL at its end.
pub const NAME_BYTES: usize = 32;

/// A name, with NULs behind.
#[derive(Clone, Copy)]
pub(super) struct RegionName([u8; NAME_BYTES]);

impl RegionName {
    /// The name of a region that has none.
    pub(super) const NONE: RegionName = RegionName([0; NAME_BYTES]);

    /// Takes the first bytes of a name.
    pub(super) fn cut(name: &[u8]) -> RegionName {
        let mut cut = [0; NAME_BYTES];
        let bytes = name.iter().take(NAME_BYTES - 1).take_while(|byte| **byte != 0);
        cut.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        RegionName(cut)
    }

    /// Returns the name, or one with the number of the region if it has none.
    pub(super) fn or_of_number(self, number: usize) -> [u8; NAME_BYTES] {
        if self.0.first() == Some(&0) { RegionName::of_number(number).0 } else { self.0 }
    }

    fn of_number(number: usize) -> RegionName {
        let mut text = Line::<NAME_BYTES>::new();
        text.text("region_").number(number as u64);
        RegionName::cut(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_and_ends_with_nul() {
        let long = RegionName::cut(&[b'x'; 40]).or_of_number(0);
        assert_eq!((long[30], long[31]), (b'x', 0));
        let short = RegionName::cut(b"ab\0cd").or_of_number(0);
        assert_eq!(short[..4], *b"ab\0\0");
        assert_eq!(RegionName::NONE.or_of_number(104)[..11], *b"region_104\0");
    }
}
