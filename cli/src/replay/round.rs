//! One round of a replay.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::arguments::DisciplineArgument;
use super::plan::{Call, Plan};
use super::target::{Target, open};

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
struct Round {
    targets: Vec<Option<Box<dyn Target>>>,
    blocks: Vec<Option<NonNull<u8>>>,
    outcome: Outcome,
}

/// Makes all calls, and closes all regions. With `measured` it looks at the regions' extents, which
/// takes time.
pub(super) fn run(plan: &Plan, discipline: DisciplineArgument, measured: bool) -> Option<Outcome> {
    let mut round = Round {
        targets: Vec::with_capacity(plan.regions.len()),
        blocks: vec![None; plan.blocks],
        outcome: Outcome::default(),
    };
    let begin = Instant::now();
    for method in &plan.regions {
        round.targets.push(Some(open(*method, discipline)?));
    }
    for call in &plan.calls {
        round.call(*call);
        if measured {
            round.look();
        }
    }
    round.outcome.extent = round.extent();
    round.end();
    round.outcome.time = begin.elapsed();
    Some(round.outcome)
}

impl Round {
    fn call(&mut self, call: Call) {
        match call {
            Call::Alloc { region, block, size, align } => {
                let made = self.with(region, |target| target.alloc(size, align)).flatten();
                self.outcome.failed += usize::from(made.is_none());
                self.blocks[block] = made;
            }
            Call::Resize { region, block, size } => {
                let Some(old) = self.blocks[block] else { return };
                match self.with(region, |target| target.resize(old, size)).flatten() {
                    Some(new) => self.blocks[block] = Some(new),
                    None => self.outcome.failed += 1,
                }
            }
            Call::Free { region, block } => {
                let Some(old) = self.blocks[block].take() else { return };
                let is_freed = self.with(region, |target| target.free(old));
                self.outcome.refused += usize::from(is_freed == Some(false));
            }
            Call::Drop { region, block } => {
                let Some(old) = self.blocks[block].take() else { return };
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
    }

    fn with<T>(&self, region: usize, f: impl FnOnce(&dyn Target) -> T) -> Option<T> {
        self.targets[region].as_deref().map(f)
    }

    fn extent(&self) -> usize {
        self.targets.iter().flatten().map(|target| target.extent()).sum()
    }

    fn look(&mut self) {
        self.outcome.peak_extent = self.outcome.peak_extent.max(self.extent());
    }

    /// Closes all regions. Blocks of malloc are not freed: the process ends soon.
    fn end(&mut self) {
        self.targets.clear();
    }
}
