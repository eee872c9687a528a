//! The heap as a map: each run of pages, and what it is used for.

use super::heap_cursor::{Found, HeapCursor};
use super::profile::LiveSample;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::metadata;
use crate::back::runs::chunk_notes;
use crate::front::modes::guarded;
use crate::ground::units::{LG_PAGE, PAGE};
use crate::middle::blocks::slab_hold::HeldSlab;
use crate::middle::passes::hole_pass;
use crate::profile::{live, sampler};
use core::time::Duration;

/// What a run of pages is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// A slab: blocks of one size class.
    Slab,
    /// A slab whose blocks are samples of the heap profiler.
    Samples,
    /// A large block.
    Large,
    /// A large block that was freed and that a thread keeps for its next request.
    Kept,
    /// Unused, with its memory.
    Dirty,
    /// Unused. The system may take the memory when it needs some.
    Muzzy,
    /// Unused addresses without memory.
    Retained,
    /// Unused, and set aside: kept together for what the heap needs next, or just being given back.
    Aside,
    /// The pages of guarded samples (`opt.guarded_sample`), with the guards between them.
    Guarded,
    /// Records of the allocator. The tables that lead from addresses to records are not shown.
    Metadata,
}

impl RunState {
    /// All states, in the order in which they are declared.
    pub const ALL: [RunState; 10] = [
        RunState::Slab,
        RunState::Samples,
        RunState::Large,
        RunState::Kept,
        RunState::Dirty,
        RunState::Muzzy,
        RunState::Retained,
        RunState::Aside,
        RunState::Guarded,
        RunState::Metadata,
    ];

    /// Returns the name of the state, one word in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunState::Slab => "slab",
            RunState::Samples => "samples",
            RunState::Large => "large",
            RunState::Kept => "kept",
            RunState::Dirty => "dirty",
            RunState::Muzzy => "muzzy",
            RunState::Retained => "retained",
            RunState::Aside => "aside",
            RunState::Guarded => "guarded",
            RunState::Metadata => "metadata",
        }
    }
}

/// A run of pages, as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first address.
    pub base: usize,
    /// Bytes of the run, a multiple of the page.
    pub bytes: usize,
    /// What it is used for.
    pub state: RunState,
    /// The index of its arena. `None` for [`RunState::Guarded`] and [`RunState::Metadata`].
    pub arena: Option<u32>,
    /// Bytes of a block. 0 in a run without blocks.
    pub block: usize,
    /// Blocks that there is room for. 0 in a run without blocks.
    pub blocks: usize,
    /// Of these, blocks that were handed out. Blocks in the caches of threads count too.
    pub used: usize,
    /// Whether huge pages were asked for the beginning of the run, so that the system may back it
    /// by huge pages.
    pub huge: bool,
    /// Bytes that a purge of the arena would give back.
    pub purgeable: usize,
    /// Bytes without memory, as far as the allocator knows: holes of a slab, or all of the run. A
    /// page that was never touched has no memory either, and is not counted.
    pub absent: usize,
}

impl Run {
    fn new(base: usize, bytes: usize, state: RunState) -> Run {
        Run {
            base,
            bytes,
            state,
            arena: None,
            block: 0,
            blocks: 0,
            used: 0,
            huge: false,
            purgeable: 0,
            absent: 0,
        }
    }

    fn of_slab(held: &HeldSlab) -> Run {
        let (slab, class) = (held.slab, held.slab.class());
        let state = if slab.is_for_samples() { RunState::Samples } else { RunState::Slab };
        Run {
            arena: Some(slab.arena()),
            block: class.size(),
            blocks: class.slots(),
            used: held.in_use(),
            huge: chunk_notes::may_be_huge(held.run),
            purgeable: hole_pass::purgeable_pages(slab) << LG_PAGE,
            absent: held.pages_without_memory() << LG_PAGE,
            ..Run::new(slab.base(), held.bytes(), state)
        }
    }

    /// `None`: the record stands for no run.
    fn of_extent(run: &Extent) -> Option<Run> {
        let bytes = run.bytes();
        let state = match run.state.get() {
            ExtentState::Active => RunState::Large,
            ExtentState::Kept => RunState::Kept,
            ExtentState::Dirty => RunState::Dirty,
            ExtentState::Muzzy => RunState::Muzzy,
            ExtentState::Retained | ExtentState::Waiting => RunState::Retained,
            ExtentState::InHand => RunState::Aside,
            ExtentState::Gone | ExtentState::Spare => return None,
        };
        let is_block = matches!(state, RunState::Large | RunState::Kept);
        let is_unused = matches!(state, RunState::Dirty | RunState::Muzzy | RunState::Aside);
        Some(Run {
            arena: Some(run.arena()),
            block: if is_block { bytes } else { 0 },
            blocks: usize::from(is_block),
            used: usize::from(state == RunState::Large),
            huge: chunk_notes::may_be_huge(run),
            purgeable: if is_unused { bytes } else { 0 },
            absent: if state == RunState::Retained { bytes } else { 0 },
            ..Run::new(run.base(), bytes, state)
        })
    }

    /// Calls `see` with each sample of the heap profiler that is in use in the run now. `see` may
    /// allocate and free.
    pub fn samples(&self, mut see: impl FnMut(LiveSample)) {
        let blocks = match self.state {
            RunState::Large => 1,
            RunState::Samples => self.blocks,
            RunState::Slab if sampler::sees_all() => self.blocks,
            _ => 0,
        };
        let addresses = (0..blocks).map(|n| self.base + n * self.block);
        addresses.filter_map(live::at).map(LiveSample::of).for_each(&mut see);
    }

    /// Returns the age of the oldest sample of the heap profiler in the run. `None`: there is none,
    /// because other blocks have no age.
    #[must_use]
    pub fn oldest(&self) -> Option<Duration> {
        let mut oldest = None;
        self.samples(|sample| oldest = oldest.max(Some(sample.age())));
        oldest
    }
}

/// The runs of the heap, by address: see [`heap_map`].
pub struct HeapMap {
    cursor: HeapCursor,
    /// The next run of an arena, of the records, and the guarded samples.
    next: [Option<Run>; 3],
}

/// Returns the runs of all arenas, the records of the allocator and the guarded samples, by
/// address.
///
/// The program is not stopped. Each run is looked at for a short time under a lock of its own, and
/// no lock is held while the caller has it, so the caller may allocate. The map is exact if no
/// other thread allocates or frees. Otherwise each run is as it was at some time of the walk, and
/// runs that change meanwhile may be missing.
///
/// ```
/// use lumalloc::observe::{RunState, heap_map};
/// use lumalloc::raw;
///
/// let block = raw::malloc(1 << 20);
/// let run = heap_map().find(|run| run.base == block as usize).unwrap();
/// assert_eq!((run.state, run.used), (RunState::Large, 1));
/// # // SAFETY: a live block, used no more.
/// # unsafe { raw::free(block) };
/// ```
#[must_use]
pub fn heap_map() -> HeapMap {
    heap_map_from(0)
}

/// Returns the part of the [`heap_map`] that begins at an address. A run around the address is left
/// out.
///
/// ```
/// use lumalloc::observe::heap_map_from;
/// use lumalloc::raw;
///
/// let block = raw::malloc(1 << 20);
/// assert_eq!(heap_map_from(block as usize).next().unwrap().base, block as usize);
/// # // SAFETY: a live block, used no more.
/// # unsafe { raw::free(block) };
/// ```
#[must_use]
pub fn heap_map_from(address: usize) -> HeapMap {
    let guarded = guarded_run().filter(|run| run.base >= address);
    let next = [None, next_records(address), guarded];
    let mut map = HeapMap { cursor: HeapCursor::new(address), next };
    map.next[ARENAS] = map.next_of_arenas();
    map
}

const ARENAS: usize = 0;
const RECORDS: usize = 1;

/// The first chunk of records at or above an address.
fn next_records(from: usize) -> Option<Run> {
    let chunks = metadata::chunks().filter(|chunk| chunk.0 >= from);
    chunks.min().map(|(base, bytes)| Run::new(base, bytes, RunState::Metadata))
}

fn guarded_run() -> Option<Run> {
    let (base, bytes) = guarded::range()?;
    let run = Run::new(base, bytes, RunState::Guarded);
    Some(Run { block: PAGE, blocks: guarded::SLOTS, used: guarded::live().count(), ..run })
}

impl HeapMap {
    fn next_of_arenas(&mut self) -> Option<Run> {
        loop {
            let run = self.cursor.next(|found| match found {
                Found::Slab(held) => Some(Run::of_slab(held)),
                Found::Run(run) => Run::of_extent(run),
            })?;
            if run.is_some() {
                return run;
            }
        }
    }
}

impl Iterator for HeapMap {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let bases =
            self.next.iter().enumerate().filter_map(|(n, run)| Some((run.as_ref()?.base, n)));
        let (_, which) = bases.min()?;
        let run = self.next.get_mut(which)?.take()?;
        match which {
            ARENAS => self.next[ARENAS] = self.next_of_arenas(),
            RECORDS => self.next[RECORDS] = next_records(run.base + run.bytes),
            _ => {}
        }
        Some(run)
    }
}
