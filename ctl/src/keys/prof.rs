//! `prof.*`. Made from the rows of the namespace.

use crate::key::{Act, Key, Read, ReadWrite, Write};
use crate::typed::Text;

/// `prof.active`: whether the process is sampled (a write of true without opt.prof: ENOENT).
pub const ACTIVE: Key<ReadWrite<bool>> = Key::new("prof.active");

/// `prof.dump`: writes a heap profile to the file of that name, or for NULL to one that is named by
/// prefix, process and number (EFAULT: it could not be written; standard error tells why).
pub const DUMP: Key<Write<Text>> = Key::new("prof.dump");

/// `prof.gdump`: whether a profile is written at each new maximum of the memory held.
pub const GDUMP: Key<ReadWrite<bool>> = Key::new("prof.gdump");

/// `prof.interval` (bytes): bytes allocated between two profiles, or 0 if none are written at
/// intervals.
pub const INTERVAL: Key<Read<u64>> = Key::new("prof.interval");

/// `prof.lg_sample` (log2): bytes between two samples, on average; 0 without opt.prof too.
pub const LG_SAMPLE: Key<Read<usize>> = Key::new("prof.lg_sample");

/// `prof.log_start`: begins a log of the samples that are freed, for the file of that name, or for
/// NULL one that is named by prefix, process and number.
pub const LOG_START: Key<Write<Text>> = Key::new("prof.log_start");

/// `prof.log_stop`: ends the log, and writes it as JSON.
pub const LOG_STOP: Key<Act> = Key::new("prof.log_stop");

/// `prof.prefix`: what names of profiles begin with.
pub const PREFIX: Key<Write<Text>> = Key::new("prof.prefix");

/// `prof.reset` (log2): forgets the samples, and sets the rate if one is given; above 63 it is 63.
pub const RESET: Key<Write<usize>> = Key::new("prof.reset");

/// `prof.thread_active_init`: whether new threads are sampled.
pub const THREAD_ACTIVE_INIT: Key<ReadWrite<bool>> = Key::new("prof.thread_active_init");

/// `prof.write_heap_v2`: writes a heap profile for jeprof to this open file descriptor (EFAULT: it
/// could not be written).
pub const WRITE_HEAP_V2: Key<Write<u32>> = Key::new("prof.write_heap_v2");

/// `prof.write_pprof`: writes a heap profile for pprof to this open file descriptor (EFAULT: it
/// could not be written).
pub const WRITE_PPROF: Key<Write<u32>> = Key::new("prof.write_pprof");

/// `prof.samples.*`
pub mod samples {
    use crate::key::{Key, Read};

    /// `prof.samples.bytes` (bytes): bytes of the stored stacks, a part of stats.metadata.
    pub const BYTES: Key<Read<u64>> = Key::new("prof.samples.bytes");

    /// `prof.samples.live` (count): samples that are in use.
    pub const LIVE: Key<Read<usize>> = Key::new("prof.samples.live");

    /// `prof.samples.missed` (count): allocations that were to become samples and did not, for lack
    /// of memory.
    pub const MISSED: Key<Read<u64>> = Key::new("prof.samples.missed");

    /// `prof.samples.stacks` (count): different stacks of samples, since the start.
    pub const STACKS: Key<Read<u64>> = Key::new("prof.samples.stacks");

    /// `prof.samples.taken` (count): allocations that became samples, since the start.
    pub const TAKEN: Key<Read<u64>> = Key::new("prof.samples.taken");
}

/// `prof.stats.*`
pub mod stats {
    /// `prof.stats.bins.*`
    pub mod bins {
        use crate::key::{Bytes, Key};

        /// `prof.stats.bins.<i>.accum`: samples of the small class since the start or the last
        /// prof.reset.
        pub const ACCUM: Key<Bytes, 1> = Key::new("prof.stats.bins.<i>.accum");

        /// `prof.stats.bins.<i>.live`: samples of the small class in use: requested bytes, and
        /// number.
        pub const LIVE: Key<Bytes, 1> = Key::new("prof.stats.bins.<i>.live");
    }

    /// `prof.stats.lextents.*`
    pub mod lextents {
        use crate::key::{Bytes, Key};

        /// `prof.stats.lextents.<i>.accum`: samples of the large class since the start or the last
        /// prof.reset.
        pub const ACCUM: Key<Bytes, 1> = Key::new("prof.stats.lextents.<i>.accum");

        /// `prof.stats.lextents.<i>.live`: samples of the large class in use: requested bytes, and
        /// number.
        pub const LIVE: Key<Bytes, 1> = Key::new("prof.stats.lextents.<i>.live");
    }
}
