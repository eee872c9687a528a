//! Ranges of addresses that rise and do not overlap.

/// The addresses from the first word up to the second, and a word about them.
pub type Range = [u64; 3];

/// Returns the word about the range that contains an address.
pub fn find(ranges: &[Range], address: u64) -> Option<u64> {
    let behind = ranges.partition_point(|[start, ..]| *start <= address);
    let [_, end, word] = ranges.get(behind.checked_sub(1)?)?;
    (address < *end).then_some(*word)
}

/// Returns the places of the ranges that a new one overlaps: from the first up to the second. Where
/// there are none, the new one belongs there.
pub fn overlapped(ranges: &[Range], [start, end, _]: Range) -> (usize, usize) {
    let first = ranges.partition_point(|[_, end, _]| *end <= start);
    let behind = ranges.partition_point(|[start, ..]| *start < end);
    (first, behind.max(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn an_address_is_in_the_range_that_contains_it() {
        let ranges = [[16, 32, 1], [32, 48, 2], [64, 80, 3]];
        let found = [0, 15, 16, 31, 32, 47, 48, 63, 64, 79, 80, u64::MAX];
        let found = found.map(|address| find(&ranges, address).unwrap_or(0));
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 0, 0, 3, 3, 0, 0]);
        assert_eq!(find(&[], 16), None);
    }

    #[test]
    fn a_range_overlaps_those_with_an_address_in_common() {
        let ranges = [[16, 32, 1], [32, 48, 2], [64, 80, 3]];
        for (start, end, expected) in [
            (0, 16, (0, 0)),
            (0, 17, (0, 1)),
            (16, 32, (0, 1)),
            (31, 33, (0, 2)),
            (48, 64, (2, 2)),
            (47, 65, (1, 3)),
            (79, 90, (2, 3)),
            (80, 90, (3, 3)),
            (20, 20, (0, 1)),
        ] {
            assert_eq!(overlapped(&ranges, [start, end, 0]), expected, "{start} {end}");
        }
    }

    /// With a look at each range for each address this takes minutes.
    #[test]
    fn many_addresses_are_found_in_many_ranges() {
        let ranges: Vec<Range> = (0..200_000).map(|n| [n * 16, n * 16 + 8, n]).collect();
        for n in 0..200_000 {
            assert_eq!(find(&ranges, n * 16 + 7), Some(n));
            assert_eq!(find(&ranges, n * 16 + 8), None);
        }
    }
}
