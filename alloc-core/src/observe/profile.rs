//! The heap profile: samples of allocations by their stacks. Source: jemalloc(3), `opt.prof`.

use crate::ground::os;
use crate::middle::arenas::arena_hooks;
use crate::profile::live::{self, Known};
use crate::profile::sampler;
use crate::profile::{rate, sites};
use core::time::Duration;

/// What the samples of one stack and one requested size add up to.
///
/// The numbers are those of samples. An allocation of `usable` bytes is sampled with the chance
/// `1 - e^(-usable / 2^lg_sample)`, so as many allocations stand behind the samples as they divided
/// by this chance.
#[derive(Clone, Copy, Debug)]
pub struct ProfileEntry {
    /// The return addresses, the innermost first, from the caller of the allocator on.
    pub stack: &'static [usize],
    /// Bytes that were requested, by the last `realloc` that left the block in its place and size
    /// class. The usable bytes, if some hundred sizes of the stack, and about a million of all
    /// stacks, are counted apart already.
    pub requested: usize,
    /// Bytes of a block.
    pub usable: usize,
    /// Samples taken since the start or the last reset.
    pub allocated: u64,
    /// Of these, samples that were freed.
    pub freed: u64,
}

/// A sample that is in use.
#[derive(Clone, Copy, Debug)]
pub struct LiveSample {
    /// Where the block is.
    pub address: usize,
    /// The return addresses, the innermost first.
    pub stack: &'static [usize],
    /// Bytes that were requested.
    pub requested: usize,
    /// Bytes of the block.
    pub usable: usize,
    /// The arena of the block. That of the thread, for a block of no bytes or between guard pages.
    pub arena: u32,
    /// The number of the thread that allocated it. No two threads of a process have the same. 0:
    /// the thread had no cache, as in its last destructors.
    pub thread: u64,
    /// The name that the thread had then: the text that it set by `thread.prof.name`, or with
    /// `opt.prof_sys_thread_name` the system's. Empty if it had none.
    pub thread_name: &'static str,
    /// When it was allocated, in nanoseconds of the system's monotonic clock. It is the time of
    /// the system's last tick before, at most 10 ms earlier, unless the last samples or a log of
    /// them were kept then.
    pub time: u64,
}

impl LiveSample {
    pub(super) fn of(known: Known) -> LiveSample {
        LiveSample {
            address: sampler::address_of(&known),
            stack: known.counts.site().frames(),
            requested: known.counts.requested(),
            usable: known.counts.usable(),
            arena: known.arena,
            thread: known.thread,
            thread_name: known.name.name().to_str().unwrap_or_default(),
            time: known.time,
        }
    }

    /// Returns how long the sample has been in use.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_nanos(os::nanoseconds().saturating_sub(self.time))
    }
}

/// Counts of the heap profiler since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileCounts {
    /// Samples taken.
    pub taken: u64,
    /// Allocations that were to be sampled and were not, because there was no memory for a sample.
    pub missed: u64,
    /// Samples that are in use.
    pub live: usize,
    /// Stacks that are stored.
    pub stacks: u64,
    /// Bytes of the stored stacks and their counts, which are part of the metadata.
    pub bytes: u64,
    /// Of these, bytes of the counts.
    pub count_bytes: u64,
    /// Bytes of the records of samples in use, and of those that are kept for later ones.
    pub sample_bytes: u64,
    /// Whether each allocation since the start of the process had its chance to be a sample, and
    /// none was forgotten. Then the samples are estimates of what
    /// [`class_counts`](super::class_counts()) tells.
    pub since_start: bool,
    /// A count that changes when [`reset`](crate::control::profile::reset()) begins to forget all
    /// samples, and when it has done so. Two profiles have samples of the same time only if this is
    /// the same for both, before and after they are written.
    pub resets: u64,
    /// Whether the rate was ever set anew where threads could not be told of it, so that some of
    /// their first allocations afterwards had no chance to be a sample, or that of the rate before.
    pub is_behind: bool,
}

/// Calls `see` with the counts of each stack and size. `see` may allocate.
///
/// Other threads go on meanwhile, so samples that they take or free may be missing.
///
/// ```
/// // Without `opt.prof` there are none.
/// let mut entries = 0;
/// lumalloc::observe::profile(|_| entries += 1);
/// assert_eq!(entries, 0);
/// ```
pub fn profile(mut see: impl FnMut(ProfileEntry)) {
    for counts in sites::newest_first().flat_map(sites::Site::sizes) {
        let counted = counts.get();
        if counted.allocated > 0 {
            see(ProfileEntry {
                stack: counts.site().frames(),
                requested: counts.requested(),
                usable: counts.usable(),
                allocated: counted.allocated,
                freed: counted.freed,
            });
        }
    }
}

/// Calls `see` with each sample that is in use. `see` is called under a lock, so it must neither
/// allocate nor free.
///
/// ```
/// let mut samples = 0;
/// lumalloc::observe::live_samples(|_| samples += 1);
/// assert_eq!(samples, 0);
/// ```
pub fn live_samples(mut see: impl FnMut(LiveSample)) {
    live::for_each(|known| see(LiveSample::of(known)));
}

/// Returns log2 of the bytes between two samples on average.
#[must_use]
pub fn lg_profile_sample() -> u32 {
    rate::lg()
}

/// Returns the counts of the heap profiler.
///
/// ```
/// assert_eq!(lumalloc::observe::profile_counts().taken, 0);
/// ```
#[must_use]
pub fn profile_counts() -> ProfileCounts {
    let count_bytes = sites::COUNT_BYTES.get();
    ProfileCounts {
        taken: live::added(),
        missed: sampler::MISSED.get(),
        live: live::count(),
        stacks: sites::MADE.get(),
        bytes: sites::SITE_BYTES.get() + count_bytes,
        count_bytes,
        sample_bytes: live::BYTES.get(),
        since_start: sampler::is_since_start() && !arena_hooks::are_there(),
        resets: sampler::RESETS.get(),
        is_behind: sampler::is_behind(),
    }
}
