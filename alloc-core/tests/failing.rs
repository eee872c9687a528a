//! A system that refuses: every n-th call for pages fails. A request that cannot be served gets
//! null, no block is lost or changed, and the allocator goes on afterwards. Each n runs in its own
//! child, in which the very first calls fail too.
#![allow(unsafe_code)]

mod common;

use common::assert_empty;
use common::block::{Block, assert_zero, errno, set_errno};
use common::child::{play, play_well, scenario};
use common::random::Random;
use lumalloc::control::{limits, tcache};
use lumalloc::observe::{Totals, totals};
use lumalloc::raw::{self, Flags};
use lumalloc::testing::{fail_system_calls, forgotten_pages};
use lumalloc::{control, observe};
use std::ffi::c_void;
use std::sync::Barrier;

#[test]
fn every_nth_call_fails() {
    storms(1..=10, "");
}

#[test]
fn every_nth_call_fails_where_pages_are_purged_at_once() {
    storms(1..=10, "dirty_decay_ms:0,calloc_madvise_threshold:0");
}

#[test]
fn every_nth_call_fails_where_pages_are_purged_lazily() {
    storms(1..=10, "muzzy_decay_ms:10000");
}

#[test]
fn every_nth_call_fails_where_addresses_go_back() {
    storms(1..=10, "retain:false,thp:always,dss:primary");
}

#[test]
fn every_nth_call_fails_past_the_caches() {
    storms([1, 2, 3, 7], "tcache:false");
}

fn storms(numbers: impl IntoIterator<Item = u32>, conf: &str) {
    for n in numbers {
        play_well(&format!("storm {n}"), conf);
    }
}

#[test]
fn what_is_there_serves_when_the_system_has_nothing_more() {
    play_well("drought", "");
}

#[test]
fn a_refused_purge_keeps_the_pages() {
    play_well("refused_purge", "");
}

#[test]
fn threads_begin_and_end_without_memory() {
    for n in 1..=4 {
        play_well(&format!("threads {n}"), "");
    }
}

#[test]
fn a_cache_that_cannot_have_a_number_costs_nothing() {
    play_well("numbers", "");
}

/// A start without memory is repeated, but the options are read once.
#[test]
fn options_are_read_once_although_the_start_fails() {
    let outcome = play("late_start", &[("LUMALLOC_CONF", "narenas:3,nonsense:1")]);
    assert!(outcome.success, "{outcome:#?}");
    assert_eq!(outcome.stderr, "<lumalloc>: Invalid conf pair: nonsense:1 (LUMALLOC_CONF)\n");
}

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    let Some(name) = scenario() else { return };
    let (name, n) = name.split_once(' ').unwrap_or((&name, "0"));
    let n = n.parse().expect("a number");
    match name {
        "storm" => storm(n),
        "drought" => drought(),
        "refused_purge" => refused_purge(),
        "threads" => threads(n),
        "numbers" => numbers(),
        "late_start" => late_start(),
        _ => panic!("no scenario {name}"),
    }
}

/// Allocates a block of some kind, or gets null with ENOMEM.
fn make(random: &mut Random, id: u64) -> Option<Block> {
    let size = if random.below(20) == 0 { random.below(3 << 20) } else { random.size() };
    let align = 1 << random.below(18);
    set_errno(0);
    let (ptr, zero) = match random.below(5) {
        0 => (raw::malloc_zeroed(size), true),
        1 => (raw::malloc_aligned(size, align), false),
        2 => (raw::allocate(size, Flags::NONE.align(align).zeroed().arena(0)), true),
        _ => (raw::malloc(size), false),
    };
    if ptr.is_null() {
        assert_eq!(errno(), libc::ENOMEM);
        return None;
    }
    assert_eq!(errno(), 0, "success changed errno");
    if zero {
        // SAFETY: a live block of this size.
        unsafe { assert_zero(ptr, size) };
    }
    Block::filled(ptr, size, id)
}

/// Changes the size of a block. Without memory the block must be as it was.
fn change(random: &mut Random, block: Block) -> Block {
    let most = 1 << random.below(22);
    let size = random.below(most);
    // SAFETY: a live block, not used after success.
    let ptr = unsafe { raw::realloc(block.ptr(), size) };
    if ptr.is_null() {
        block.check(block.length);
        return block;
    }
    let moved = Block { address: ptr.expose_provenance(), ..block };
    moved.check(size);
    Block::filled(ptr, size, moved.id).expect("not null")
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}

/// Takes some hundred steps of every kind. Returns how many requests were refused, and how many got
/// a block of no bytes, which needs no memory.
fn cycle(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let (mut live, mut refused, mut empty) = (Vec::new(), 0, 0);
    for id in 0..400 {
        match make(&mut random, id) {
            Some(block) => {
                // SAFETY: a live block.
                empty += usize::from(unsafe { raw::usable_size(block.ptr()) } == 0);
                live.push(block);
            }
            None => refused += 1,
        }
        if live.len() > 60 {
            let block = live.swap_remove(random.below(60));
            let changed = change(&mut random, block);
            live.push(changed);
            free(live.swap_remove(random.below(60)));
        }
        if random.below(100) == 0 {
            control::purge(control::ARENAS_ALL);
        }
    }
    live.into_iter().for_each(free);
    control::flush_thread_cache();
    assert_eq!(totals().allocated, 0);
    assert_eq!(forgotten_pages(), 0, "{:#?}", totals());
    lumalloc::checks::all();
    (refused, empty)
}

/// The bytes of addresses that the allocator holds in any state.
fn held(totals: &Totals) -> usize {
    totals.active + totals.dirty + totals.muzzy + totals.retained
}

/// Everything works again, and every page returns to the lists that it came from.
fn goes_on() {
    fail_system_calls(0);
    for seed in 0..3 {
        assert_eq!(cycle(seed).0, 0, "memory is refused although the system has some");
    }
    assert_empty();
}

fn storm(n: u64) {
    fail_system_calls(n);
    let rounds = |from: u64| {
        let each = (from..from + 8).map(cycle);
        each.map(|(refused, empty)| refused + empty).sum::<usize>()
    };
    let without_memory = rounds(0);
    if n == 1 {
        assert_eq!(without_memory, 8 * 400, "memory out of nowhere");
    }
    // Chunks of addresses grow with the heap, and which calls fail depends on when pages decay. A
    // chunk may come late, but all chunks are never more than some 100 MiB. Memory that a failure
    // halfway loses is lost in every turn.
    rounds(0);
    let mut before = totals();
    for turn in 1.. {
        rounds(0);
        let after = totals();
        let records = after.metadata.saturating_sub(before.metadata);
        assert!(records < 512 << 10, "{records} bytes of records: {before:#?} {after:#?}");
        assert!(held(&after) < 160 << 20, "{before:#?} {after:#?}");
        let pages = held(&after).saturating_sub(held(&before));
        if pages < 16 << 20 {
            break;
        }
        assert!(turn < 5, "{pages} bytes of pages more each turn: {before:#?} {after:#?}");
        before = after;
    }
    goes_on();
}

/// Memory in hand serves requests while the system has none. Requests fail when it is used up.
fn drought() {
    cycle(1);
    fail_system_calls(1);
    for size in [16, 1000, 5000, 32 << 10, 100_000, 1 << 20] {
        let mut live = Vec::new();
        set_errno(0);
        while let Some(block) = Block::filled(raw::malloc(size), size, live.len() as u64) {
            live.push(block);
            assert!(live.len() << 4 < 1 << 30, "memory out of nowhere");
        }
        assert_eq!(errno(), libc::ENOMEM);
        assert!(live.len() * size >= 1 << 20, "{} blocks of {size}", live.len());
        // Growth fails too, and changes nothing.
        let last = live.pop().expect("a block");
        // SAFETY: a live block, which null leaves as it is.
        assert!(unsafe { raw::realloc(last.ptr(), 1 << 30) }.is_null());
        live.push(last);
        live.into_iter().for_each(free);
        control::flush_thread_cache();
        control::purge(control::ARENAS_ALL);
        assert_eq!(totals().allocated, 0);
    }
    goes_on();
}

fn refused_purge() {
    cycle(2);
    let before = totals();
    assert!(before.dirty > 0);
    fail_system_calls(1);
    assert!(control::purge(control::ARENAS_ALL));
    let after = totals();
    // A purge first takes empty slabs back. Not one page may be missing.
    assert_eq!(held(&after), held(&before));
    assert!(after.dirty >= before.dirty);
    assert_eq!(after.purged_pages, before.purged_pages);
    fail_system_calls(0);
    assert!(control::purge(control::ARENAS_ALL));
    assert_eq!((totals().dirty, held(&totals())), (0, held(&before)));
    goes_on();
}

fn late_start() {
    fail_system_calls(1);
    for _ in 0..2 {
        assert!(raw::malloc(10).is_null());
        // SAFETY: this thread alone uses the environment.
        unsafe { std::env::set_var("LUMALLOC_CONF", "narenas:5,nonsense:2") };
    }
    let options = lumalloc::options::current();
    assert_eq!(options.narenas, 3);
    fail_system_calls(0);
    free(Block::filled(raw::malloc(10), 10, 1).expect("a block"));
    assert!(std::ptr::eq(options, lumalloc::options::current()));
    assert_eq!((options.narenas, control::narenas()), (3, 3));
    assert_eq!(lumalloc::options::ignored(), c"Invalid conf pair: nonsense:1 (LUMALLOC_CONF)");
}

fn threads(n: u64) {
    fail_system_calls(n);
    for round in 0..20 {
        let threads: Vec<_> =
            (0..8).map(|k| std::thread::spawn(move || cycle_of_a_thread(round * 8 + k))).collect();
        for thread in threads {
            thread.join().expect("a thread").into_iter().for_each(free);
        }
        let now = observe::totals();
        assert!(now.thread_caches <= 1);
    }
    control::flush_thread_cache();
    assert_eq!(totals().allocated, 0);
    goes_on();
}

fn cycle_of_a_thread(seed: u64) -> Vec<Block> {
    let mut random = Random::new(seed);
    let mut live: Vec<Block> = (0..50).filter_map(|id| make(&mut random, id)).collect();
    live.split_off(live.len() / 2).into_iter().for_each(free);
    live
}

/// The number of caches in one table. The next cache needs another table.
const NUMBERS: usize = 4096;
/// The bytes of one table.
const TABLE: usize = NUMBERS * 8;
/// The bytes of records that the allocator requests from the system at a time.
const RECORDS: usize = 2 << 20;

unsafe extern "C" fn no(_: *mut c_void, _: usize, _: usize, _: usize, _: u32) -> bool {
    false
}

/// Takes the smallest record there is. Returns `false` if none is left.
fn take_record() -> bool {
    // SAFETY: the function ignores its argument.
    unsafe { limits::set_callback(Some(no), std::ptr::null_mut()) }
}

/// There is memory for a cache's record, but none for the table that its number needs.
fn numbers() {
    // One cache belongs to this thread.
    while tcache::create().is_some() {}
    // A slab for allocations past the caches.
    let past = Flags::NONE.arena(0).uncached();
    let kept = Block::filled(raw::allocate(10, past), 10, 1).expect("a block");
    let caches = usize::try_from(totals().thread_caches).expect("a count");
    let more = NUMBERS.checked_sub(caches).expect("one table is enough");
    let (stay, leave) = (Barrier::new(more + 1), Barrier::new(more + 1));
    std::thread::scope(|scope| {
        for _ in 0..more {
            scope.spawn(|| {
                once();
                stay.wait();
                leave.wait();
            });
        }
        stay.wait();
        leave_records(TABLE / 4 * 3);
        let found = one_too_many();
        leave.wait();
        let [before, first, without, with] = found;
        assert_eq!((without.metadata, without.thread_caches), (first.metadata, 4096));
        let own = first.metadata - before.metadata;
        assert!(own < 4096, "{own} bytes: more than a thread's record");
        let grown = with.metadata - before.metadata;
        assert!(grown > TABLE && with.thread_caches == 4097, "{grown} {}", with.thread_caches);
    });
    free(kept);
    goes_on();
}

fn once() {
    free(Block::filled(raw::malloc(10), 10, 1).expect("a block"));
}

/// Leaves `bytes` bytes of records until the allocator asks the system for more.
fn leave_records(bytes: usize) {
    fail_system_calls(1);
    while take_record() {}
    fail_system_calls(0);
    let before = totals().metadata;
    assert!(take_record());
    let record = totals().metadata - before;
    (1..(RECORDS - bytes) / record).for_each(|_| assert!(take_record()));
}

/// A new thread allocates while the system refuses: once, for the record that it keeps, then a few
/// times, and again when there is memory. Returns the totals before and after each step.
fn one_too_many() -> [Totals; 4] {
    let step = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for times in [1, 5, 1] {
                step.wait();
                (0..times).for_each(|_| once());
                step.wait();
            }
            step.wait();
        });
        let next = |refuse| {
            fail_system_calls(refuse);
            step.wait();
            step.wait();
            totals()
        };
        let found = [totals(), next(1), next(1), next(0)];
        step.wait();
        found
    })
}
