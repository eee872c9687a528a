//! `prof.*` and `thread.prof.*`: all return `ENOENT`, as in a jemalloc without the profiler.
use crate::row::Row;
use crate::row_macros::absent;

/// The rows of both branches.
pub static ROWS: &[Row] = &[
    absent!("thread.prof.name", Str, None, c"rw", "label of this thread in profiles"),
    absent!("thread.prof.active", Bool, None, c"rw", "whether this thread is sampled"),
    absent!("prof.thread_active_init", Bool, None, c"rw", "whether new threads are sampled"),
    absent!("prof.active", Bool, None, c"rw", "whether the process is sampled"),
    absent!("prof.dump", Str, None, c"-w", "writes a heap profile to the file of that name"),
    absent!("prof.gdump", Bool, None, c"rw", "dump at each new maximum of mapped memory"),
    absent!("prof.prefix", Str, None, c"-w", "what names of profiles begin with"),
    absent!("prof.reset", Size, Log2, c"-w", "forgets the samples, and sets the rate"),
    absent!("prof.interval", U64, Bytes, c"r-", "bytes between two dumps, on average"),
    absent!("prof.lg_sample", Size, Log2, c"r-", "bytes between two samples, on average"),
    absent!("prof.log_start", Str, None, c"-w", "starts a log of samples"),
    absent!("prof.log_stop", Void, None, c"--", "writes the log of samples"),
];
