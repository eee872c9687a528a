//! The rule about the allocator's own records.

use super::{Found, MIB, bytes, percent};
use crate::snapshot::{Arena, Snapshot};
use std::format;
use std::string::String;

/// So many arenas that the program created, or caches of threads, are many.
const MANY: usize = 64;

pub(super) fn metadata(snapshot: &Snapshot) -> Option<Found> {
    let records = snapshot.totals.metadata;
    let process = snapshot.rss.process.max(snapshot.totals.resident);
    if records < 16 * MIB || percent(records, process) < 25 {
        return None;
    }
    let created = |arena: &&Arena| arena.index >= snapshot.settings.narenas as usize;
    let of_created: usize =
        snapshot.arenas.iter().filter(created).map(|arena| arena.space.base).sum();
    let created = snapshot.arenas.iter().filter(created).count();
    let threads = snapshot.totals.thread_caches as usize;
    Some(Found {
        weight: records,
        what: format!(
            "{} are the allocator's own records, {} % of the {} that the process has in memory. \
             There are {} arenas, of which the program created {created}, and {threads} threads \
             with a cache.",
            bytes(records),
            percent(records, process),
            bytes(process),
            snapshot.arenas.len(),
        ),
        help: help(created, of_created, threads),
    })
}

fn help(created: usize, of_created: usize, threads: usize) -> String {
    if created >= MANY {
        format!(
            "Each arena has records of its own, those that the program created {} on average: \
             have it create fewer, and do arena.<i>.destroy of those that it needs no more.",
            bytes(of_created / created)
        )
    } else if threads >= MANY {
        "Each thread that allocates has a cache, which has records: run fewer threads.".into()
    } else {
        "Records of blocks and pages stay for the most that there ever were: see \
         stats.metadata_edata, stats.metadata_rtree, and prof.samples.bytes, which \
         lg_prof_sample makes smaller."
            .into()
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::MIB;
    use crate::doctor::tests::{healthy, one};
    use crate::snapshot::{Arena, Snapshot};
    use crate::{doctor::examine, numbers::ArenaSpace};
    use std::vec;

    /// 1500 arenas with a block each.
    fn tenants(snapshot: &mut Snapshot) {
        let space = ArenaSpace { base: 52 << 10, ..ArenaSpace::default() };
        snapshot.arenas = vec![Arena::default(); 2];
        snapshot.arenas.extend((0..1500).map(|index| Arena {
            index: 8 + index,
            space,
            ..Arena::default()
        }));
        snapshot.totals.active = 12 * MIB;
        (snapshot.totals.cached, snapshot.totals.thread_caches) = (0, 3);
        (snapshot.totals.dirty, snapshot.totals.resident) = (0, 91 * MIB);
        snapshot.totals.metadata = 79 * MIB;
        snapshot.rss.process = 82 * MIB;
    }

    #[test]
    fn most_of_the_memory_is_records() {
        let (what, help) = one("metadata", tenants);
        assert_eq!(
            what,
            "79.0 MiB are the allocator's own records, 86 % of the 91.0 MiB that the process has in \
             memory. There are 1502 arenas, of which the program created 1500, and 3 threads with \
             a cache."
        );
        assert_eq!(
            help,
            "Each arena has records of its own, those that the program created 52.0 KiB on \
             average: have it create fewer, and do arena.<i>.destroy of those that it needs no \
             more."
        );
        let (_, help) = one("metadata", |snapshot| {
            tenants(snapshot);
            snapshot.arenas.truncate(3);
            snapshot.totals.thread_caches = 2000;
        });
        assert_eq!(
            help,
            "Each thread that allocates has a cache, which has records: run fewer threads."
        );
    }

    #[test]
    fn records_of_a_large_heap_are_as_they_should_be() {
        let mut snapshot = healthy();
        snapshot.totals.metadata = 40 * MIB;
        assert_eq!(examine(&snapshot), []);
    }
}
