//! Runs of freed large blocks that wait until their addresses may be used again, in the hardened
//! tier.
//!
//! ```text
//!   freed ──closed──purged──▶ newest │ … │ oldest ──▶ Retained
//! ```
//! They have neither access nor memory, so a program that still uses the address of a freed block
//! gets a fault instead of the block of another use. The run that has waited longest leaves when
//! one more comes, and all leave when the arena has no other addresses.

use super::in_hand::InHand;
use crate::back::map::extent::{Extent, ExtentState};

/// The most runs that wait in one arena.
const MOST: usize = 16;

/// The runs of one arena that wait, chained by their `younger` links from the oldest on.
pub(in crate::back) struct Waiting {
    oldest: Option<&'static Extent>,
    newest: Option<&'static Extent>,
    runs: usize,
    pages: usize,
}

impl Waiting {
    /// No runs.
    pub(in crate::back) const NONE: Waiting =
        Waiting { oldest: None, newest: None, runs: 0, pages: 0 };

    /// The number of pages of all runs that wait.
    pub(in crate::back) fn pages(&self) -> usize {
        self.pages
    }

    /// Takes in a run without memory, and returns the one that leaves for it, if one does.
    pub(in crate::back) fn exchange(&mut self, run: InHand) -> Option<InHand> {
        self.runs += 1;
        self.pages += run.pages();
        let run = run.release(ExtentState::Waiting);
        run.younger.set(None);
        match self.newest.replace(run) {
            Some(before) => before.younger.set(Some(run)),
            None => self.oldest = Some(run),
        }
        if self.runs > MOST { self.take_oldest() } else { None }
    }

    /// Takes out the run that has waited longest.
    pub(in crate::back) fn take_oldest(&mut self) -> Option<InHand> {
        let run = self.oldest?;
        self.oldest = run.younger.take();
        if self.oldest.is_none() {
            self.newest = None;
        }
        self.runs -= 1;
        self.pages -= run.pages();
        Some(InHand::hold(run, ExtentState::Retained))
    }

    /// Checks the chain against the counts.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn check(&self) {
        use crate::ground::holds::holds;
        let runs = || core::iter::successors(self.oldest, |run| run.younger.get());
        holds(runs().all(|run| run.state.get() == ExtentState::Waiting));
        holds(runs().count() == self.runs && self.runs <= MOST);
        holds(runs().map(Extent::pages).sum::<usize>() == self.pages);
        holds(runs().last().map(Extent::base) == self.newest.map(Extent::base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::fixed::Fixed;
    use crate::ground::units::PAGE;
    use std::collections::VecDeque;

    #[test]
    fn the_run_that_has_waited_longest_leaves_first() {
        // The allocator is needed only for runs that the page map leads to.
        let mut pages = PageAllocator::for_test(Fixed::leak(8 << 20));
        let mut waiting = Waiting::NONE;
        let mut shadow = VecDeque::new();
        for n in 1..=3 * MOST {
            let run = pages.allocate(1 + n % 5, PAGE, Memory::Any).unwrap();
            shadow.push_back(run.base());
            let left = waiting.exchange(InHand::hold(run, ExtentState::Dirty));
            let expected = if n > MOST { shadow.pop_front() } else { None };
            assert_eq!(left.map(|run| run.set_aside().base()), expected);
            waiting.check();
        }
        while let Some(run) = waiting.take_oldest() {
            assert_eq!(Some(run.set_aside().base()), shadow.pop_front());
            waiting.check();
        }
        assert!(shadow.is_empty() && waiting.pages() == 0);
    }
}
