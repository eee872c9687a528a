//! `stats.rss.*`, `stats.thread_caches.*`, `stats.remote.*`: where the process's memory is.
//!
//! The keys of `stats.rss` from `allocated` to `untouched` add up to `ours`; `ours` and `not_ours`
//! add up to `process`:
//!
//! | key | bytes |
//! |---|---|
//! | `allocated` | in blocks that the program holds, rounded up to their classes |
//! | `slab_free` | in slabs: their free blocks, and the rest at their ends |
//! | `remote` | in blocks that other threads freed, until their slabs take them in |
//! | `thread_caches` | in thread caches |
//! | `dirty`, `muzzy` | unused pages that decay is to give back |
//! | `metadata` | the allocator's own records |
//! | `untouched` | negative: pages counted above that have no memory, as the system says |
//! | `ours` | in physical memory for this allocator |
//! | `not_ours` | the rest of the process: code, stacks, other allocators |
//! | `process` | in physical memory for the process |
//!
//! Requested sizes are not known, only sizes after rounding. The first read of one of the last four
//! keys after an epoch asks the system, which takes some milliseconds for each gigabyte of
//! addresses.
use crate::row::Spec;
use crate::row_macros::ro;
use crate::snapshot::{self, Published, Rss};

/// A row read from the published snapshot.
macro_rules! told {
    ($name:literal, $kind:ident, $unit:ident, $read:expr, $help:literal) => {
        ro!(concat!("stats.", $name), $kind, $unit, |_| snapshot::read($read), $help)
    };
}

/// A row for which the system is asked.
macro_rules! asked {
    ($name:literal, $kind:ident, $field:ident, $help:literal) => {
        ro!(
            concat!("stats.rss.", $name),
            $kind,
            Bytes,
            |_| {
                let rss: Rss = snapshot::rss();
                rss.$field
            },
            $help
        )
    };
}

/// The rows of the three branches, and of `stats.fork_abandoned`.
pub static ROWS: &[Spec] = &[
    told!(
        "rss.allocated",
        Size,
        Bytes,
        |now| now.totals().allocated,
        "in blocks that the program has, rounded up to their classes"
    ),
    told!("rss.slab_free", Size, Bytes, slab_free, "in slabs, not in blocks in use"),
    told!(
        "rss.remote",
        Size,
        Bytes,
        remote,
        "in blocks freed by other threads that their slabs have yet to take in"
    ),
    told!("rss.thread_caches", Size, Bytes, |now| now.totals().cached, "in thread caches"),
    told!("rss.dirty", Size, Bytes, |now| now.totals().dirty, "in unused pages with memory"),
    told!(
        "rss.muzzy",
        Size,
        Bytes,
        |now| now.totals().muzzy,
        "in unused pages, memory perhaps gone"
    ),
    told!("rss.metadata", Size, Bytes, |now| now.totals().metadata, "of the allocator's records"),
    asked!("untouched", Ssize, untouched, "credit: pages among all these without memory"),
    asked!("ours", Size, ours, "in physical memory for this allocator"),
    asked!("not_ours", Size, not_ours, "in physical memory for the rest of the process"),
    asked!("process", Size, process, "in physical memory for the process"),
    told!(
        "thread_caches.count",
        Unsigned,
        Count,
        |now| now.totals().thread_caches,
        "threads that have a cache"
    ),
    told!("thread_caches.bytes", Size, Bytes, |now| now.totals().cached, "in thread caches"),
    told!(
        "thread_caches.kept_bytes",
        Size,
        Bytes,
        |now| now.totals().kept,
        "in thread caches, of large blocks that threads keep"
    ),
    told!(
        "thread_caches.requests",
        U64,
        Count,
        |now| now.totals().requests,
        "requests that thread caches served"
    ),
    told!(
        "remote.frees",
        U64,
        Count,
        |now| now.totals().remote_frees,
        "blocks freed into slabs of another cache or of a bin"
    ),
    told!(
        "remote.pending_bytes",
        Size,
        Bytes,
        |now| now.totals().remote_pending,
        "in such blocks that their slabs have yet to take in"
    ),
    told!(
        "fork_abandoned",
        U64,
        Count,
        |now| now.totals().fork_abandoned,
        "blocks left behind in other threads' caches by forks"
    ),
];

/// Bytes in blocks that wait for their slabs to take them in. They lie in slabs, so they are at
/// most the free bytes there.
fn remote(now: &Published) -> usize {
    let totals = now.totals();
    totals.remote_pending.min(in_slabs(now))
}

fn slab_free(now: &Published) -> usize {
    in_slabs(now) - remote(now)
}

/// Bytes in active pages that are neither in the program's blocks nor in thread caches.
fn in_slabs(now: &Published) -> usize {
    let totals = now.totals();
    totals.active.saturating_sub(totals.allocated + totals.cached)
}
