//! The plain statistics structs of the core, with names for serde.

use lumalloc::observe;
use serde::{Deserialize, Serialize};

/// Copies a plain struct of the core, with names for serde.
macro_rules! mirrored {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                #[doc = concat!(
                    "See [`observe::", stringify!($name), "::", stringify!($field), "`]."
                )]
                pub $field: $kind,
            )*
        }

        impl From<&observe::$name> for $name {
            fn from(from: &observe::$name) -> Self {
                $name { $($field: from.$field,)* }
            }
        }
    };
}

mirrored! {
    /// Sums over all arenas and caches, in bytes unless a name says otherwise.
    Totals {
        allocated: usize,
        active: usize,
        metadata: usize,
        metadata_edata: usize,
        metadata_rtree: usize,
        metadata_thp: usize,
        resident: usize,
        mapped: usize,
        retained: usize,
        holes: usize,
        dirty: usize,
        muzzy: usize,
        cached: usize,
        kept: usize,
        remote_pending: usize,
        arenas_open: u32,
        thread_caches: u32,
        remote_frees: u64,
        requests: u64,
        n_open: u64,
        n_lock: u64,
        n_probe: u64,
        fork_abandoned: u64,
        background_threads: usize,
        background_runs: u64,
        background_interval: u64,
        purges: u64,
        purged_pages: u64,
        zero_reallocs: u64,
        out_of_memory: u64,
    }
}

mirrored! {
    /// Counts of guarded samples.
    GuardedSamples {
        made: u64,
        live: u64,
        failed: u64,
    }
}

mirrored! {
    /// Statistics of one lock, or of several together.
    MutexStats {
        num_ops: u64,
        num_wait: u64,
        num_spin_acq: u64,
        num_owner_switch: u64,
        total_wait_time: u64,
        max_wait_time: u64,
        max_num_thds: u32,
    }
}

mirrored! {
    /// The memory and threads of an arena.
    ArenaSpace {
        nthreads: u32,
        pactive: usize,
        pdirty: usize,
        pmuzzy: usize,
        mapped: usize,
        retained: usize,
        resident: usize,
        base: usize,
        metadata_edata: usize,
        metadata_rtree: usize,
        metadata_thp: usize,
        extent_avail: usize,
        abandoned_vm: usize,
        tcache_bytes: usize,
        tcache_stashed_bytes: usize,
        kept_bytes: usize,
        slab_bytes: usize,
        slab_used_bytes: usize,
    }
}

mirrored! {
    /// Statistics of one class of blocks that come from slabs.
    BinStats {
        nmalloc: u64,
        ndalloc: u64,
        nrequests: u64,
        curregs: usize,
        cached: usize,
        nfills: u64,
        nflushes: u64,
        nslabs: u64,
        nreslabs: u64,
        curslabs: usize,
        nonfull_slabs: usize,
    }
}

mirrored! {
    /// Statistics of one class of large blocks.
    LargeStats {
        nmalloc: u64,
        ndalloc: u64,
        nrequests: u64,
        curlextents: usize,
    }
}

mirrored! {
    /// The unused runs of one class of lengths.
    ExtentStats {
        ndirty: usize,
        dirty_bytes: usize,
        nmuzzy: usize,
        muzzy_bytes: usize,
        nretained: usize,
        retained_bytes: usize,
    }
}

mirrored! {
    /// Sums over the small or over the large classes.
    ClassesStats {
        allocated: usize,
        nmalloc: u64,
        ndalloc: u64,
        nrequests: u64,
        nfills: u64,
        nflushes: u64,
    }
}

mirrored! {
    /// Counts of pages given back.
    PurgeStats {
        npurge: u64,
        nmadvise: u64,
        purged: u64,
    }
}
