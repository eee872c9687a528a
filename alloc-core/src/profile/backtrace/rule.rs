//! How to get from a frame to the frame of its caller, in one word, and a table of rules by
//! address.
//!
//! The rule of an address is found once in the unwind tables and then taken from the table.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What the canonical frame address (CFA) of a frame is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer.
    Frame,
    /// The word at an offset from the frame pointer holds the CFA.
    WordAtFrame,
}

/// How to get from a frame to the frame of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// There is no caller, or the tables describe it in a way that is not followed.
    End,
    /// The tables do not know the address.
    Unknown,
    /// The caller's values are stored near the CFA.
    Step(Step),
}

/// Where the caller's values are. Offsets are in bytes from the CFA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// What the CFA is counted from.
    pub(super) base: Base,
    /// The offset of the CFA from that, in bytes.
    pub(super) offset: i32,
    /// Where the caller's frame pointer is. `None`: it is still in its register.
    pub(super) frame: Option<i16>,
    /// Where the return address is. `None`: it is in the link register.
    pub(super) back: Option<i16>,
    /// Whether the function belongs to the allocator.
    pub(super) is_own: bool,
}

/// A rule as one word. A walk over the stack has it in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packed(NonZeroU64);

/// Stands for `None` in an offset.
const NONE: i16 = i16::MIN;

const END: u64 = 1;
const UNKNOWN: u64 = 2;
const STEP: u64 = 3;
const KIND: u64 = 0b11;

impl Rule {
    /// Returns the rule as one word.
    pub(super) fn pack(self) -> Packed {
        let word = match self {
            Rule::End => END,
            Rule::Unknown => UNKNOWN,
            Rule::Step(step) => step.word(),
        };
        // Each of these has a kind, which is not 0.
        Packed(NonZeroU64::new(word).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the rule if its numbers fit into a word, and else [`Rule::End`].
    pub(super) fn fitting(self) -> Rule {
        if self.pack().rule() == self { self } else { Rule::End }
    }
}

impl Step {
    fn word(self) -> u64 {
        // 2 bits of kind, 2 of base, 1 of ownership, 27 of the CFA's offset, 16 and 16.
        let base = match self.base {
            Base::Stack => 0,
            Base::Frame => 1,
            Base::WordAtFrame => 2,
        };
        let low =
            STEP | base << 2 | u64::from(self.is_own) << 4 | u64::from(self.offset as u32) << 5;
        let part = |offset: Option<i16>| u64::from(offset.unwrap_or(NONE) as u16);
        low & u64::from(u32::MAX) | part(self.frame) << 32 | part(self.back) << 48
    }
}

impl Packed {
    /// Returns the rule.
    #[inline(always)]
    pub(super) fn rule(self) -> Rule {
        let word = self.0.get();
        match word & KIND {
            STEP => {}
            END => return Rule::End,
            _ => return Rule::Unknown,
        }
        let part = |bits: u64| Some(bits as u16 as i16).filter(|offset| *offset != NONE);
        Rule::Step(Step {
            base: match word >> 2 & 0b11 {
                0 => Base::Stack,
                1 => Base::Frame,
                _ => Base::WordAtFrame,
            },
            is_own: word >> 4 & 1 != 0,
            offset: word as u32 as i32 >> 5,
            frame: part(word >> 32),
            back: part(word >> 48),
        })
    }
}

/// Rules of addresses. Any thread may read and write at any time.
pub(super) struct RuleTable<const N: usize> {
    places: [Place; N],
    /// Whether a rule was ever noted. A table without rules is not cleared: its pages take no
    /// memory.
    is_used: AtomicBool,
}

/// The rule of one address. The words belong together only if `check` is the address combined with
/// the rule, so that a mix of two writers' words is noticed.
struct Place {
    check: AtomicU64,
    rule: AtomicU64,
}

impl Place {
    const fn empty() -> Place {
        Place { check: AtomicU64::new(0), rule: AtomicU64::new(0) }
    }
}

impl<const N: usize> RuleTable<N> {
    /// Creates a table without rules.
    pub(super) const fn new() -> RuleTable<N> {
        const { assert!(N.is_power_of_two()) };
        RuleTable { places: [const { Place::empty() }; N], is_used: AtomicBool::new(false) }
    }

    #[inline(always)]
    fn place(&self, address: usize) -> Option<&Place> {
        // Fibonacci hashing: the high bits depend on all bits of the address.
        let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.places.get(mixed as usize % N)
    }

    /// Returns the rule of an address, if the table has it.
    #[inline(always)]
    pub(super) fn get(&self, address: usize) -> Option<Packed> {
        let place = self.place(address)?;
        let word = NonZeroU64::new(place.rule.load(Relaxed))?;
        (place.check.load(Relaxed) ^ word.get() == address as u64).then_some(Packed(word))
    }

    /// Notes the rule of an address, in place of another address's rule.
    pub(super) fn put(&self, address: usize, Packed(word): Packed) {
        let Some(place) = self.place(address) else { return };
        let word = word.get();
        self.is_used.store(true, Relaxed);
        place.rule.store(word, Relaxed);
        place.check.store(word ^ address as u64, Relaxed);
    }

    /// Forgets all rules.
    pub(super) fn clear(&self) {
        if self.is_used.load(Relaxed) {
            self.places.iter().for_each(|place| place.rule.store(0, Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(base: Base, offset: i32) -> Step {
        Step { base, offset, frame: Some(-16), back: Some(-8), is_own: false }
    }

    proptest! {
        #[test]
        fn fixed_a_rule_survives_its_word(
            base in prop_oneof![Just(Base::Stack), Just(Base::Frame), Just(Base::WordAtFrame)],
            offset in -(1 << 26)..1i32 << 26,
            frame in proptest::option::of(i16::MIN + 1..i16::MAX),
            back in proptest::option::of(i16::MIN + 1..i16::MAX),
            is_own: bool,
        ) {
            let rule = Rule::Step(Step { base, offset, frame, back, is_own });
            prop_assert_eq!(rule.pack().rule(), rule);
            prop_assert_eq!(rule.fitting(), rule);
        }
    }

    #[test]
    fn fixed_a_rule_that_does_not_fit_ends_the_walk() {
        for rule in [Rule::End, Rule::Unknown] {
            assert_eq!(rule.pack().rule(), rule);
        }
        assert_eq!(Rule::Step(step(Base::Stack, 1 << 26)).fitting(), Rule::End);
        let no_frame = Step { frame: Some(i16::MIN), ..step(Base::Stack, 8) };
        assert_eq!(Rule::Step(no_frame).fitting(), Rule::End);
    }

    #[test]
    fn fixed_a_table_knows_what_it_was_told_last() {
        let table: RuleTable<64> = RuleTable::new();
        for address in 0..1000 {
            assert_eq!(table.get(address), None);
            let rule = Rule::Step(step(Base::Frame, address as i32)).pack();
            table.put(address, rule);
            assert_eq!(table.get(address), Some(rule));
        }
        let known = (0..1000).filter(|address| table.get(*address).is_some()).count();
        assert!(known > 32 && known <= 64, "{known}");
        table.put(5, Rule::End.pack());
        assert_eq!(table.get(5), Some(Rule::End.pack()));
        table.clear();
        assert!((0..1000).all(|address| table.get(address).is_none()));
    }
}
