//! The mappings of many addresses at once, in time that grows with their number and not with the
//! product of addresses and mappings.

use std::collections::BTreeSet;

use crate::profile::Mapping;

/// An address, and how many of the mappings were known when it was seen.
pub(crate) type Asked = (u64, usize);

/// Returns the mapping of each address: the last one of those that were known and contain it, or
/// else the first one of the others.
pub(crate) fn find(mappings: &[Mapping], asked: &[Asked]) -> Vec<Option<usize>> {
    let addresses: Vec<u64> = asked.iter().map(|(address, _)| *address).collect();
    let mut found = vec![None; asked.len()];
    for_each(mappings, &addresses, |place, around| {
        let known = asked[place].1;
        let last = around.range(..known).next_back();
        found[place] = last.or_else(|| around.range(known..).next()).copied();
    });
    found
}

/// Calls a function with the place of each address, and the mappings that contain it.
pub(crate) fn for_each(
    mappings: &[Mapping],
    addresses: &[u64],
    mut with: impl FnMut(usize, &BTreeSet<usize>),
) {
    let mut begins: Vec<usize> = (0..mappings.len()).collect();
    begins.retain(|index| mappings[*index].start < mappings[*index].limit);
    let mut ends = begins.clone();
    begins.sort_unstable_by_key(|index| mappings[*index].start);
    ends.sort_unstable_by_key(|index| mappings[*index].limit);
    let (mut begins, mut ends) = (begins.into_iter().peekable(), ends.into_iter().peekable());
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    order.sort_unstable_by_key(|place| addresses[*place]);
    // Those that contain the address.
    let mut around = BTreeSet::new();
    for place in order {
        let address = addresses[place];
        while let Some(index) = begins.next_if(|index| mappings[*index].start <= address) {
            around.insert(index);
        }
        while let Some(index) = ends.next_if(|index| mappings[*index].limit <= address) {
            around.remove(&index);
        }
        with(place, &around);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping((start, limit): (u64, u64)) -> Mapping {
        Mapping { start, limit, ..Mapping::default() }
    }

    proptest! {
        #[test]
        fn the_right_one_of_several_is_found(
            ranges in proptest::collection::vec((0u64..40, 0u64..40), 0..12),
            asked in proptest::collection::vec((0u64..41, 0usize..14), 0..20),
        ) {
            let mappings: Vec<Mapping> = ranges.into_iter().map(mapping).collect();
            let one = |(address, known): &Asked| {
                let known = *known.min(&mappings.len());
                let mut order = (0..known).rev().chain(known..mappings.len());
                order.find(|at| (mappings[*at].start..mappings[*at].limit).contains(address))
            };
            let expected: Vec<Option<usize>> = asked.iter().map(one).collect();
            prop_assert_eq!(find(&mappings, &asked), expected);
        }
    }
}
