//! Random programs against a shadow of all runs, over a fixed buffer and over a failing system.

use super::*;
use crate::back::dense;
use crate::back::moves;
use crate::back::provider::failing::Failing;
use crate::back::provider::fixed::{Fixed, keep};
use crate::back::provider::mmap::Mmap;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[derive(Clone, Debug)]
enum Op {
    Allocate { pages: usize, lg_align: u32, filled: bool },
    Free { index: usize },
    Shrink { index: usize, by: usize },
    Grow { index: usize, by: usize },
    Move { index: usize, by: usize, lg_align: u32 },
    Decay { millis: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1usize..40, 12u32..18, any::<bool>())
            .prop_map(|(pages, lg_align, filled)| Op::Allocate { pages, lg_align, filled }),
        3 => any::<usize>().prop_map(|index| Op::Free { index }),
        1 => (any::<usize>(), 1usize..20).prop_map(|(index, by)| Op::Shrink { index, by }),
        1 => (any::<usize>(), 1usize..20).prop_map(|(index, by)| Op::Grow { index, by }),
        2 => (any::<usize>(), 1usize..20, 12u32..16)
            .prop_map(|(index, by, lg_align)| Op::Move { index, by, lg_align }),
        1 => (1u64..20_000).prop_map(|millis| Op::Decay { millis }),
    ]
}

impl PageAllocator {
    /// Of an arena of its own: runs of one arena that lie side by side are under one lock.
    pub(crate) fn for_test(provider: &'static dyn PageProvider) -> PageAllocator {
        static NEXT: AtomicU32 = AtomicU32::new(5000);
        let mut pages = PageAllocator::new(NEXT.fetch_add(1, Relaxed), provider);
        pages.rest.is_alone = true;
        pages
    }
}

/// Runs in use, by base address.
type Shadow = BTreeMap<usize, &'static Extent>;

fn no_overlap(shadow: &Shadow, extent: &Extent) {
    if let Some((_, before)) = shadow.range(..=extent.base()).next_back() {
        assert!(before.end() <= extent.base(), "overlaps the run before");
    }
    if let Some((next, _)) = shadow.range(extent.base()..).next() {
        assert!(extent.end() <= *next, "overlaps the run after");
    }
}

fn pick(shadow: &Shadow, index: usize) -> Option<&'static Extent> {
    let nth = index.checked_rem(shadow.len())?;
    shadow.values().nth(nth).copied()
}

fn step(pages: &mut PageAllocator, shadow: &mut Shadow, now: &mut u64, op: &Op) {
    match *op {
        Op::Allocate { pages: n, lg_align, filled } => {
            let memory = Memory::Any.filled_if(filled);
            let Some(extent) = pages.allocate(n, 1 << lg_align, memory) else { return };
            assert_eq!(extent.pages(), n);
            assert!(extent.base().is_multiple_of(1 << lg_align));
            if extent.zeroed.get() {
                // SAFETY: the run is ours.
                let bytes =
                    unsafe { std::slice::from_raw_parts(extent.base_ptr(), extent.bytes()) };
                assert!(bytes.iter().all(|byte| *byte == 0), "called zero, is not");
            }
            // SAFETY: the run is ours.
            unsafe { extent.base_ptr().write_bytes(0xa5, extent.bytes()) };
            no_overlap(shadow, extent);
            shadow.insert(extent.base(), extent);
        }
        Op::Free { index } => {
            let Some(extent) = pick(shadow, index) else { return };
            shadow.remove(&extent.base());
            pages.free(extent);
        }
        Op::Shrink { index, by } => {
            if let Some(extent) = pick(shadow, index).filter(|extent| extent.pages() > by) {
                pages.shrink(extent, extent.pages() - by);
            }
        }
        Op::Grow { index, by } => {
            let Some(extent) = pick(shadow, index) else { return };
            shadow.remove(&extent.base());
            if pages.grow(extent, extent.pages() + by).is_some() {
                no_overlap(shadow, extent);
                // SAFETY: the run is ours.
                unsafe { extent.base_ptr().write_bytes(0xa5, extent.bytes()) };
            }
            shadow.insert(extent.base(), extent);
        }
        Op::Move { index, by, lg_align } => {
            let Some(extent) = pick(shadow, index) else { return };
            shadow.remove(&extent.base());
            let kept = lengthen(pages, extent, by, 1 << lg_align);
            no_overlap(shadow, kept);
            shadow.insert(kept.base(), kept);
        }
        Op::Decay { millis } => {
            *now += millis;
            let (dirty, muzzy) = pages.advance(*now);
            while let Some(batch) = pages.take_batch(dirty, muzzy) {
                batch.purge();
                if !pages.file_batch(batch) {
                    break;
                }
            }
        }
    }
}

/// Lengthens a run full of 0xa5 by a move, and answers what is in use then.
fn lengthen(
    pages: &mut PageAllocator,
    extent: &'static Extent,
    by: usize,
    align: usize,
) -> &'static Extent {
    let before = extent.bytes();
    let Some(new) = pages.begin_move(extent, extent.pages() + by, align) else { return extent };
    let moved = moves::move_pages(pages.provider(), extent, new);
    if !pages.end_move(extent, new, moved) {
        return extent;
    }
    assert!(new.base().is_multiple_of(align) && new.bytes() == before + by * PAGE);
    // SAFETY: the run is ours.
    let bytes = unsafe { std::slice::from_raw_parts(new.base_ptr(), new.bytes()) };
    assert!(bytes[..before].iter().all(|byte| *byte == 0xa5), "contents went astray");
    assert!(bytes[before..].iter().all(|byte| *byte == 0), "the end is not zero");
    // SAFETY: the run is ours.
    unsafe { new.base_ptr().write_bytes(0xa5, new.bytes()) };
    new
}

fn run(provider: &'static dyn PageProvider, ops: &[Op], large: bool) {
    let mut pages = PageAllocator::for_test(provider);
    let (mut shadow, mut now) = (Shadow::new(), 1_000_000);
    let ballast = if large { pages.allocate(dense::LARGE_HEAP, PAGE, Memory::Any) } else { None };
    for op in ops {
        step(&mut pages, &mut shadow, &mut now, op);
        pages.check();
    }
    shadow.into_values().chain(ballast).for_each(|extent| pages.free(extent));
    pages.check();
    assert_eq!(pages.counts().active, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 256 }))]

    #[test]
    fn fixed_random_programs_keep_every_page(
        ops in prop::collection::vec(op(), 1..120),
        large: bool,
    ) {
        run(Fixed::leak(48 << 20), &ops, large);
    }

    #[test]
    fn a_failing_system_loses_nothing(
        ops in prop::collection::vec(op(), 1..120),
        period in 1u64..6,
        large: bool,
    ) {
        let provider: &'static Failing<Mmap> = keep(Box::new(Failing::new(Mmap)));
        provider.fail_every(period);
        run(provider, &ops, large);
    }
}

#[test]
fn a_purged_run_reads_zero_and_a_freed_one_does_not_say_so() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let run = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert!(run.zeroed.get());
    // SAFETY: the run is ours.
    unsafe { run.base_ptr().write_bytes(1, run.bytes()) };
    let base = run.base();
    pages.free(run);
    let again = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert_eq!(again.base(), base);
    assert!(!again.zeroed.get());
    pages.free(again);
    while let Some(batch) = pages.take_batch(0, 0) {
        batch.purge();
        assert!(pages.file_batch(batch));
    }
    let purged = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert_eq!(purged.base(), base);
    assert!(purged.zeroed.get());
    // SAFETY: the run is ours.
    assert_eq!(unsafe { purged.base_ptr().read() }, 0);
}

#[test]
fn growth_takes_the_free_neighbour_and_alignment_any_power_of_two() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let run = pages.allocate(4, PAGE, Memory::Any).unwrap();
    assert_eq!(pages.grow(run, 100), Some(true));
    assert_eq!(run.pages(), 100);
    let next = pages.allocate(1, PAGE, Memory::Any).unwrap();
    assert_eq!(next.base(), run.end());
    assert_eq!(pages.grow(run, 101), None);
    for lg in 12..36 {
        let aligned = pages.allocate(1, 1 << lg, Memory::Any).unwrap();
        assert!(aligned.base().is_multiple_of(1 << lg));
    }
    pages.check();
}

#[test]
fn a_moved_run_is_one_mapping_until_it_is_purged() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let run = pages.allocate(4, PAGE, Memory::Any).unwrap();
    let behind = pages.allocate(4, PAGE, Memory::Any).unwrap();
    let (base, retained) = (run.base(), pages.counts().retained);
    // SAFETY: the run is ours.
    unsafe { run.base_ptr().write_bytes(0xa5, run.bytes()) };
    // Twice: the second time all of it is moved, what was added too.
    let first = lengthen(&mut pages, run, 4, PAGE);
    let second = lengthen(&mut pages, first, 8, PAGE);
    assert!(second.pages() == 16 && second.mapping() != 0 && first.mapping() == 0);
    assert_eq!(pages.counts().active, 20);
    assert_eq!(pages.counts().dirty, 0);
    assert_eq!(pages.counts().retained, retained - 12);
    // The old place is free, without memory, and zero.
    let again = pages.allocate(4, PAGE, Memory::Any).unwrap();
    assert!(again.base() == base && again.zeroed.get());
    // SAFETY: the run is ours.
    assert_eq!(unsafe { again.base_ptr().read() }, 0);
    // Beside an ordinary run it stays by itself; purged, it is an ordinary run.
    for run in [again, behind, second] {
        pages.free(run);
    }
    assert_eq!(pages.dirty.pages(), 24);
    let oldest = pages.dirty.oldest().unwrap();
    assert_eq!((oldest.pages(), oldest.younger.get().unwrap().pages()), (8, 16));
    while let Some(batch) = pages.take_batch(0, 0) {
        batch.purge();
        assert!(pages.file_batch(batch));
    }
    pages.check();
    let all = pages.retained.oldest().unwrap();
    assert_eq!((all.pages(), all.mapping()), (FIRST_CHUNK, 0));
    assert!(all.zeroed.get() && all.younger.get().is_none());
}
