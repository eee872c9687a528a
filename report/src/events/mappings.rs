//! What was mapped when.

use crate::profile::Mapping;

/// The mappings of a recording. Those of a later part of the file replace earlier ones from then
/// on.
#[derive(Default)]
pub(crate) struct Mappings {
    all: Vec<Mapping>,
    /// Of each mapping, the number of the part that has it.
    parts: Vec<u32>,
    /// The number of parts so far.
    count: u32,
}

impl Mappings {
    /// Begins a new part.
    pub(super) fn begin(&mut self) {
        self.count += 1;
    }

    /// Adds a mapping to the part.
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.all.push(mapping);
        self.parts.push(self.count);
    }

    /// All mappings.
    pub(super) fn all(&self) -> &[Mapping] {
        &self.all
    }

    /// The number of parts so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Puts mappings into the order in which they are to be asked about an address that was seen
    /// after so many parts: the last ones before that, then the first ones after it, which have
    /// what was mapped in between.
    pub(super) fn order(&self, seen: u32) -> impl Iterator<Item = usize> + '_ {
        let known = self.known(seen);
        (0..known).rev().chain(known..self.all.len())
    }

    /// How many mappings the first parts have.
    pub(super) fn known(&self, seen: u32) -> usize {
        self.parts.partition_point(|part| *part <= seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges;

    #[test]
    fn a_later_mapping_holds_from_then_on() {
        let mut mappings = Mappings::default();
        for (start, limit) in [(0x1000, 0x3000), (0x2000, 0x4000), (0x5000, 0x6000)] {
            mappings.begin();
            mappings.add(Mapping { start, limit, ..Mapping::default() });
        }
        for (address, seen, expected) in [
            (0x2000, 1, Some(0)),
            (0x2000, 2, Some(1)),
            (0x1fff, 3, Some(0)),
            (0x3fff, 1, Some(1)),
            (0x5000, 0, Some(2)),
            (0x4000, 3, None),
        ] {
            let found = ranges::find(mappings.all(), &[(address, mappings.known(seen))]);
            assert_eq!(found, [expected], "{address:#x} {seen}");
        }
        assert_eq!(mappings.order(1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(mappings.order(3).collect::<Vec<_>>(), [2, 1, 0]);
    }
}
