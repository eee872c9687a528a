//! Size classes of which no block is a sample. The allocator counts their blocks, so the sums of a
//! profile have them: each class has a row, of a place that is not known.

use crate::profile::{Counts, Line, Location, Profile, Sample};

/// The function of such rows.
const NOT_SAMPLED: &str = "(not sampled)";

/// Blocks of a class of which none is a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Unsampled {
    /// Those in use.
    pub(crate) live: i64,
    /// Those that were freed.
    pub(crate) freed: i64,
}

/// Adds a row for these blocks of a class, which has `bytes` for each block.
pub(crate) fn add(profile: &mut Profile, class: usize, bytes: u64, blocks: Unsampled) {
    let Unsampled { live, freed } = blocks;
    if live == 0 && freed == 0 {
        return;
    }
    let step = step(bytes);
    // The requested sizes are not known: those of a class are in its upper part.
    let size = bytes - step / 2;
    let sum = |blocks: i64| blocks.saturating_mul(i64::try_from(size).unwrap_or(i64::MAX));
    let allocs = live.saturating_add(freed);
    let counts = Counts { allocs, alloc_bytes: sum(allocs), live, live_bytes: sum(live) };
    let stack = stack(profile);
    profile.samples.push(Sample {
        stack,
        counts,
        size: Some(size),
        class: Some(class),
        correction: counts,
        unsampled: Some(step),
        ..Sample::default()
    });
}

/// The stack of such rows, which is made for the first of them.
fn stack(profile: &mut Profile) -> usize {
    let of_row = |sample: &Sample| sample.unsampled.map(|_| sample.stack);
    if let Some(stack) = profile.samples.last().and_then(of_row) {
        return stack;
    }
    let line = Line { function: NOT_SAMPLED.into(), ..Line::default() };
    profile.locations.push(Location { lines: vec![line], ..Location::default() });
    profile.stacks.push(vec![profile.locations.len() - 1]);
    profile.stacks.len() - 1
}

/// From the largest size of the class below to that of a class: jemalloc(3), Table 1.
fn step(bytes: u64) -> u64 {
    match bytes {
        0..=16 => 8.min(bytes),
        17..=128 => 16,
        _ => 1 << ((bytes - 1).ilog2() - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_table_of_classes() {
        let classes = [0, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
        for pair in classes.windows(2) {
            assert_eq!(step(pair[1]), pair[1] - pair[0], "{pair:?}");
        }
        assert_eq!([step(14_336), step(16_384), step(40 << 10)], [2048, 2048, 8 << 10]);
    }
}
