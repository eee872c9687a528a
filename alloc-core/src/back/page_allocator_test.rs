//! Random programs against a shadow of all runs, over a fixed buffer and over systems that refuse.

use super::*;
use crate::back::placement::huge_page_policy::LARGE_HEAP;
use crate::back::runs::chunk_notes::CHUNK;
use crate::back::runs::growth::FIRST_CHUNK;
use crate::back::runs::huge;
use crate::back::system::mapping::Mapping;
use crate::back::system::provider::dss::WithBreak;
use crate::back::system::provider::failing::{Failing, Refused};
use crate::back::system::provider::fixed::{Fixed, keep};
use crate::back::system::provider::mmap::Mmap;
use crate::back::system::thp;
use crate::ground::low;
use crate::ground::units::PAGE;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[path = "shadow_test.rs"]
mod shadow;
use shadow::{Live, Shadow};

#[derive(Clone, Debug)]
enum Op {
    Allocate { pages: usize, lg_align: u32, memory: Memory },
    Free { index: usize },
    Shrink { index: usize, by: usize },
    Grow { index: usize, by: usize },
    Move { index: usize, by: usize, lg_align: u32 },
    Decay { millis: u64 },
}

fn memory() -> impl Strategy<Value = Memory> {
    prop_oneof![
        1 => Just(Memory::Resident),
        4 => Just(Memory::Any),
        4 => Just(Memory::Filled),
        1 => Just(Memory::Begun),
        1 => Just(Memory::Followed),
        2 => Just(Memory::Low),
    ]
}

/// The pages of a run that makes the heap a small one, or a large one, up to one beside which
/// samples lie in chunks.
const BALLAST: [usize; 3] = [0, LARGE_HEAP, 128 * CHUNK];

/// An operation on runs whose lengths in pages are `lengths`.
fn op(lengths: BoxedStrategy<usize>, lg_align: u32) -> impl Strategy<Value = Op> {
    let aligns = 12..lg_align;
    let by = lengths.clone();
    prop_oneof![
        4 => (lengths, aligns.clone(), memory())
            .prop_map(|(pages, lg_align, memory)| Op::Allocate { pages, lg_align, memory }),
        3 => any::<usize>().prop_map(|index| Op::Free { index }),
        1 => (any::<usize>(), by.clone()).prop_map(|(index, by)| Op::Shrink { index, by }),
        1 => (any::<usize>(), by.clone()).prop_map(|(index, by)| Op::Grow { index, by }),
        2 => (any::<usize>(), by, aligns)
            .prop_map(|(index, by, lg_align)| Op::Move { index, by, lg_align }),
        1 => (1u64..20_000).prop_map(|millis| Op::Decay { millis }),
    ]
}

/// Programs of slabs and other short runs.
fn short_programs() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op((1usize..40).boxed(), 18), 1..120)
}

/// Programs whose runs are up to 64 MiB long.
fn long_programs() -> impl Strategy<Value = Vec<Op>> {
    let lengths = prop_oneof![
        2 => 1usize..40,
        2 => (1usize..24).prop_map(|part| part * (thp::HUGE / PAGE) / 4),
        4 => 1024usize..4096,
        1 => 1usize..=LONGEST,
    ];
    prop::collection::vec(op(lengths.boxed(), 24), 1..80)
}

/// The most pages of a run, and of all runs of a program together.
const LONGEST: usize = (64 << 20) / PAGE;
const MOST: usize = (256 << 20) / PAGE;

impl PageAllocator {
    /// Creates the page allocator of an arena, without pages.
    pub(crate) fn new(arena: u32, provider: &'static dyn PageProvider) -> PageAllocator {
        let mut memory = MaybeUninit::uninit();
        // SAFETY: memory of the right size and alignment.
        let place = unsafe { Place::<Self>::new(NonNull::from(&mut memory).cast()) };
        PageAllocator::begin_at(place, arena, provider);
        // SAFETY: just written.
        unsafe { memory.assume_init() }
    }

    /// Creates the pages of a new arena, because one lock must guard all runs of an arena.
    pub(crate) fn for_test(provider: &'static dyn PageProvider) -> PageAllocator {
        static NEXT: AtomicU32 = AtomicU32::new(5000);
        let mut pages = PageAllocator::new(NEXT.fetch_add(1, Relaxed), provider);
        pages.rest.set_alone();
        pages
    }

    /// As [`PageAllocator::for_test`], but as one of many automatic arenas.
    pub(crate) fn beside_others(provider: &'static dyn PageProvider) -> PageAllocator {
        PageAllocator { rest: Rest::NONE, ..PageAllocator::for_test(provider) }
    }

    /// The free runs.
    pub(in crate::back) fn runs(&mut self) -> &mut FreeRuns {
        &mut self.runs
    }

    /// Lets the rest of the last chunk grow older.
    pub(crate) fn age_rest(&mut self) {
        self.rest.age();
    }

    /// The pages in the rest of the last chunk.
    pub(crate) fn rest_pages(&self) -> usize {
        self.rest.pages()
    }

    /// The oldest free run in a state.
    pub(crate) fn oldest(&self, state: ExtentState) -> Option<&'static Extent> {
        self.runs.oldest(state)
    }
}

fn step(pages: &mut PageAllocator, shadow: &mut Shadow, now: &mut u64, op: &Op) {
    match *op {
        Op::Allocate { pages: n, lg_align, memory } if shadow.has_room_for(n) => {
            let Some(run) = pages.allocate(n, 1 << lg_align, memory) else { return };
            assert_eq!(run.pages(), n);
            assert!(run.base().is_multiple_of(1 << lg_align));
            if run.zeroed.get() {
                Live { run, pages: 0, number: 0 }.assert_zero_behind();
            }
            if matches!(memory, Memory::Filled | Memory::Begun) {
                huge::back(pages.source().provider(), run, run.bytes());
            }
            shadow.add(run);
        }
        Op::Free { index } => {
            if let Some(live) = shadow.take(index) {
                pages.free(live.run);
            }
        }
        Op::Shrink { index, by } => {
            let Some(Live { run, .. }) = shadow.take(index) else { return };
            if run.pages() > by && !run.is_low() {
                pages.shrink(run, run.pages() - by);
            }
            shadow.add(run);
        }
        Op::Grow { index, by } => {
            let Some(live) = shadow.take(index) else { return };
            let longer = live.pages + by;
            let fits = shadow.has_room_for(longer) && !live.run.is_low();
            if fits && pages.grow(live.run, longer) == Some(true) {
                live.assert_zero_behind();
            }
            live.assert_stamped();
            shadow.add(live.run);
        }
        Op::Move { index, by, lg_align } => {
            let Some(live) = shadow.take(index) else { return };
            let fits = shadow.has_room_for(live.pages + by) && !live.run.is_low();
            let kept = if fits { lengthen(pages, live, by, 1 << lg_align) } else { live.run };
            shadow.add(kept);
        }
        Op::Decay { millis } => {
            *now += millis;
            let (dirty, muzzy) = pages.advance(*now);
            purge(pages, dirty, muzzy);
        }
        Op::Allocate { .. } => {}
    }
}

/// Purges the pages beyond `dirty` and `muzzy`, as far as the system allows.
fn purge(pages: &mut PageAllocator, dirty: usize, muzzy: usize) {
    while let Some(batch) = pages.take_batch(dirty, muzzy) {
        batch.purge();
        if !pages.file_batch(batch) {
            break;
        }
    }
}

/// Lengthens a stamped run by a move, and returns the run that is in use then.
fn lengthen(pages: &mut PageAllocator, live: Live, by: usize, align: usize) -> &'static Extent {
    let longer = live.pages + by;
    let Some(new) = pages.begin_move(live.run, longer, align) else { return live.run };
    let moved = moves::move_pages(pages.source().provider(), live.run, new);
    let is_moved = pages.end_move(live.run, new, moved);
    let kept = if is_moved { Live { run: new, ..live } } else { live };
    if is_moved {
        assert!(new.base().is_multiple_of(align) && new.pages() == longer);
        kept.assert_zero_behind();
    }
    kept.assert_stamped();
    kept.run
}

/// Plays a program with the provider's refusals, then gives all pages back without them.
fn run(pages: &mut PageAllocator, ops: &[Op], ballast: usize, go_on: impl FnOnce()) {
    low::tests::open();
    let (mut shadow, mut now) = (Shadow::default(), 1_000_000);
    let ballast = pages.allocate(ballast, PAGE, Memory::Any);
    for op in ops {
        step(pages, &mut shadow, &mut now, op);
        pages.check();
    }
    go_on();
    while let Some(live) = shadow.take(0) {
        pages.free(live.run);
        pages.check();
    }
    ballast.into_iter().for_each(|run| pages.free(run));
    purge(pages, 0, 0);
    pages.check();
    let counts = pages.counts();
    assert_eq!((counts.active, counts.dirty, counts.muzzy), (0, 0, 0));
}

/// Plays a program over a system that refuses every `period`-th call of a kind.
fn run_refused(ops: &[Op], ballast: usize, (kind, period): (Refused, u64), dss: Dss) {
    let provider: &'static Failing<WithBreak<Mmap>> =
        keep(Box::new(Failing::new(WithBreak::new(Mmap))));
    let mut pages = PageAllocator::for_test(provider);
    pages.source().set_dss(dss);
    pages.aging().set_millis(false, 5_000);
    provider.fail_every(period, kind);
    run(&mut pages, ops, ballast, || provider.fail_every(0, kind));
}

const SHORT_CASES: u32 = if cfg!(debug_assertions) { 48 } else { 256 };
const LONG_CASES: u32 = if cfg!(debug_assertions) { 6 } else { 24 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SHORT_CASES))]

    #[test]
    fn fixed_random_programs_keep_every_page(
        ops in short_programs(), ballast in select(&BALLAST)
    ) {
        run(&mut PageAllocator::for_test(Fixed::leak(48 << 20)), &ops, ballast, || {});
    }

    #[test]
    fn a_failing_system_loses_nothing(
        ops in short_programs(), period in 1u64..6, ballast in select(&BALLAST)
    ) {
        run_refused(&ops, ballast, (Refused::All, period), Dss::Disabled);
    }
}

/// Refuses each kind of call alone: every call, every second and every third one.
fn each_kind_refused(ops: &[Op], ballast: usize, dss: Dss) {
    for kind in Refused::EACH {
        for period in [1, 2, 3] {
            run_refused(ops, ballast, (kind, period), dss);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(LONG_CASES))]

    #[test]
    fn long_runs_are_kept_apart(ops in long_programs(), ballast in select(&BALLAST)) {
        each_kind_refused(&ops, ballast, Dss::Disabled);
    }

    #[test]
    fn short_runs_are_kept_apart(ops in short_programs(), ballast in select(&BALLAST)) {
        each_kind_refused(&ops, ballast, Dss::Disabled);
    }
}

#[test]
fn a_purged_run_reads_zero_and_a_freed_one_does_not_say_so() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let run = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert!(run.zeroed.get());
    // SAFETY: the test owns the run.
    unsafe { run.base_ptr().write_bytes(1, run.bytes()) };
    let base = run.base();
    pages.free(run);
    let again = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert!(again.base() == base && !again.zeroed.get());
    pages.free(again);
    purge(&mut pages, 0, 0);
    let purged = pages.allocate(8, PAGE, Memory::Any).unwrap();
    assert_eq!(purged.base(), base);
    assert!(purged.zeroed.get());
    // SAFETY: the test owns the run.
    assert_eq!(unsafe { purged.base_ptr().read() }, 0);
}

#[test]
fn runs_that_the_system_refuses_do_not_keep_others_from_being_purged() {
    let failing = keep(Box::new(Failing::new(Mmap)));
    let mut pages = PageAllocator::for_test(failing);
    let runs: Vec<_> =
        (0..200).map(|_| pages.allocate(1, PAGE, Memory::Any).expect("memory")).collect();
    runs.iter().step_by(2).for_each(|run| pages.free(run));
    assert_eq!(pages.counts().dirty, 100);
    failing.fail_every(3, Refused::Purge);
    purge(&mut pages, 0, 0);
    assert!(pages.counts().dirty <= 1, "the last of them may have been refused alone");
    failing.fail_every(1, Refused::Purge);
    runs.iter().skip(1).step_by(2).for_each(|run| pages.free(run));
    purge(&mut pages, 0, 0);
    assert!(pages.counts().dirty >= 100, "it ends where all are refused");
    pages.check();
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

/// Maps a page of a file that was opened for reading. The system refuses to make it writable.
fn map_file_over(page: usize) {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let (place, flags) =
        (core::ptr::with_exposed_provenance_mut(page), libc::MAP_SHARED | libc::MAP_FIXED);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: the page is in a free run of the test's allocator.
    let got = unsafe { libc::mmap(place, PAGE, libc::PROT_READ, flags, fd, 0) };
    assert_eq!(got.addr(), page);
}

#[test]
fn a_run_that_cannot_grow_to_its_end_has_its_old_length() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let [run, one, two, wall] =
        [4, 10, 20, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
    assert!(one.base() == run.end() && two.base() == one.end() && wall.base() == two.end());
    let (end, refused) = (run.end(), two.base() + PAGE);
    pages.free(one);
    purge(&mut pages, 0, 0);
    pages.free(two);
    two.marks.set_closed(true);
    map_file_over(refused);
    assert_eq!(pages.grow(run, 20), None, "the system does not open the second part");
    assert_eq!((run.end(), pages.counts().active, pages.counts().dirty), (end, 5, 30));
    pages.check();
    assert_eq!(pages.grow(run, 14), Some(false), "the first part is free");
    // The page becomes an ordinary one again.
    let base = NonNull::new(core::ptr::with_exposed_provenance_mut(refused)).unwrap();
    // SAFETY: a page of a free run.
    assert!(unsafe { Mmap.renew(base, PAGE) });
    assert_eq!(pages.grow(run, 34), Some(false));
    pages.check();
}

#[test]
fn a_moved_run_is_one_mapping_until_it_is_purged() {
    let mut pages = PageAllocator::for_test(&Mmap);
    let run = pages.allocate(4, PAGE, Memory::Any).unwrap();
    let behind = pages.allocate(4, PAGE, Memory::Any).unwrap();
    let (base, retained) = (run.base(), pages.counts().retained);
    // The run is moved twice. The second move takes the pages that the first one added, too.
    let first = lengthen(&mut pages, Live::stamped(run, 1), 4, PAGE);
    let second = lengthen(&mut pages, Live::stamped(first, 2), 8, PAGE);
    assert!(second.pages() == 16 && second.mapping() != first.mapping());
    let counts = pages.counts();
    assert_eq!((counts.active, counts.dirty, counts.retained), (20, 0, retained - 12));
    // The old place is free, without memory, and zero.
    let again = pages.allocate(4, PAGE, Memory::Any).unwrap();
    assert!(again.base() == base && again.zeroed.get());
    // SAFETY: the test owns the run.
    assert_eq!(unsafe { again.base_ptr().read() }, 0);
    // A moved run is not merged with an ordinary one. Once purged, it is an ordinary run.
    [again, behind, second].into_iter().for_each(|run| pages.free(run));
    assert_eq!(pages.counts().dirty, 24);
    let oldest = pages.oldest(ExtentState::Dirty).unwrap();
    assert_eq!((oldest.pages(), oldest.younger.get().unwrap().pages()), (8, 16));
    purge(&mut pages, 0, 0);
    pages.check();
    let all = pages.oldest(ExtentState::Retained).unwrap();
    assert_eq!((all.pages(), all.mapping()), (FIRST_CHUNK, Mapping::Ordinary));
    assert!(all.zeroed.get() && all.younger.get().is_none());
}
