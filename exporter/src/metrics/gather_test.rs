//! The metrics that are served, from the allocator and from one that fails.
use super::families::families;
use super::kinds::Kind;
use super::sample::{Number, Sample};
use super::settle::{Metrics, Served};
use super::{Group, Groups, openmetrics, text};
use crate::namespace::{Linked, Namespace};
use lumalloc::control::arenas;
use lumalloc::raw::{self, Flags};
use lumalloc_ctl::{Buffers, Error};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::heap_map::Part;
use lumalloc_region::{Best, Heap, Region};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Lets one test run at a time, because snapshots are of the process. Allocates some blocks to
/// count.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    static BLOCKS: OnceLock<[usize; 2]> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| [100, 3 << 20].map(|size| raw::malloc(size) as usize));
    assert!(!blocks.contains(&0));
    alone
}

/// The allocator with keys that fail, and with other snapshots that are taken during the reading.
#[derive(Default)]
struct Failing {
    keys: Vec<&'static str>,
    /// How many further calls begin with a new snapshot.
    refreshes: AtomicUsize,
    /// How many calls took a snapshot themselves.
    taken: AtomicUsize,
    /// Arenas that end after a snapshot, each with the number of this snapshot.
    ends: Mutex<Vec<(usize, u32)>>,
}

impl Failing {
    fn at(keys: &[&'static str]) -> Failing {
        Failing { keys: keys.to_vec(), ..Failing::default() }
    }
}

impl Namespace for Failing {
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        if self.keys.iter().any(|key| name.starts_with(key)) {
            return Err(Error::NoEntry);
        }
        Linked.mib(name, mib)
    }

    unsafe fn call(&self, mib: &[usize], buffers: Buffers) -> Result<(), Error> {
        if self.refreshes.load(Relaxed) > 0 && mib.len() > 2 {
            self.refreshes.fetch_sub(1, Relaxed);
            lumalloc_namespace::snapshot::refresh();
        }
        let mut ends = self.ends.lock().unwrap();
        let taken = self.taken.load(Relaxed);
        for (_, arena) in ends.extract_if(.., |(after, _)| *after <= taken) {
            // SAFETY: no code uses the arena's blocks.
            assert!(unsafe { arenas::destroy(arena) });
        }
        drop(ends);
        // Only the epoch is written here.
        self.taken.fetch_add(usize::from(buffers.writes()), Relaxed);
        // SAFETY: the caller keeps the contract of `call`.
        unsafe { Linked.call(mib, buffers) }
    }

    fn print(&self, letters: &CStr) -> Result<Vec<u8>, Error> {
        Linked.print(letters)
    }

    fn map(&self, part: Part) -> Result<Vec<u8>, Error> {
        Linked.map(part)
    }

    fn map_at(&self, address: usize) -> Result<Vec<u8>, Error> {
        Linked.map_at(address)
    }
}

/// Gathers from one snapshot, although other tests take snapshots too.
fn gather(metrics: &Metrics, wanted: Groups) -> Vec<Served> {
    let tries = (0..100).map(|_| metrics.gather(&Linked, wanted, None).unwrap());
    let mut consistent = tries.filter(|all| one(all, "lumalloc_snapshot_consistent") == 1.0);
    consistent.next().expect("one of so many is consistent")
}

fn samples<'a>(served: &'a [Served], name: &str) -> &'a [Sample] {
    served.iter().find(|one| one.family.name == name).map_or(&[], |one| &one.samples)
}

fn value(sample: &Sample) -> f64 {
    match &sample.value {
        Number::One(value) => *value,
        Number::Many(many) => many.buckets.iter().map(|(_, count)| count).sum(),
    }
}

fn one(served: &[Served], name: &str) -> f64 {
    let samples = samples(served, name);
    assert_eq!(samples.len(), 1, "{name}");
    value(&samples[0])
}

fn of(served: &[Served], name: &str, label: &str) -> Option<f64> {
    samples(served, name).iter().find(|one| one.labels[0].1 == label).map(value)
}

fn sum(served: &[Served], name: &str) -> f64 {
    samples(served, name).iter().map(value).sum()
}

#[test]
fn every_family_is_served_with_its_labels() {
    let _alone = alone();
    let region: Region<Best, Heap> = Region::open(Heap).unwrap();
    let region = region.publish("documents").unwrap();
    region.alloc(1000).unwrap();
    let served = gather(&Metrics::default(), Groups::all());
    assert_eq!(of(&served, "lumalloc_region_busy_blocks", "documents"), Some(1.0));
    for sample in samples(&served, "lumalloc_collector_success") {
        assert_eq!(value(sample), 1.0, "{:?}", sample.labels);
    }
    for family in families() {
        let samples = samples(&served, family.name);
        let may_be_empty = family.group == Group::Extents
            || family.name == "lumalloc_exporter_requests_total"
            || family.name == "lumalloc_exporter_connections_ended_total";
        assert!(may_be_empty || !samples.is_empty(), "{} is not served", family.name);
        for sample in samples {
            let labels: Vec<&str> = sample.labels.iter().map(|(name, _)| *name).collect();
            assert_eq!(labels, family.labels, "{}", family.name);
            assert!(value(sample) >= 0.0, "{}: {sample:?}", family.name);
        }
    }
    let order: Vec<_> = served.iter().map(|one| one.family.group as u8).collect();
    assert!(order.is_sorted());
}

#[test]
fn sums_are_what_they_should_be() {
    let _alone = alone();
    let served = gather(&Metrics::default(), Groups::default());
    let bytes = |name: &str| one(&served, &format!("lumalloc_{name}_bytes"));
    let parts =
        ["allocated", "slab_free", "remote_pending", "thread_cache", "dirty", "muzzy", "metadata"];
    assert_eq!(parts.map(bytes).iter().sum::<f64>(), bytes("resident"));
    for name in ["allocated", "active", "resident", "mapped", "retained", "metadata", "dirty"] {
        let arenas = sum(&served, &format!("lumalloc_arena_{name}_bytes"));
        assert_eq!(arenas, bytes(name), "{name}");
    }
    let allocations = one(&served, "lumalloc_allocations_total");
    assert_eq!(sum(&served, "lumalloc_arena_allocations_total"), allocations);
    assert_eq!(one(&served, "lumalloc_allocation_size_bytes"), allocations);
    let live = one(&served, "lumalloc_blocks");
    assert_eq!(allocations - one(&served, "lumalloc_deallocations_total"), live);
}

#[test]
fn allocations_are_counted_by_size() {
    let _alone = alone();
    let metrics = Metrics::default();
    let counts = || {
        let served = gather(&metrics, Groups::default());
        let Number::Many(many) = &samples(&served, "lumalloc_allocation_size_bytes")[0].value
        else {
            panic!("no histogram");
        };
        let buckets = many.buckets.clone();
        (buckets, one(&served, "lumalloc_deallocations_total"))
    };
    let (before, freed) = counts();
    let blocks: Vec<*mut u8> = (0..1000).map(|_| raw::malloc(200)).collect();
    for block in blocks {
        // SAFETY: a block from malloc, freed once.
        unsafe { raw::free(block) };
    }
    let large = raw::malloc(3 << 20);
    let (after, freed_after) = counts();
    let more = |bound: f64| {
        let at = |buckets: &[(f64, f64)]| buckets.iter().find(|one| one.0 == bound).unwrap().1;
        at(&after) - at(&before)
    };
    assert!(more(256.0) >= 1000.0, "{after:?}");
    assert!(more((4 << 20) as f64) >= 1.0);
    assert!(freed_after - freed >= 1000.0);
    assert!(after.len() <= 20 && after[after.len() - 1].0 == f64::INFINITY);
    // SAFETY: a block from malloc, freed once.
    unsafe { raw::free(large) };
}

#[test]
fn a_named_arena_has_its_own_label_and_keeps_its_counts() {
    let _alone = alone();
    let metrics = Metrics::default();
    let index = arenas::create().unwrap();
    assert!(arenas::set_name(index, b"tenant"));
    let flags = Flags::NONE.arena(index).uncached();
    let blocks: Vec<*mut u8> = (0..10).map(|_| raw::allocate(1000, flags)).collect();
    let served = gather(&metrics, Groups::all());
    let count = "lumalloc_arena_allocations_total";
    assert_eq!(of(&served, count, "tenant"), Some(10.0));
    assert_eq!(of(&served, "lumalloc_arena_allocated_bytes", "tenant"), Some(10.0 * 1024.0));
    let by_index = "lumalloc_each_arena_small_allocations_total";
    assert_eq!(of(&served, by_index, &index.to_string()), Some(10.0));
    let infos = samples(&served, "lumalloc_each_arena_info");
    assert!(infos.iter().any(|one| one.labels[1].1 == "tenant"), "{infos:?}");
    let created = samples(&served, count).iter().find(|one| one.labels[0].1 == "tenant");
    assert!(created.unwrap().created.unwrap() > 1e9);
    assert_eq!(blocks.len(), 10);
    // SAFETY: no code uses the arena's blocks any more.
    assert!(unsafe { arenas::destroy(index) });
    // Another arena takes its place before the next look.
    let next = arenas::create().unwrap();
    let served = gather(&metrics, Groups::all());
    assert_eq!(of(&served, count, "tenant"), Some(10.0));
    assert_eq!(of(&served, "lumalloc_arena_allocated_bytes", "tenant"), None);
    let all = one(&served, "lumalloc_allocations_total");
    assert_eq!(sum(&served, count), all, "no count is lost, and none is there twice");
    // SAFETY: the arena has no blocks.
    assert!(unsafe { arenas::destroy(next) });
}

#[test]
fn counters_go_on_after_a_reset() {
    let _alone = alone();
    let metrics = Metrics::default();
    let name = "lumalloc_mutex_acquisitions_total";
    let before = gather(&metrics, Groups::all());
    lumalloc_namespace::snapshot::reset_mutexes();
    let after = gather(&metrics, Groups::all());
    for sample in samples(&before, name) {
        let label = &sample.labels[0].1;
        let now = of(&after, name, label).unwrap();
        assert!(now >= value(sample), "{label}: {now} after {}", value(sample));
    }
    assert!(of(&before, name, "extents").unwrap() > 0.0);
}

/// Returns every counter, by family and labels.
fn counters(served: &[Served]) -> BTreeMap<String, f64> {
    let all = served.iter().filter(|one| one.family.kind == Kind::Counter);
    let all = all.flat_map(|one| {
        one.samples.iter().map(|sample| {
            let labels: Vec<&str> = sample.labels.iter().map(|(_, value)| value.as_ref()).collect();
            (format!("{} {}", one.family.name, labels.join(" ")), value(sample))
        })
    });
    all.collect()
}

#[test]
fn counters_never_go_back_under_load() {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let metrics = Metrics::default();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let stop = &stop;
            scope.spawn(move || {
                let mut blocks = Vec::new();
                let mut turn = thread;
                while !stop.load(Relaxed) {
                    turn = turn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    blocks.push(raw::malloc(turn >> 33 & 0xffff));
                    if blocks.len() > 200 {
                        // SAFETY: a block from malloc, freed once.
                        unsafe { raw::free(blocks.swap_remove(turn >> 40 & 0x7f)) };
                    }
                }
                for block in blocks {
                    // SAFETY: a block from malloc, freed once.
                    unsafe { raw::free(block) };
                }
            });
        }
        let mut before = counters(&gather(&metrics, Groups::all()));
        for round in 0..60 {
            if round % 7 == 3 {
                lumalloc_namespace::snapshot::reset_mutexes();
            }
            if round % 5 == 2 {
                let arena = arenas::create().unwrap();
                assert!(arenas::set_name(arena, b"comes and goes"));
                assert!(!raw::allocate(100, Flags::NONE.arena(arena).uncached()).is_null());
                // SAFETY: no code uses the arena's blocks any more.
                assert!(unsafe { arenas::destroy(arena) });
            }
            let now = counters(&gather(&metrics, Groups::all()));
            for (name, count) in &before {
                let now = now.get(name).unwrap_or_else(|| panic!("{name} is gone"));
                assert!(now >= count, "{name}: {now} after {count}");
            }
            before = now;
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_collector_that_fails_leaves_its_families_out_alone() {
    let _alone = alone();
    let failing = Failing::at(&["stats.work."]);
    let served = Metrics::default().gather(&failing, Groups::default(), None).unwrap();
    let success = "lumalloc_collector_success";
    assert_eq!(of(&served, success, "work"), Some(0.0));
    assert_eq!(of(&served, success, "memory"), Some(1.0));
    assert!(samples(&served, "lumalloc_refills_total").is_empty());
    assert!(samples(&served, "lumalloc_arena_entries_total").is_empty(), "all of it or nothing");
    assert!(one(&served, "lumalloc_allocated_bytes") > 0.0);
    let failing = Failing::at(&["arena.0.name"]);
    let served = Metrics::default().gather(&failing, Groups::default(), None).unwrap();
    assert!(samples(&served, "lumalloc_arena_active_bytes").is_empty());
}

#[test]
fn nothing_at_all_is_an_error() {
    let _alone = alone();
    let nothing = Failing::at(&["epoch"]);
    let error = Metrics::default().gather(&nothing, Groups::default(), None).unwrap_err();
    assert_eq!(error, Error::NoEntry);
}

#[test]
fn a_snapshot_that_others_replace_is_read_again() {
    let _alone = alone();
    let metrics = Metrics::default();
    let once = Failing { refreshes: AtomicUsize::new(1), ..Failing::default() };
    let served = metrics.gather(&once, Groups::default(), None).unwrap();
    let (taken, all_one) = (once.taken.into_inner(), one(&served, "lumalloc_snapshot_consistent"));
    // Other tests take snapshots too.
    assert!(taken == 2 && all_one == 1.0 || taken == 3, "{taken} {all_one}");
    let always = Failing { refreshes: AtomicUsize::new(usize::MAX), ..Failing::default() };
    let served = metrics.gather(&always, Groups::default(), None).unwrap();
    assert_eq!(always.taken.load(Relaxed), 3);
    assert_eq!(one(&served, "lumalloc_snapshot_consistent"), 0.0);
    assert!(one(&served, "lumalloc_allocated_bytes") > 0.0, "better than nothing");
}

/// What an arena had counts in the sums of the snapshot, but can be read no more.
#[test]
fn an_arena_that_ends_during_the_reading_makes_it_read_again() {
    let _alone = alone();
    let metrics = Metrics::default();
    let ending = |snapshots: &[usize]| {
        let made = snapshots.iter().map(|after| (*after, arenas::create().unwrap()));
        let failing = Failing { ends: Mutex::new(made.collect()), ..Failing::default() };
        let served = metrics.gather(&failing, Groups::default(), None).unwrap();
        assert!(failing.ends.lock().unwrap().is_empty());
        let is_consistent = one(&served, "lumalloc_snapshot_consistent") == 1.0;
        if is_consistent {
            let arenas = sum(&served, "lumalloc_arena_resident_bytes");
            assert_eq!(arenas, one(&served, "lumalloc_resident_bytes"));
        }
        (failing.taken.into_inner(), is_consistent)
    };
    let once = ending(&[1]);
    // Other tests take snapshots, and have arenas that end, too.
    assert!(once == (2, true) || once.0 == 3, "{once:?}");
    assert_eq!(ending(&[1, 2, 3]), (3, false));
}

#[test]
fn both_formats_hold_any_name() {
    let _alone = alone();
    let index = arenas::create().unwrap();
    assert!(arenas::set_name(index, b"a \"name\" \\ of\nlines \xff"));
    let served = gather(&Metrics::default(), Groups::default());
    let escaped = "{arena=\"a \\\"name\\\" \\\\ of\\nlines \u{fffd}\"}";
    let text = text::encode(&served).unwrap();
    assert!(text.contains(&format!("\nlumalloc_arena_threads{escaped} 0\n")), "{text}");
    assert!(text.contains("\nlumalloc_arena_limit_bytes{arena=\"auto\"} +Inf\n"), "{text}");
    let last = "\nlumalloc_allocation_size_bytes_bucket{le=\"+Inf\"} ";
    assert_eq!(text.matches(last).count(), 1, "{text}");
    assert!(!text.contains("inf\"") && !text.contains(" inf"), "{text}");
    let open = openmetrics::encode(&served);
    assert!(open.contains(&format!("\nlumalloc_arena_threads{escaped} 0.0\n")), "{open}");
    assert!(open.contains(&format!("\nlumalloc_arena_allocations_created{escaped} ")), "{open}");
    assert!(open.starts_with("# TYPE lumalloc_build info\n# HELP lumalloc_build "), "{open}");
    assert!(open.contains("\nlumalloc_build_info{version=\""), "{open}");
    let head =
        "# TYPE lumalloc_lock_wait_seconds counter\n# UNIT lumalloc_lock_wait_seconds seconds\n";
    assert!(open.contains(head), "{open}");
    assert!(open.contains("\nlumalloc_allocation_size_bytes_bucket{le=\"16.0\"} "), "{open}");
    assert!(open.contains("\nlumalloc_allocation_size_bytes_bucket{le=\"+Inf\"} "), "{open}");
    assert!(open.ends_with("\n# EOF\n"));
    // SAFETY: no code uses the arena's blocks.
    assert!(unsafe { arenas::destroy(index) });
}
