//! What became of samples of the heap profiler. Source: jemalloc, `experimental.prof_recent.*` and
//! `prof.log_start`.

use crate::profile::history::{self, Log, Moment, Past};

/// A sample of the heap profiler that was allocated, and perhaps freed since.
#[derive(Clone, Copy, Debug)]
pub struct PastSample {
    /// Bytes that were requested.
    pub requested: usize,
    /// Bytes of the block.
    pub usable: usize,
    /// When and by whom it was allocated.
    pub allocated: SampleMoment,
    /// When and by whom it was freed. `None` if it was not. For a block that was freed by its size
    /// (Rust, `operator delete` with a size) this is when the free was noticed.
    pub freed: Option<SampleMoment>,
}

/// When, by whom and from where a sample was allocated or freed.
#[derive(Clone, Copy, Debug)]
pub struct SampleMoment {
    /// In nanoseconds of the system's monotonic clock.
    pub time: u64,
    /// The number of the thread. No two threads of a process have the same.
    pub thread: u64,
    /// The thread's name in profiles. Empty if it had none.
    pub thread_name: &'static str,
    /// The return addresses, the innermost first. Moments with the same stack have the same slice.
    pub stack: &'static [usize],
}

impl SampleMoment {
    fn of(moment: Moment) -> SampleMoment {
        SampleMoment {
            time: moment.time,
            thread: moment.thread,
            thread_name: moment.name.name().to_str().unwrap_or_default(),
            stack: moment.site.frames(),
        }
    }
}

impl PastSample {
    fn of(past: Past) -> PastSample {
        PastSample {
            requested: past.requested,
            usable: past.usable,
            allocated: SampleMoment::of(past.allocated),
            freed: past.freed.map(SampleMoment::of),
        }
    }
}

/// Calls `see` with the last samples, the oldest first: as many as `opt.prof_recent_alloc_max` or
/// [`set_recent_samples`](crate::control::profile::set_recent_samples) says. `see` may allocate.
/// Returns `false`, and does nothing, if another thread does the same.
///
/// ```
/// // Without `opt.prof` there are none.
/// assert!(lumalloc::observe::recent_samples(|sample| unreachable!("{sample:?}")));
/// ```
pub fn recent_samples(mut see: impl FnMut(PastSample)) -> bool {
    history::for_each_recent(|past| see(PastSample::of(past)))
}

/// A log of the samples that were freed while it was kept.
pub struct SampleLog(Log);

impl SampleLog {
    pub(crate) fn new(log: Log) -> SampleLog {
        SampleLog(log)
    }

    /// Returns when the log was begun and ended, in nanoseconds of the system's monotonic clock.
    #[must_use]
    pub fn times(&self) -> [u64; 2] {
        [self.0.since, self.0.until]
    }

    /// Returns the samples, in the order in which they were freed.
    pub fn samples(&self) -> impl Iterator<Item = PastSample> {
        self.0.samples().map(PastSample::of)
    }
}
