//! One round of a replay.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::arguments::{DisciplineArgument, MethodArgument};
use super::plan::{Call, Plan};
use super::target::{Malloc, Target, open};

/// What a round showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The time of all calls.
    pub(super) time: Duration,
    /// Calls that got no memory.
    pub(super) failed: usize,
    /// Frees that the method refused: `last` frees only the latest block.
    pub(super) refused: usize,
    /// The most bytes of all regions at one time, if they were looked at.
    pub(super) peak_extent: usize,
    /// The bytes in use and of all regions at the end.
    pub(super) extent: usize,
}

/// The targets and blocks of a round.
struct Round<'a> {
    plan: &'a Plan,
    discipline: DisciplineArgument,
    targets: Vec<Option<Box<dyn Target>>>,
    blocks: Vec<Option<NonNull<u8>>>,
    outcome: Outcome,
}

/// Makes all calls, and closes all regions. With `measured` it looks at the regions' extents, which
/// takes time. Returns `None` if there is no memory for a region.
pub(super) fn run(plan: &Plan, discipline: DisciplineArgument, measured: bool) -> Option<Outcome> {
    let mut round = Round {
        plan,
        discipline,
        targets: plan.regions.iter().map(|_| None).collect(),
        blocks: vec![None; plan.blocks],
        outcome: Outcome::default(),
    };
    let begin = Instant::now();
    for call in &plan.calls {
        if measured {
            round.call_and_look(*call)?;
        } else {
            round.call(*call)?;
        }
    }
    round.targets.clear();
    round.outcome.time = begin.elapsed();
    round.free_blocks_of_malloc();
    Some(round.outcome)
}

impl Round<'_> {
    /// Makes a call, and keeps count of the bytes of all regions. Only its own region's change.
    fn call_and_look(&mut self, call: Call) -> Option<()> {
        let extent = |round: &Self| round.with(call.region(), |target| target.extent());
        let before = extent(self).unwrap_or(0);
        self.call(call)?;
        let after = extent(self).unwrap_or(0);
        let outcome = &mut self.outcome;
        outcome.extent = outcome.extent - before + after;
        outcome.peak_extent = outcome.peak_extent.max(outcome.extent);
        Some(())
    }

    fn call(&mut self, call: Call) -> Option<()> {
        match call {
            Call::Open { region } => {
                self.targets[region] = Some(open(self.plan.regions[region], self.discipline)?);
            }
            Call::Alloc { region, block, size, align } => {
                let made = self.with(region, |target| target.alloc(size, align)).flatten();
                self.outcome.failed += usize::from(made.is_none());
                self.blocks[block] = made;
            }
            Call::Resize { region, block, size } => {
                let Some(old) = self.blocks[block] else { return Some(()) };
                match self.with(region, |target| target.resize(old, size)).flatten() {
                    Some(new) => self.blocks[block] = Some(new),
                    None => self.outcome.failed += 1,
                }
            }
            Call::Free { region, block } => {
                let Some(old) = self.blocks[block].take() else { return Some(()) };
                let is_freed = self.with(region, |target| target.free(old));
                self.outcome.refused += usize::from(is_freed == Some(false));
            }
            Call::Drop { region, block } => {
                let Some(old) = self.blocks[block].take() else { return Some(()) };
                self.with(region, |target| target.drop_block(old));
            }
            Call::Compact { region } => {
                self.with(region, |target| target.compact());
            }
            Call::Clear { region } => {
                if let Some(target) = &mut self.targets[region] {
                    target.clear();
                }
            }
            Call::Close { region } => self.targets[region] = None,
        }
        Some(())
    }

    fn with<T>(&self, region: usize, f: impl FnOnce(&dyn Target) -> T) -> Option<T> {
        self.targets[region].as_deref().map(f)
    }

    /// Frees what is in use at the end, so that the next round has the heap that this one had. Only
    /// `--method` gives malloc, and then to all regions.
    fn free_blocks_of_malloc(&mut self) {
        if self.plan.regions.first() == Some(&MethodArgument::Malloc) {
            self.blocks.drain(..).flatten().for_each(|block| Malloc.drop_block(block));
        }
    }
}
