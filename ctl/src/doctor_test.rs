//! Each rule of the doctor, on a snapshot made up for it, with the exact words.

use super::*;
use crate::numbers::BinStats;
use crate::snapshot::{Arena, Bin, Settings};
use std::vec;

pub(super) const GIB: usize = 1 << 30;

/// A process in good health, with a gigabyte in use.
pub(super) fn healthy() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.totals.active = GIB;
    snapshot.totals.allocated = 900 * MIB;
    snapshot.totals.resident = GIB + 50 * MIB;
    snapshot.totals.dirty = 40 * MIB;
    snapshot.totals.cached = 8 * MIB;
    snapshot.totals.thread_caches = 100;
    snapshot.settings.narenas = 8;
    snapshot.settings.held = GIB + 50 * MIB;
    snapshot.settings.dirty_decay_ms = 10_000;
    snapshot.arenas = vec![Arena { dirty_decay_ms: 10_000, ..Arena::default() }];
    snapshot
}

/// Applies `harm` to a healthy process and returns the one finding about it.
#[track_caller]
pub(super) fn one(rule: &str, harm: impl FnOnce(&mut Snapshot)) -> (String, String) {
    let mut snapshot = healthy();
    harm(&mut snapshot);
    let found = examine(&snapshot);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].rule, rule);
    (found[0].what.clone(), found[0].help.clone())
}

#[test]
fn health_has_no_findings() {
    assert_eq!(examine(&healthy()), []);
    assert_eq!(examine(&Snapshot::default()), []);
    assert_eq!(examine(&Snapshot::take()), []);
}

#[test]
fn many_dirty_pages() {
    let dirty = |snapshot: &mut Snapshot| snapshot.totals.dirty = 400 * MIB;
    let (what, help) = one("dirty", dirty);
    assert_eq!(what, "400.0 MiB of unused pages still have memory, 39 % of the 1.0 GiB in use.");
    assert_eq!(
        help,
        "Threads that sleep give nothing back: write background_thread=true, or do \
         arena.4096.purge."
    );
    let (_, help) = one("dirty", |snapshot| {
        dirty(snapshot);
        snapshot.settings.background_thread = true;
    });
    assert_eq!(
        help,
        "They are kept for 10000 ms: lower arenas.dirty_decay_ms and each \
         arena.<i>.dirty_decay_ms, or do arena.4096.purge."
    );
    let (_, of_one_for_a_time) = one("dirty", |snapshot| {
        dirty(snapshot);
        snapshot.totals.background_threads = 1;
    });
    assert_eq!(of_one_for_a_time, help);
    let (_, help) = one("dirty", |snapshot| {
        dirty(snapshot);
        let mut keeps = Arena { index: 7, dirty_decay_ms: -1, ..Arena::default() };
        keeps.space.pdirty = 400 * MIB / 4096;
        snapshot.arenas.push(keeps);
    });
    assert_eq!(
        help,
        "They are never given back, because arena.7.dirty_decay_ms is -1: write it and that of \
         other arenas, and arenas.dirty_decay_ms for those made later, or do arena.4096.purge."
    );
}

/// What was written while the process runs counts, and not the option.
/// No purge gives back what is locked, but `retain:false` does.
#[test]
fn dirty_pages_of_a_program_that_locks_its_memory() {
    let (_, help) = one("dirty", |snapshot| {
        snapshot.totals.dirty = 400 * MIB;
        snapshot.settings.background_thread = true;
        snapshot.settings.locked = GIB;
    });
    assert_eq!(
        help,
        "The program has locked its memory (mlockall), which goes back only with its addresses: \
         start it with retain:false."
    );
}

#[test]
#[allow(unsafe_code, reason = "memory is locked by the system's function")]
fn what_a_program_locks_is_read() {
    let block = vec![1u8; 16 << 10];
    // SAFETY: locking changes no contents.
    if unsafe { libc::mlock(block.as_ptr().cast(), block.len()) } != 0 {
        eprintln!("not tried: locked memory: {}", std::io::Error::last_os_error());
        return;
    }
    assert!(Settings::locked_now() >= block.len());
    // SAFETY: it was locked above.
    unsafe { libc::munlock(block.as_ptr().cast(), block.len()) };
}

#[test]
fn dirty_pages_are_judged_by_the_time_of_their_arena() {
    let (_, help) = one("dirty", |snapshot| {
        snapshot.totals.dirty = 400 * MIB;
        snapshot.settings.background_thread = true;
        snapshot.settings.dirty_decay_ms = -1;
        snapshot.arenas[0].dirty_decay_ms = 600_000;
    });
    assert_eq!(
        help,
        "They are kept for 600000 ms: lower arenas.dirty_decay_ms and each \
         arena.<i>.dirty_decay_ms, or do arena.4096.purge."
    );
}

#[test]
fn many_muzzy_pages() {
    let (what, help) = one("muzzy", |snapshot| snapshot.totals.muzzy = 300 * MIB);
    assert_eq!(
        what,
        "300.0 MiB of pages were given back lazily: the system takes them only when it runs short, \
         and counts them as the process's until then."
    );
    assert_eq!(help, "If that looks like a leak: write arena.<i>.muzzy_decay_ms=0.");
}

#[test]
fn full_thread_caches() {
    let (what, help) = one("thread-caches", |snapshot| snapshot.totals.cached = 150 * MIB);
    assert_eq!(what, "150.0 MiB lie in the caches of 100 threads, 14 % of the 1.0 GiB in use.");
    assert_eq!(
        help,
        "Let threads that park for long do thread.idle; run fewer threads; or lower opt.tcache_max."
    );
}

pub(super) fn bin(size: usize, curregs: usize, curslabs: usize) -> Bin {
    let stats = BinStats { curregs, curslabs, ..BinStats::default() };
    Bin { size, nregs: 65536 / size, slab_size: 65536, stats, ..Bin::default() }
}

#[test]
fn remote_frees_wait() {
    let (what, help) = one("remote", |snapshot| snapshot.totals.remote_pending = 80 * MIB);
    assert_eq!(
        what,
        "80.0 MiB were freed by other threads than those whose slabs hold them, which have not \
         taken them in yet."
    );
    assert_eq!(
        help,
        "Idle threads' slabs are looked after by decay passes: write background_thread=true, or \
         do arena.4096.decay."
    );
    let (_, help) = one("remote", |snapshot| {
        snapshot.totals.remote_pending = 80 * MIB;
        snapshot.settings.background_thread = true;
    });
    assert_eq!(
        help,
        "The background thread takes those of idle threads in within a decay time, or do \
         arena.4096.decay."
    );
}

#[test]
fn many_arenas_for_little_memory() {
    let (what, help) = one("arenas", |snapshot| {
        snapshot.settings.narenas = 64;
        snapshot.arenas = vec![Arena::default(); 40];
        snapshot.totals.active = 80 * MIB;
        snapshot.totals.cached = 0;
        snapshot.totals.dirty = 41 * MIB;
    });
    assert_eq!(what, "40 arenas hold 2.0 MiB in use each, and 41.0 MiB of unused pages together.");
    assert_eq!(
        help,
        "Do arena.4096.purge. Fewer arenas keep fewer unused pages: set opt.narenas for the next \
         start, because arenas that exist stay."
    );
}

/// No option makes fewer of the arenas that the program creates.
#[test]
fn arenas_that_the_program_created_are_not_counted() {
    let created = lumalloc::control::arenas::create().unwrap();
    assert!(Snapshot::take().settings.narenas <= created);
}

#[test]
fn threads_wait_for_a_lock() {
    let (what, help) = one("locks", |snapshot| {
        let mut hot = bin(512, 0, 0);
        hot.mutex = MutexStats {
            num_ops: 90_000,
            num_wait: 5000,
            total_wait_time: 1_234_000_000,
            max_wait_time: 20_000_000,
            ..MutexStats::default()
        };
        snapshot.arenas[0].bins = vec![bin(64, 0, 0), hot];
        snapshot.arenas[0].pages_mutex.num_wait = 3;
    });
    assert_eq!(
        what,
        "Threads slept 5000 times of 90000 for the blocks of 512 bytes of arena 0, 1234 ms in all \
         and 20 ms at most."
    );
    assert_eq!(
        help,
        "More arenas spread threads: raise opt.narenas for the next start. Raising vm.regmax alone \
         makes no more of them."
    );
}

#[test]
fn the_memory_is_somebody_else_s() {
    let (what, help) = one("not-ours", |snapshot| {
        snapshot.rss.process = 3 * GIB;
        snapshot.rss.ours = GIB;
        snapshot.rss.not_ours = 2 * GIB;
    });
    assert_eq!(
        what,
        "Of the 3.0 GiB that the process has in memory, 2.0 GiB are not this allocator's."
    );
    assert_eq!(help, "They are mapped files, stacks, or another allocator's: see /proc/PID/smaps.");
}

#[test]
fn a_fork_left_blocks_behind() {
    let (what, help) = one("fork", |snapshot| snapshot.totals.fork_abandoned = 12_345);
    assert_eq!(
        what,
        "12345 blocks were left behind in the caches of threads that a fork did not copy."
    );
    assert_eq!(help, "They stay allocated. Fork before starting threads, or exec in the child.");
}

#[test]
fn addresses_that_the_system_keeps() {
    let (what, help) = one("addresses", |snapshot| snapshot.merged.space.abandoned_vm = 64 * MIB);
    assert_eq!(what, "The system did not take 64.0 MiB of addresses back.");
    assert_eq!(help, "They have no memory. See vm.max_map_count, and limits on addresses.");
}

#[test]
fn what_weighs_most_comes_first() {
    let mut snapshot = healthy();
    snapshot.totals.fork_abandoned = 20_000;
    snapshot.totals.cached = 200 * MIB;
    snapshot.totals.dirty = 400 * MIB;
    let rules: Vec<_> = examine(&snapshot).into_iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["dirty", "thread-caches", "fork"]);
}

#[test]
fn bytes_for_people() {
    assert_eq!(
        [0, 1023, 1024, 1536, 10 * MIB, 5 * GIB].map(bytes),
        ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "10.0 MiB", "5.0 GiB"]
    );
}

/// A region of 200 MiB, of which so many are free.
fn region(free: usize, largest: usize, method: &str) -> Region {
    Region {
        index: 3,
        name: "sessions".into(),
        method: method.into(),
        s_free: free * MIB,
        m_free: largest,
        extent: 200 * MIB,
        holder_alive: true,
        ..Region::default()
    }
}

#[test]
fn a_region_fragments() {
    let (what, help) = one("region-fragments", |snapshot| {
        snapshot.regions = vec![region(80, MIB, "best"), region(120, MIB, "best")];
    });
    assert_eq!(
        what,
        "Of the region sessions 120.0 MiB are free, 60 % of its 200.0 MiB, and the largest free \
         block has 1.0 MiB."
    );
    assert_eq!(
        help,
        "Blocks that live long are between the free ones: open a region of their own for them, or \
         one for each size with the method pool."
    );
    for fine in [region(90, MIB, "best"), region(120, 64 * MIB, "best"), region(140, 32, "pool")] {
        let mut snapshot = healthy();
        snapshot.regions = vec![fine];
        assert_eq!(examine(&snapshot), []);
    }
}

#[test]
fn a_region_is_far_larger_than_what_is_in_use() {
    for method in ["best", "pool", "last"] {
        let (what, help) = one("region-fragments", |snapshot| {
            snapshot.regions = vec![region(160, 100 * MIB, method)];
        });
        assert_eq!(what, "Of the region sessions 160.0 MiB are free, 80 % of its 200.0 MiB.");
        assert_eq!(
            help,
            "Have the program call vmcompact (in Rust Region::compact) or do vm.region.3.compact: \
             it gives back what is free at the ends of segments, not what is between blocks in use."
        );
    }
    let (_, help) = one("region-fragments", |snapshot| {
        let file = Some("/srv/sessions".into());
        snapshot.regions = vec![Region { file, ..region(160, 100 * MIB, "best") }];
    });
    assert_eq!(
        help,
        "Run `lumalloc region compact /srv/sessions`: it gives back what is free at the ends of \
         segments, not what is between blocks in use."
    );
}

#[test]
fn the_lock_of_a_region_is_a_dead_process_s() {
    let (what, help) = one("region-lock", |snapshot| {
        let dead = Region { holder: 4711, holder_alive: false, ..region(1, MIB, "best") };
        let alive = Region { holder: 4712, ..region(1, MIB, "best") };
        snapshot.regions = vec![alive, dead];
    });
    assert_eq!(
        what,
        "Process 4711 ended in a call of the region sessions, and still has its lock."
    );
    assert_eq!(
        help,
        "The next call takes the lock over and finds anew what is free; only the block of the last \
         call may be lost. See why that process ended."
    );
}
