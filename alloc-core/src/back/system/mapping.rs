//! The system's mappings that the pages of runs lie in, and how many such mappings there are.
//!
//! A process may have only so many mappings (`vm.max_map_count`). Those that the allocator makes
//! are counted by kind. When one kind has reached an eighth of that number, no more of it are made:
//!
//! ```text
//!   runs that are mappings of their own     no block is moved, or advised as a whole
//!   stretches of advised chunks, and        no chunk is advised
//!   broken chunks (`runs::chunk_notes`)
//!   stretches of addresses                  none are given back from between others
//!   (`runs::reserved`)
//! ```
//! A stretch of chunks or of addresses has two ends, so it may make two mappings.

use crate::ground::files;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};

/// The kind of mapping that the pages of a run lie in.
///
/// Runs of different mappings are merged only as [`Mapping::merged`] allows, because the system
/// moves one mapping at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mapping {
    /// The mapping that was reserved.
    Ordinary,
    /// Chunks for which huge pages were asked at some time: see [`crate::back::placement::dense`].
    /// A chunk is a mapping of its own only where it is advised and its neighbour is not.
    Chunks,
    /// A mapping of its own, for all of which huge pages were asked.
    Huge,
    /// As [`Mapping::Huge`], except for the end of the run. The end is a mapping of its own until
    /// the block needs it or the run is used again.
    HugeButEnd,
    /// Several mappings, because the run was made longer or is made of several.
    Several,
    /// A mapping of its own, which a move with this number made.
    Moved(MoveNumber),
    /// An extent hook took the memory away.
    Decommitted,
    /// A mapping at low addresses, for samples alone: see [`crate::ground::low`].
    Low,
}

/// The number of a move: 1 to [`MoveNumber::LAST`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MoveNumber(u16);

impl MoveNumber {
    const LAST: u16 = words::LOW - 1;

    /// The number of the next move. Numbers repeat: if two runs with the same number touch, they
    /// are merged. Their memory then cannot be moved but is copied.
    pub(in crate::back) fn next() -> MoveNumber {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        MoveNumber(COUNT.fetch_add(1, Relaxed) % MoveNumber::LAST + 1)
    }
}

impl Mapping {
    /// Whether the allocator has made the run a mapping of its own. What a hook does is not
    /// counted.
    pub(in crate::back) fn is_own(self) -> bool {
        use Mapping::{Chunks, Decommitted, Low, Ordinary};
        !matches!(self, Ordinary | Chunks | Decommitted | Low)
    }

    /// Whether huge pages were asked for the run itself.
    pub(in crate::back) fn is_advised(self) -> bool {
        matches!(self, Mapping::Huge | Mapping::HugeButEnd | Mapping::Several)
    }

    /// Whether the run may lie in chunks, for which huge pages are asked one by one.
    #[inline]
    pub(in crate::back) fn may_be_chunks(self) -> bool {
        matches!(self, Mapping::Chunks | Mapping::Low)
    }

    /// Whether the system moves the run as a whole.
    pub(in crate::back) fn can_be_moved(self) -> bool {
        !matches!(self, Mapping::Chunks | Mapping::Several | Mapping::Low)
    }

    /// The mapping of a run made of two neighbours, or `None` if they are not merged.
    #[inline]
    pub(in crate::back) fn merged(left: Mapping, right: Mapping) -> Option<Mapping> {
        use Mapping::{Chunks, Huge, HugeButEnd, Ordinary};
        match (left, right) {
            _ if left == right => Some(left),
            (Ordinary, Chunks) | (Chunks, Ordinary) => Some(Chunks),
            (Huge, HugeButEnd) | (HugeButEnd, Huge) => Some(HugeButEnd),
            _ => None,
        }
    }

    const fn to_word(self) -> u16 {
        match self {
            Mapping::Ordinary => words::ORDINARY,
            Mapping::Moved(MoveNumber(number)) => number,
            Mapping::Chunks => words::CHUNKS,
            Mapping::Huge => words::HUGE,
            Mapping::HugeButEnd => words::HUGE_BUT_END,
            Mapping::Several => words::SEVERAL,
            Mapping::Decommitted => words::DECOMMITTED,
            Mapping::Low => words::LOW,
        }
    }

    const fn from_word(word: u16) -> Mapping {
        match word {
            words::ORDINARY => Mapping::Ordinary,
            words::CHUNKS => Mapping::Chunks,
            words::HUGE => Mapping::Huge,
            words::HUGE_BUT_END => Mapping::HugeButEnd,
            words::SEVERAL => Mapping::Several,
            words::DECOMMITTED => Mapping::Decommitted,
            words::LOW => Mapping::Low,
            number => Mapping::Moved(MoveNumber(number)),
        }
    }
}

/// The mappings as the two bytes that a record has for them. A move's number stands for itself.
mod words {
    pub(in crate::back) const ORDINARY: u16 = 0;
    pub(in crate::back) const CHUNKS: u16 = u16::MAX;
    pub(in crate::back) const HUGE: u16 = u16::MAX - 1;
    pub(in crate::back) const HUGE_BUT_END: u16 = u16::MAX - 2;
    pub(in crate::back) const SEVERAL: u16 = u16::MAX - 3;
    pub(in crate::back) const DECOMMITTED: u16 = u16::MAX - 4;
    pub(in crate::back) const LOW: u16 = u16::MAX - 5;
}

// 0 is no move, and the numbers of moves end below the other words.
const _: () = assert!(words::ORDINARY == 0 && MoveNumber::LAST < words::LOW);

/// The mapping of a run, in its record. Runs that are mappings of their own are counted. One thread
/// at a time sets it, and others may read it.
pub(in crate::back) struct MappingCell(AtomicU16);

impl MappingCell {
    /// Creates the cell of an ordinary mapping.
    pub(in crate::back) const fn new() -> MappingCell {
        MappingCell(AtomicU16::new(Mapping::Ordinary.to_word()))
    }

    /// The mapping.
    #[inline]
    pub(in crate::back) fn get(&self) -> Mapping {
        Mapping::from_word(self.0.load(Relaxed))
    }

    /// Sets the mapping.
    pub(in crate::back) fn set(&self, mapping: Mapping) {
        if self.get() == mapping {
            return;
        }
        match (self.get().is_own(), mapping.is_own()) {
            (false, true) => drop(OWN.fetch_add(1, Relaxed)),
            (true, false) => drop(OWN.fetch_sub(1, Relaxed)),
            _ => {}
        }
        self.0.store(mapping.to_word(), Relaxed);
    }
}

/// The number of runs that are mappings of their own.
static OWN: AtomicUsize = AtomicUsize::new(0);
/// The part of the system's limit on mappings that such runs may reach.
const PART_OF_MAPPINGS: usize = 8;
/// The limit on mappings if the system does not tell it.
const USUAL_MAPPINGS: usize = 65530;

/// Whether there may be one more run that is a mapping of its own.
pub(in crate::back) fn has_room() -> bool {
    has_room_for_parts(1)
}

/// As [`has_room`], if each such run counts as this many mappings.
pub(in crate::back) fn has_room_for_parts(mappings: usize) -> bool {
    may_have(OWN.load(Relaxed).saturating_mul(mappings))
}

/// Whether there may be more than this many mappings of one kind.
pub(in crate::back) fn may_have(mappings: usize) -> bool {
    mappings < most()
}

/// Reads the system's limit on mappings, unless that was done. A program may enter a sandbox later
/// in which it can open no file.
pub(super) fn note_limit() {
    most();
}

/// The most mappings of one kind. Asks the system once.
fn most() -> usize {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let known = MOST.load(Relaxed);
    if known != 0 {
        return known;
    }
    let mut buffer = [0; 32];
    let text = files::read(c"/proc/sys/vm/max_map_count", &mut buffer);
    let most = text.map_or(USUAL_MAPPINGS, leading_number) / PART_OF_MAPPINGS;
    MOST.store(most.max(1), Relaxed);
    most.max(1)
}

fn leading_number(text: &[u8]) -> usize {
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0usize, |n, c| n.saturating_mul(10).saturating_add(usize::from(c - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mapping::{Chunks, Decommitted, Huge, HugeButEnd, Moved, Ordinary, Several};

    const MOVES: [Mapping; 2] = [Moved(MoveNumber(1)), Moved(MoveNumber(MoveNumber::LAST))];
    const OTHERS: [Mapping; 6] = [Ordinary, Chunks, Huge, HugeButEnd, Several, Decommitted];

    #[test]
    fn the_system_s_limit_is_read_as_it_is_written() {
        assert_eq!(leading_number(b"65530\n"), 65530);
        assert_eq!(leading_number(b""), 0);
        assert_eq!(leading_number(b"99999999999999999999999"), usize::MAX);
        assert!(most() >= 1 && most() < usize::MAX);
    }

    #[test]
    fn a_record_keeps_each_mapping() {
        let cell = MappingCell::new();
        assert_eq!(cell.get(), Ordinary);
        for mapping in OTHERS.into_iter().chain(MOVES) {
            cell.set(mapping);
            assert_eq!(cell.get(), mapping);
        }
        cell.set(Ordinary);
        assert!(Huge.is_own() && !Decommitted.is_own(), "hooks make no mapping of the allocator's");
        assert!((0..=u16::MAX).all(|word| Mapping::from_word(word).to_word() == word));
    }

    #[test]
    fn every_move_has_a_number() {
        for _ in 0..=u16::MAX {
            let MoveNumber(number) = MoveNumber::next();
            assert!((1..=MoveNumber::LAST).contains(&number));
        }
        assert_ne!(MoveNumber::next(), MoveNumber::next());
    }

    #[test]
    fn runs_of_one_mapping_are_merged_and_few_others() {
        let all = || OTHERS.into_iter().chain(MOVES);
        for (left, right) in all().flat_map(|left| all().map(move |right| (left, right))) {
            let expected = match (left, right) {
                (Ordinary, Chunks) | (Chunks, Ordinary) => Some(Chunks),
                (Huge, HugeButEnd) | (HugeButEnd, Huge) => Some(HugeButEnd),
                _ => (left == right).then_some(left),
            };
            assert_eq!(Mapping::merged(left, right), expected, "{left:?} {right:?}");
        }
    }
}
