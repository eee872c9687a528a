//! How to get from a frame to the frame of its caller, in one word, and a table of rules by
//! address.
//!
//! The rule of an address is found once in the unwind tables and then taken from the table.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What the canonical frame address (CFA) of a frame is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer.
    Frame,
    /// The word at an offset from the frame pointer holds the CFA.
    WordAtFrame,
    /// As [`Base::WordAtFrame`], and the frame pointer points to that of the caller.
    WordAtLinkedFrame,
}

/// How to get from a frame to the frame of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// There is no caller, or the tables describe it in a way that is not followed.
    End,
    /// The tables do not know the address.
    Unknown,
    /// The code is the return from a signal handler, where the system allows to go on.
    Signal,
    /// The caller's values are stored near the CFA.
    Step(Step),
}

/// Where the caller's values are, at whole words from the CFA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// What the CFA is counted from.
    pub(super) base: Base,
    /// The offset of the CFA from that, in bytes.
    pub(super) offset: i32,
    /// Where the caller's frame pointer is, in words. `None`: it is still in its register.
    pub(super) frame: Option<i16>,
    /// Where the return address is, in words. `None`: it is in the link register.
    pub(super) back: Option<i16>,
    /// Whether the function belongs to the allocator.
    pub(super) is_own: bool,
}

/// A rule as one word. A walk over the stack has it in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packed(NonZeroU64);

/// Stands for `None` in an offset.
const NONE: i16 = i16::MIN;
/// Bytes of a word.
pub(super) const WORD: isize = size_of::<usize>() as isize;

/// Most steps are plain: see [`Plain`].
const PLAIN: u64 = 0;
const END: u64 = 1;
const UNKNOWN: u64 = 2;
const STEP: u64 = 3;
const KIND: u64 = 0b11;
const BY_FRAME: u64 = 1 << 2;
const OWN: u64 = 1 << 4;
/// Tells [`Rule::Signal`] from [`Rule::End`].
const SIGNAL: u64 = END | 1 << 5;

impl Rule {
    /// Returns the rule as one word.
    pub(super) fn pack(self) -> Packed {
        let word = match self {
            Rule::End => END,
            Rule::Unknown => UNKNOWN,
            Rule::Signal => SIGNAL,
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
        let kind = if self.is_plain() { PLAIN } else { STEP };
        let base = match self.base {
            Base::Stack => 0,
            Base::Frame => 1,
            Base::WordAtFrame => 2,
            Base::WordAtLinkedFrame => 3,
        };
        let low =
            kind | base << 2 | u64::from(self.is_own) << 4 | u64::from(self.offset as u32) << 5;
        let part = |offset: Option<i16>| u64::from(offset.unwrap_or(NONE) as u16);
        low & u64::from(u32::MAX) | part(self.frame) << 32 | part(self.back) << 48
    }

    /// Returns whether all values lie below the CFA, the return address among them. Its word is not
    /// 0.
    fn is_plain(self) -> bool {
        let is_below = |offset: i16| offset < 0;
        matches!(self.base, Base::Stack | Base::Frame)
            && self.frame.is_none_or(is_below)
            && self.back.is_some_and(is_below)
    }
}

impl Packed {
    /// Returns the rule.
    #[inline(always)]
    pub(super) fn rule(self) -> Rule {
        let word = self.0.get();
        match word & KIND {
            END if word == SIGNAL => return Rule::Signal,
            END => return Rule::End,
            UNKNOWN => return Rule::Unknown,
            _ => {}
        }
        let part = |bits: u64| Some(bits as u16 as i16).filter(|offset| *offset != NONE);
        Rule::Step(Step {
            base: match word >> 2 & 0b11 {
                0 => Base::Stack,
                1 => Base::Frame,
                2 => Base::WordAtFrame,
                _ => Base::WordAtLinkedFrame,
            },
            is_own: word >> 4 & 1 != 0,
            offset: word as u32 as i32 >> 5,
            frame: part(word >> 32),
            back: part(word >> 48),
        })
    }

    /// Returns whether the rule is that of a function of the allocator.
    #[inline(always)]
    pub(super) fn is_own(self) -> bool {
        // Rules without a step have no such bit.
        self.0.get() & OWN != 0
    }

    /// Returns whether there is no caller.
    #[inline(always)]
    pub(super) fn is_end(self) -> bool {
        self.0.get() == END
    }

    /// Returns the rule as a plain step, if it is one.
    #[inline(always)]
    pub(super) fn plain(self) -> Option<Plain> {
        (self.0.get() & KIND == PLAIN).then_some(Plain(self.0.get()))
    }
}

/// A step whose values lie below the CFA.
#[derive(Clone, Copy)]
pub(super) struct Plain(u64);

impl Plain {
    /// Returns what the CFA is counted from, of the stack pointer and the frame pointer.
    #[inline(always)]
    pub(super) fn base(self, stack: usize, frame: usize) -> usize {
        if self.is_by_frame() { frame } else { stack }
    }

    /// Returns whether the CFA is counted from the frame pointer.
    #[inline(always)]
    pub(super) fn is_by_frame(self) -> bool {
        self.0 & BY_FRAME != 0
    }

    /// Returns the offset of the CFA.
    #[inline(always)]
    pub(super) fn offset(self) -> isize {
        (self.0 as u32 as i32 >> 5) as isize
    }

    /// Returns where the caller's frame pointer is, in words. `None`: it is still in its register.
    #[inline(always)]
    pub(super) fn frame(self) -> Option<isize> {
        let offset = (self.0 >> 32) as i16;
        (offset != NONE).then_some(isize::from(offset))
    }

    /// Returns where the return address is, in words.
    #[inline(always)]
    pub(super) fn back(self) -> isize {
        self.0 as i64 as isize >> 48
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
#[repr(align(32))]
struct Place {
    check: AtomicU64,
    rule: AtomicU64,
    /// The index of a place whose rule was needed after this one: most often it is again. 0: none.
    next: AtomicU32,
}

impl Place {
    /// Returns the rule, if it is that of the address.
    #[inline(always)]
    fn rule_of(&self, address: usize) -> Option<Packed> {
        let word = NonZeroU64::new(self.rule.load(Relaxed))?;
        (self.check.load(Relaxed) ^ word.get() == address as u64).then_some(Packed(word))
    }

    const fn empty() -> Place {
        Place { check: AtomicU64::new(0), rule: AtomicU64::new(0), next: AtomicU32::new(0) }
    }
}

impl<const N: usize> RuleTable<N> {
    /// Creates a table without rules.
    pub(super) const fn new() -> RuleTable<N> {
        const { assert!(N.is_power_of_two()) };
        RuleTable { places: [const { Place::empty() }; N], is_used: AtomicBool::new(false) }
    }

    fn index_of(address: usize) -> usize {
        // Fibonacci hashing: the high bits depend on all bits of the address.
        let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize % N
    }

    /// Returns the rule of an address and its index, if the table has it. It is at one of two
    /// places, which are in one cache line, so that two addresses of a stack have room where their
    /// hashes are the same.
    #[inline]
    fn find(&self, address: usize) -> Option<(Packed, usize)> {
        let first = Self::index_of(address);
        let at = |index: usize| Some((self.places.get(index)?.rule_of(address)?, index));
        at(first).or_else(|| at(first ^ 1))
    }

    /// Returns the rule of an address, if the table has it.
    #[inline(always)]
    pub(super) fn get(&self, address: usize) -> Option<Packed> {
        self.find(address).map(|(rule, _)| rule)
    }

    /// As [`RuleTable::get`], for a walk that found its last rule at the index `at`, which becomes
    /// that of this one. The place that followed then is looked at first, because its index is
    /// known before the address is.
    #[inline(always)]
    pub(super) fn get_next(&self, at: &mut usize, address: usize) -> Option<Packed> {
        let before = self.places.get(*at % N)?;
        let next = before.next.load(Relaxed) as usize % N;
        *at = next;
        if let Some(rule) = self.places.get(next)?.rule_of(address) {
            return Some(rule);
        }
        let other = self.find_other(before, address);
        *at = other.map_or_else(|| Self::index_of(address), |(_, found)| found);
        other.map(|(rule, _)| rule)
    }

    /// Returns the rule of an address and its index, if the table has it. If no place is known to
    /// come after `before`, that one is from now on.
    #[inline(never)]
    fn find_other(&self, before: &Place, address: usize) -> Option<(Packed, usize)> {
        let (rule, found) = self.find(address)?;
        if before.next.load(Relaxed) == 0 {
            before.next.store(found as u32, Relaxed);
        }
        Some((rule, found))
    }

    /// Notes the rule of an address, if need be in place of another address's rule.
    pub(super) fn put(&self, address: usize, Packed(word): Packed) {
        let first = Self::index_of(address);
        let is_free = |index: &usize| {
            self.places.get(*index).is_some_and(|place| place.rule.load(Relaxed) == 0)
        };
        let known = self.find(address).map(|(_, index)| index);
        let index = known.or_else(|| Some(first).filter(is_free)).unwrap_or(first ^ 1);
        let Some(place) = self.places.get(index) else { return };
        let word = word.get();
        self.is_used.store(true, Relaxed);
        place.rule.store(word, Relaxed);
        place.check.store(word ^ address as u64, Relaxed);
        place.next.store(0, Relaxed);
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
        Step { base, offset, frame: Some(-2), back: Some(-1), is_own: false }
    }

    proptest! {
        #[test]
        fn fixed_a_rule_survives_its_word(
            base in prop_oneof![
                Just(Base::Stack),
                Just(Base::Frame),
                Just(Base::WordAtFrame),
                Just(Base::WordAtLinkedFrame),
            ],
            offset in -(1 << 26)..1i32 << 26,
            frame in proptest::option::of(i16::MIN + 1..i16::MAX),
            back in proptest::option::of(i16::MIN + 1..i16::MAX),
            is_own: bool,
        ) {
            let rule = Rule::Step(Step { base, offset, frame, back, is_own });
            prop_assert_eq!(rule.pack().rule(), rule);
            prop_assert_eq!(rule.fitting(), rule);
            prop_assert!(rule.pack().is_own() == is_own && !rule.pack().is_end());
            if let Some(plain) = rule.pack().plain() {
                let base_of = if base == Base::Stack { 1 } else { 2 };
                prop_assert_eq!(plain.base(1, 2), base_of);
                prop_assert_eq!(plain.offset(), offset as isize);
                prop_assert_eq!(plain.frame(), frame.map(isize::from));
                prop_assert_eq!(Some(plain.back()), back.map(isize::from));
            }
        }
    }

    #[test]
    fn fixed_plain_steps_have_words_below_the_address_of_the_frame() {
        let usual = step(Base::Stack, 16);
        let is_plain = |step: Step| Rule::Step(step).pack().plain().is_some();
        assert!(is_plain(usual) && is_plain(Step { base: Base::Frame, frame: None, ..usual }));
        assert!(!is_plain(Step { base: Base::WordAtFrame, ..usual }));
        for offset in [0, 1] {
            assert!(!is_plain(Step { frame: Some(offset), ..usual }));
            assert!(!is_plain(Step { back: Some(offset), ..usual }));
        }
        assert!(!is_plain(Step { back: None, ..usual }));
        for rule in [Rule::End, Rule::Unknown, Rule::Signal] {
            assert!(rule.pack().plain().is_none() && !rule.pack().is_own());
        }
    }

    #[test]
    fn fixed_a_rule_is_found_after_others_than_the_first_that_followed() {
        let table: RuleTable<64> = RuleTable::new();
        let rule = |address| Rule::Step(step(Base::Frame, address as i32)).pack();
        let walk = [3, 70, 9, 3, 9, 70, 1000, 3, 70];
        for _ in 0..2 {
            let mut at = 0;
            for address in walk {
                let found = table.get_next(&mut at, address);
                if found.is_none() {
                    table.put(address, rule(address));
                }
                assert!(found.is_none_or(|found| found == rule(address)), "{address}");
            }
        }
        assert!(walk.iter().all(|address| table.get(*address) == Some(rule(*address))));
    }

    #[test]
    fn fixed_two_addresses_of_one_place_are_both_known() {
        let table: RuleTable<64> = RuleTable::new();
        let index = RuleTable::<64>::index_of;
        let other = (2..1000).find(|address| index(*address) == index(1)).expect("an address");
        let rule = |address: usize| Rule::Step(step(Base::Frame, address as i32)).pack();
        for address in [1, other] {
            table.put(address, rule(address));
        }
        for _ in 0..3 {
            let mut at = 0;
            for address in [1, other, 1] {
                assert_eq!(table.get_next(&mut at, address), Some(rule(address)), "{address}");
            }
        }
    }

    #[test]
    fn fixed_a_rule_that_does_not_fit_ends_the_walk() {
        for rule in [Rule::End, Rule::Unknown, Rule::Signal] {
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
