//! The answer to `GET /stats`.

use serde::{Deserialize, Serialize};

use super::store::Usage;
use super::{process, system_heap};
use crate::switch;

/// The whole answer to `GET /stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stats {
    /// `lumalloc` or `system`.
    pub(crate) allocator: String,
    /// The numbers of the service.
    pub(crate) service: ServiceStats,
    /// The numbers of the kernel.
    pub(crate) process: ProcessStats,
    /// The numbers of the allocator. The system's allocator reports few of them.
    pub(crate) memory: MemoryStats,
}

/// The numbers of the store and the traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServiceStats {
    /// The number of stored values.
    pub(crate) entries: u64,
    /// Bytes that the values are charged.
    pub(crate) bytes: u64,
    /// Requests answered so far.
    pub(crate) requests: u64,
}

/// Resident bytes of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessStats {
    /// Resident bytes now.
    pub(crate) rss: Option<u64>,
    /// Resident bytes at their highest.
    pub(crate) rss_peak: Option<u64>,
}

/// The allocator's numbers, in bytes where they are not counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryStats {
    /// Bytes handed out to the program.
    pub(crate) allocated: Option<u64>,
    /// Bytes of pages with blocks that are handed out.
    pub(crate) active: Option<u64>,
    /// Bytes of pages that lie in memory.
    pub(crate) resident: Option<u64>,
    /// Bytes of the allocator's records.
    pub(crate) metadata: Option<u64>,
    /// Bytes of address space in use.
    pub(crate) mapped: Option<u64>,
    /// Bytes of address space that is kept without memory.
    pub(crate) retained: Option<u64>,
    /// Bytes of free pages that are not given back yet.
    pub(crate) dirty: Option<u64>,
    /// Open arenas.
    pub(crate) arenas: Option<u64>,
    /// Live thread caches.
    pub(crate) thread_caches: Option<u64>,
    /// Blocks freed by another thread than the one that allocated them.
    pub(crate) remote_frees: Option<u64>,
}

impl Stats {
    /// Collects the numbers of this process.
    pub(crate) fn collect(usage: Usage, requests: u64) -> Self {
        let system = switch::is_system();
        let resident = process::resident("self");
        Self {
            allocator: if system { "system" } else { "lumalloc" }.to_owned(),
            service: ServiceStats {
                entries: usage.entries as u64,
                bytes: usage.bytes as u64,
                requests,
            },
            process: ProcessStats {
                rss: resident.map(|resident| resident.now),
                rss_peak: resident.map(|resident| resident.peak),
            },
            memory: if system { MemoryStats::system() } else { MemoryStats::lumalloc() },
        }
    }
}

impl MemoryStats {
    fn lumalloc() -> Self {
        let totals = lumalloc::observe::totals();
        Self {
            allocated: Some(totals.allocated as u64),
            active: Some(totals.active as u64),
            resident: Some(totals.resident as u64),
            metadata: Some(totals.metadata as u64),
            mapped: Some(totals.mapped as u64),
            retained: Some(totals.retained as u64),
            dirty: Some(totals.dirty as u64),
            arenas: Some(totals.arenas_open.into()),
            thread_caches: Some(totals.thread_caches.into()),
            remote_frees: Some(totals.remote_frees),
        }
    }

    fn system() -> Self {
        let heap = system_heap::read();
        Self {
            allocated: heap.map(|heap| heap.allocated),
            active: heap.map(|heap| heap.active),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_back() {
        let stats = Stats::collect(Usage { entries: 2, bytes: 300 }, 7);
        let text = serde_json::to_string(&stats).unwrap();
        assert_eq!(serde_json::from_str::<Stats>(&text).unwrap(), stats);
        assert_eq!((stats.service.bytes, stats.service.requests), (300, 7));
    }

    #[test]
    fn the_system_leaves_most_unsaid() {
        let memory = MemoryStats::system();
        assert_eq!((memory.arenas, memory.thread_caches, memory.remote_frees), (None, None, None));
    }
}
