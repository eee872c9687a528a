//! Which blocks and events are shown.

use regex::Regex;

/// Numbers from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

impl Range {
    /// All numbers.
    pub const ALL: Range = Range { min: 0, max: u64::MAX };

    pub(super) fn contains(&self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }
}

/// A thread, as it is written: `TID` or `PID-TID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process; none means any.
    pub pid: Option<u64>,
    /// The system's number of the thread.
    pub tid: u64,
}

/// Whether blocks that are older than the recording are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Old {
    /// They and all others.
    #[default]
    Included,
    /// They alone.
    Only,
    /// They are not.
    Excluded,
}

/// What is shown.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The thread of the event; of a block, a thread that allocated or deleted it.
    pub thread: Option<Thread>,
    /// The size of the block.
    pub size: Range,
    /// What the type of the block contains.
    pub kind: Option<Regex>,
    /// What the stack of the event contains; of a block, one of its two stacks.
    pub stack: Option<Regex>,
    /// The age of the block in nanoseconds, when it was deleted or at the end of the recording.
    pub age: Range,
    /// Old blocks.
    pub old: Old,
}

impl Default for Filter {
    fn default() -> Filter {
        let (size, age) = (Range::ALL, Range::ALL);
        Filter { thread: None, size, kind: None, stack: None, age, old: Old::Included }
    }
}

impl Filter {
    /// Whether a choice needs both events of a block.
    pub(super) fn is_of_blocks(&self) -> bool {
        self.size != Range::ALL
            || self.age != Range::ALL
            || self.kind.is_some()
            || self.old != Old::Included
    }

    /// Whether the thread is shown.
    pub(super) fn has_thread(&self, pid: u64, tid: u64) -> bool {
        let is_it = |it: Thread| it.tid == tid && it.pid.is_none_or(|it| it == pid);
        self.thread.is_none_or(is_it)
    }

    /// Whether an age is shown. That of an old block is not known, only that it is not less.
    pub(super) fn has_age(&self, age: u64, is_old: bool) -> bool {
        match is_old {
            true => age >= self.age.min && self.age.max == u64::MAX || self.age == Range::ALL,
            false => self.age.contains(age),
        }
    }

    /// Whether old blocks, or others, are shown.
    pub(super) fn has_origin(&self, is_old: bool) -> bool {
        match self.old {
            Old::Included => true,
            Old::Only => is_old,
            Old::Excluded => !is_old,
        }
    }

    /// Whether a type is shown.
    pub(super) fn has_type(&self, kind: &str) -> bool {
        self.kind.as_ref().is_none_or(|filter| filter.is_match(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_of_any_process_or_of_one() {
        let filter = |pid, tid| Filter { thread: Some(Thread { pid, tid }), ..Filter::default() };
        assert!(filter(None, 7).has_thread(1, 7) && filter(Some(1), 7).has_thread(1, 7));
        assert!(!filter(None, 7).has_thread(1, 8) && !filter(Some(2), 7).has_thread(1, 7));
        assert!(Filter::default().has_thread(1, 7));
    }

    #[test]
    fn the_age_of_an_old_block_has_no_upper_bound() {
        let filter = |min, max| Filter { age: Range { min, max }, ..Filter::default() };
        assert!(filter(5, u64::MAX).has_age(5, true) && !filter(5, u64::MAX).has_age(4, true));
        assert!(!filter(0, 9).has_age(5, true) && Filter::default().has_age(0, true));
        assert!(filter(5, 9).has_age(9, false) && !filter(5, 9).has_age(10, false));
    }

    #[test]
    fn choices_about_both_events_are_known() {
        assert!(!Filter::default().is_of_blocks());
        let stack = Some(Regex::new("f").expect("a pattern"));
        assert!(!Filter { stack, ..Filter::default() }.is_of_blocks());
        for filter in [
            Filter { size: Range { min: 1, max: u64::MAX }, ..Filter::default() },
            Filter { age: Range { min: 0, max: 1 }, ..Filter::default() },
            Filter { kind: Some(Regex::new("f").expect("a pattern")), ..Filter::default() },
            Filter { old: Old::Excluded, ..Filter::default() },
        ] {
            assert!(filter.is_of_blocks());
        }
        assert!(Filter { old: Old::Only, ..Filter::default() }.has_origin(true));
        assert!(!Filter { old: Old::Only, ..Filter::default() }.has_origin(false));
        assert!(!Filter { old: Old::Excluded, ..Filter::default() }.has_origin(true));
    }
}
