//! The doctor: finds what is wrong with a snapshot, says it with numbers, and suggests help.
//!
//! Each rule looks at one [`Snapshot`] and returns a finding or none. The thresholds are such that
//! a healthy process gets no finding: a share of the memory in use, and always at least a few
//! megabytes.

mod limits;
mod metadata;
mod slabs;

use super::numbers::MutexStats;
use super::regions::Region;
use super::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::format;

/// What one rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: Cow<'static, str>,
    /// What is wrong, with numbers.
    pub what: String,
    /// What would help: keys of the namespace to write, options, or where to look.
    pub help: String,
}

/// Examines a snapshot by all rules. The finding about the most memory comes first.
///
/// ```
/// use lumalloc_ctl::{Snapshot, examine};
/// for finding in examine(&Snapshot::take()) {
///     println!("{}: {} {}", finding.rule, finding.what, finding.help);
/// }
/// ```
#[must_use]
pub fn examine(snapshot: &Snapshot) -> Vec<Finding> {
    let mut found: Vec<(usize, Finding)> =
        RULES.iter().filter_map(|rule| found_by(rule, snapshot)).collect();
    found.sort_by_key(|(weight, _)| core::cmp::Reverse(*weight));
    found.into_iter().map(|(_, finding)| finding).collect()
}

fn found_by((name, rule): &(&'static str, Rule), snapshot: &Snapshot) -> Option<(usize, Finding)> {
    let Found { weight, what, help } = rule(snapshot)?;
    Some((weight, Finding { rule: Cow::Borrowed(name), what, help }))
}

/// The result of one rule. `weight` is the bytes that it is about.
struct Found {
    weight: usize,
    what: String,
    help: String,
}

type Rule = fn(&Snapshot) -> Option<Found>;

/// All rules by name.
const RULES: [(&str, Rule); 14] = [
    ("limit", limits::limit),
    ("dirty", dirty),
    ("muzzy", muzzy),
    ("thread-caches", thread_caches),
    ("fragmentation", slabs::fragmentation),
    ("metadata", metadata::metadata),
    ("remote", remote),
    ("arenas", arenas),
    ("locks", locks),
    ("not-ours", not_ours),
    ("fork", fork),
    ("addresses", addresses),
    ("region-fragments", region_fragments),
    ("region-lock", region_lock),
];

const MIB: usize = 1 << 20;

/// Bytes in a readable unit.
fn bytes(bytes: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, lg)| bytes >= 1 << lg) {
        Some((unit, lg)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << lg) as f64),
        None => format!("{bytes} bytes"),
    }
}

/// `part` in per cent of `whole`.
fn percent(part: usize, whole: usize) -> usize {
    (part as u128 * 100).checked_div(whole as u128).unwrap_or(0) as usize
}

/// Whether bytes are worth a finding: at least `least`, and `share` per cent of the memory in use.
fn is_much(part: usize, least: usize, share: usize, snapshot: &Snapshot) -> bool {
    part >= least && percent(part, snapshot.totals.active) >= share
}

fn dirty(snapshot: &Snapshot) -> Option<Found> {
    let dirty = snapshot.totals.dirty;
    if !is_much(dirty, 64 * MIB, 25, snapshot) {
        return None;
    }
    let what = format!(
        "{} of unused pages still have memory, {} % of the {} in use.",
        bytes(dirty),
        percent(dirty, snapshot.totals.active),
        bytes(snapshot.totals.active)
    );
    let arena = snapshot.arenas.iter().max_by_key(|arena| arena.space.pdirty)?;
    let help = if arena.dirty_decay_ms < 0 {
        format!(
            "They are never given back, because arena.{}.dirty_decay_ms is -1: write it and that \
             of other arenas, and arenas.dirty_decay_ms for those made later, or do \
             arena.4096.purge.",
            arena.index
        )
    } else if snapshot.settings.locked >= dirty {
        "The program has locked its memory (mlockall), which goes back only with its addresses: \
         start it with retain:false."
            .into()
    } else if has_background_thread(snapshot) {
        format!(
            "They are kept for {} ms: lower arenas.dirty_decay_ms and each \
             arena.<i>.dirty_decay_ms, or do arena.4096.purge.",
            arena.dirty_decay_ms
        )
    } else {
        "Threads that sleep give nothing back: write background_thread=true, or do \
         arena.4096.purge."
            .into()
    };
    Some(Found { weight: dirty, what, help })
}

fn muzzy(snapshot: &Snapshot) -> Option<Found> {
    let muzzy = snapshot.totals.muzzy;
    is_much(muzzy, 64 * MIB, 25, snapshot).then(|| Found {
        weight: muzzy,
        what: format!(
            "{} of pages were given back lazily: the system takes them only when it runs short, \
             and counts them as the process's until then.",
            bytes(muzzy)
        ),
        help: "If that looks like a leak: write arena.<i>.muzzy_decay_ms=0.".into(),
    })
}

fn thread_caches(snapshot: &Snapshot) -> Option<Found> {
    let (cached, threads) = (snapshot.totals.cached, snapshot.totals.thread_caches);
    is_much(cached, 32 * MIB, 10, snapshot).then(|| Found {
        weight: cached,
        what: format!(
            "{} lie in the caches of {threads} threads, {} % of the {} in use.",
            bytes(cached),
            percent(cached, snapshot.totals.active),
            bytes(snapshot.totals.active)
        ),
        help: "Let threads that park for long do thread.idle; run fewer threads; or lower \
               opt.tcache_max."
            .into(),
    })
}

/// Whether a background thread makes decay passes.
fn has_background_thread(snapshot: &Snapshot) -> bool {
    snapshot.settings.background_thread || snapshot.totals.background_threads > 0
}

fn remote(snapshot: &Snapshot) -> Option<Found> {
    let pending = snapshot.totals.remote_pending;
    let help = if has_background_thread(snapshot) {
        "The background thread takes those of idle threads in within a decay time, or do \
         arena.4096.decay."
    } else {
        "Idle threads' slabs are looked after by decay passes: write background_thread=true, or do \
         arena.4096.decay."
    };
    is_much(pending, 16 * MIB, 5, snapshot).then(|| Found {
        weight: pending,
        what: format!(
            "{} were freed by other threads than those whose slabs hold them, which have not \
             taken them in yet.",
            bytes(pending)
        ),
        help: help.into(),
    })
}

fn arenas(snapshot: &Snapshot) -> Option<Found> {
    let automatic = |index: usize| index < snapshot.settings.narenas as usize;
    let open = snapshot.arenas.iter().filter(|arena| automatic(arena.index)).count();
    let unused = snapshot.totals.dirty + snapshot.totals.muzzy;
    let each = snapshot.totals.active.checked_div(open).unwrap_or(0);
    (open > 16 && each < 4 * MIB && unused > snapshot.totals.active / 2).then(|| Found {
        weight: unused,
        what: format!(
            "{open} arenas hold {} in use each, and {} of unused pages together.",
            bytes(each),
            bytes(unused)
        ),
        help: "Do arena.4096.purge. Fewer arenas keep fewer unused pages: set opt.narenas for the \
               next start, because arenas that exist stay."
            .into(),
    })
}

fn locks(snapshot: &Snapshot) -> Option<Found> {
    let mut locks = vec_of_locks(snapshot);
    locks.sort_by_key(|(_, mutex)| core::cmp::Reverse(mutex.num_wait));
    let (name, mutex) = locks.into_iter().next()?;
    let is_hot = mutex.num_wait >= 1000 && mutex.num_wait.saturating_mul(50) >= mutex.num_ops;
    is_hot.then(|| Found {
        weight: 0,
        what: format!(
            "Threads slept {} times of {} for {name}, {} ms in all and {} ms at most.",
            mutex.num_wait,
            mutex.num_ops,
            mutex.total_wait_time / 1_000_000,
            mutex.max_wait_time / 1_000_000
        ),
        help:
            "More arenas spread threads: raise opt.narenas for the next start. Raising vm.regmax \
               alone makes no more of them."
                .into(),
    })
}

fn vec_of_locks(snapshot: &Snapshot) -> Vec<(String, MutexStats)> {
    let mut locks = Vec::new();
    for arena in &snapshot.arenas {
        locks.push((format!("the pages of arena {}", arena.index), arena.pages_mutex));
        for bin in &arena.bins {
            let name = format!("the blocks of {} bytes of arena {}", bin.size, arena.index);
            locks.push((name, bin.mutex));
        }
    }
    locks
}

fn not_ours(snapshot: &Snapshot) -> Option<Found> {
    let rss = snapshot.rss;
    (rss.not_ours >= 256 * MIB && rss.not_ours > rss.ours).then(|| Found {
        weight: rss.not_ours,
        what: format!(
            "Of the {} that the process has in memory, {} are not this allocator's.",
            bytes(rss.process),
            bytes(rss.not_ours)
        ),
        help: "They are mapped files, stacks, or another allocator's: see /proc/PID/smaps.".into(),
    })
}

fn fork(snapshot: &Snapshot) -> Option<Found> {
    let lost = snapshot.totals.fork_abandoned;
    (lost >= 10_000).then(|| Found {
        weight: 0,
        what: format!(
            "{lost} blocks were left behind in the caches of threads that a fork did not copy."
        ),
        help: "They stay allocated. Fork before starting threads, or exec in the child.".into(),
    })
}

fn addresses(snapshot: &Snapshot) -> Option<Found> {
    let abandoned = snapshot.merged.space.abandoned_vm;
    (abandoned >= 64 * MIB).then(|| Found {
        weight: 0,
        what: format!("The system did not take {} of addresses back.", bytes(abandoned)),
        help: "They have no memory. See vm.max_map_count, and limits on addresses.".into(),
    })
}

/// The region with the most bytes that are free and of little use: as they are all together in much
/// smaller blocks, or far more than what is in use.
fn region_fragments(snapshot: &Snapshot) -> Option<Found> {
    let regions = snapshot.regions.iter().filter(|region| is_sparse(region));
    let worst = regions.max_by_key(|region| region.s_free)?;
    let Region { name, s_free, m_free, extent, .. } = worst;
    let (free, share) = (bytes(*s_free), percent(*s_free, *extent));
    let total = bytes(*extent);
    let start = format!("Of the region {name} {free} are free, {share} % of its {total}");
    let is_split = is_split(worst);
    Some(Found {
        weight: *s_free,
        what: if is_split {
            format!("{start}, and the largest free block has {}.", bytes(*m_free))
        } else {
            format!("{start}.")
        },
        help: if is_split {
            "Blocks that live long are between the free ones: open a region of their own for them, \
             or one for each size with the method pool."
                .into()
        } else {
            compaction(worst)
        },
    })
}

/// How free memory goes back. `vm.region.<i>.compact` is refused to requests over HTTP.
fn compaction(region: &Region) -> String {
    let how = match &region.file {
        // Of a long path only the end is known.
        Some(file) if file.starts_with('/') => format!("Run `lumalloc region compact {file}`"),
        _ => format!(
            "Have the program call vmcompact (in Rust Region::compact) or do vm.region.{}.compact",
            region.index
        ),
    };
    format!(
        "{how}: it gives back what is free at the ends of segments, not what is between blocks in \
         use."
    )
}

fn is_sparse(region: &Region) -> bool {
    let least = if is_split(region) { 50 } else { 75 };
    region.s_free >= 64 * MIB && percent(region.s_free, region.extent) >= least
}

/// Whether free memory is in small pieces. All blocks of a pool are alike.
fn is_split(region: &Region) -> bool {
    region.method != "pool" && region.m_free < region.s_free / 64
}

fn region_lock(snapshot: &Snapshot) -> Option<Found> {
    let region =
        snapshot.regions.iter().find(|region| region.holder != 0 && !region.holder_alive)?;
    Some(Found {
        weight: region.extent,
        what: format!(
            "Process {} ended in a call of the region {}, and still has its lock.",
            region.holder, region.name
        ),
        help:
            "The next call takes the lock over and finds anew what is free; only the block of the \
               last call may be lost. See why that process ended."
                .into(),
    })
}

#[cfg(test)]
#[path = "doctor_test.rs"]
mod tests;
