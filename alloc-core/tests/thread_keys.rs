//! What a thread may set and query about itself: exact volumes, the cells that follow them, its
//! arena and the limits of its caches.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::random::Random;
use common::{alone, assert_empty, hardened_class, hardened_large};
use lumalloc::control::{self, thread as own};
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use std::thread;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("volumes") => volumes(false),
        Some("live") => volumes(true),
        Some("slowly") => slowly(),
        Some("percpu") => by_cpu(),
        Some("moves") => moves(),
        Some("enters") => enters(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// The bytes that this thread allocated and freed since a test began, as the test counts them.
struct Model {
    base: (u64, u64),
    allocated: u64,
    freed: u64,
}

impl Model {
    fn begin() -> Model {
        Model { base: (own::allocated(), own::deallocated()), allocated: 0, freed: 0 }
    }

    #[track_caller]
    fn check(&self) {
        let now = (own::allocated() - self.base.0, own::deallocated() - self.base.1);
        assert_eq!(now, (self.allocated, self.freed));
    }

    #[track_caller]
    fn check_at(&self, cells: (*const u64, *const u64)) {
        // SAFETY: the cells belong to this thread.
        let now = (unsafe { cells.0.read() }, unsafe { cells.1.read() });
        let now = (now.0 - self.base.0, now.1 - self.base.1);
        assert_eq!(now, (self.allocated, self.freed));
    }
}

/// A live block, and the alignment that was asked for.
type Held = (*mut u8, usize);

/// The bytes that are counted for a block: the usable ones, in the hardened tier all of the class
/// before the canary, or all pages of a large block.
fn usable((block, align): Held) -> u64 {
    // SAFETY: a live block.
    let usable = unsafe { raw::usable_size(block) };
    let of_class = hardened_class(usable, align).map(|class| class - 8);
    of_class.or_else(|| hardened_large(block, usable, align)).unwrap_or(usable) as u64
}

fn cells() -> (*const u64, *const u64) {
    let place =
        |cell: Option<std::ptr::NonNull<u64>>| cell.expect("a thread").as_ptr().cast_const();
    (place(own::allocatedp()), place(own::deallocatedp()))
}

/// Does one random operation. A resize that keeps the usable size counts as neither.
fn step(random: &mut Random, model: &mut Model, live: &mut Vec<Held>) {
    let flags = [Flags::NONE, Flags::NONE.uncached(), Flags::NONE.align(64), Flags::NONE.zeroed()];
    let way = random.below(4);
    let (flags, align) = (flags[way], if way == 2 { 64 } else { 1 });
    let size = if random.below(50) == 0 { random.below(4 << 20) } else { random.size() };
    match random.below(5) {
        0 | 1 => {
            let block = (raw::allocate(size, flags), align);
            model.allocated += usable(block);
            live.push(block);
        }
        2 if !live.is_empty() => {
            let old = live.swap_remove(random.below(live.len()));
            let before = usable(old);
            // SAFETY: a live block, which the new one replaces.
            let new = (unsafe { raw::realloc(old.0, size.max(1)) }, 1);
            if new.0 != old.0 || usable(new) != before {
                model.allocated += usable(new);
                model.freed += before;
            }
            live.push(new);
        }
        _ if !live.is_empty() => {
            let block = live.swap_remove(random.below(live.len()));
            model.freed += usable(block);
            // SAFETY: a live block, freed once.
            unsafe { raw::deallocate(block.0, flags) };
        }
        _ => {}
    }
}

fn volumes(watched: bool) {
    let arenas = control::narenas().min(3);
    for seed in 0..4 {
        let run = move || {
            let mut random = Random::new(seed);
            // The record and the caches are recycled, with counts of earlier threads.
            let _ = raw::malloc(100);
            let cells = watched.then(cells);
            let mut model = Model::begin();
            let mut live = Vec::with_capacity(10_000);
            for n in 0..20_000 {
                step(&mut random, &mut model, &mut live);
                if n % 4000 == 1000 {
                    own::set_arena(random.below(arenas as usize) as u32).expect("an arena");
                }
                if n % 5000 == 2000 {
                    own::set_cached(n % 10_000 == 2000);
                    control::flush_thread_cache();
                }
                if let Some(cells) = cells {
                    model.check_at(cells);
                }
                if n % 100 == 0 || cells.is_some() && n % 10 == 0 {
                    model.check();
                }
            }
            for block in live {
                model.freed += usable(block);
                // SAFETY: a live block, freed once.
                unsafe { raw::free(block.0) };
            }
            model.check();
        };
        thread::spawn(run).join().expect("the thread");
    }
}

#[test]
fn volumes_are_exact() {
    for conf in ["", "tcache:false", "junk:true", "hardened:true", "tcache_max:256"] {
        play_well("volumes", conf);
    }
}

#[test]
fn cells_move_with_every_operation() {
    let profiled = "prof:true,lg_prof_sample:12";
    for conf in ["", "tcache:false", "zero:true", "tcache_gc_incr_bytes:1024", profiled] {
        play_well("live", conf);
    }
}

fn slowly() {
    let cells = cells();
    let mut model = Model::begin();
    let mut live = Vec::new();
    let mut random = Random::new(1);
    (0..5000).for_each(|_| step(&mut random, &mut model, &mut live));
    model.check();
    model.check_at(cells);
    // A cache hit does not move the cells. A read of the volumes does.
    let block = raw::malloc(64);
    // SAFETY: a live block, freed once.
    unsafe { raw::free(block) };
    model.check_at_or_later(cells, 64);
}

impl Model {
    fn check_at_or_later(&mut self, cells: (*const u64, *const u64), size: u64) {
        (self.allocated, self.freed) = (self.allocated + size, self.freed + size);
        let mut behind = false;
        for _ in 0..3 {
            let block = raw::malloc(64);
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
            (self.allocated, self.freed) = (self.allocated + size, self.freed + size);
            // SAFETY: the cell belongs to this thread.
            behind |= unsafe { cells.0.read() } - self.base.0 < self.allocated;
        }
        assert!(behind, "a hit moves nothing");
        self.check();
        self.check_at(cells);
    }
}

#[test]
fn cells_may_move_on_slow_paths_only() {
    play_well("slowly", "allocatedp_live:false");
}

#[test]
fn each_thread_has_its_own_cells_for_its_life() {
    let _alone = alone();
    let first = cells();
    let other = thread::spawn(|| cells().0 as usize).join().expect("the thread");
    assert_ne!(first.0 as usize, other);
    for _ in 0..100 {
        assert_eq!(cells(), first);
    }
}

#[test]
fn the_peak_is_of_what_was_held_at_once() {
    let _alone = alone();
    thread::spawn(|| {
        own::reset_peak();
        let blocks: Vec<_> = (0..64).map(|_| raw::malloc(100_000)).collect();
        let held: u64 = blocks.iter().map(|block| usable((*block, 1))).sum();
        for block in blocks {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
        }
        let peak = own::peak();
        assert!((held..held + (1 << 20)).contains(&peak), "{peak}");
        own::reset_peak();
        assert_eq!(own::peak(), 0);
        let small: Vec<_> = (0..100_000).map(|_| raw::malloc(64)).collect();
        assert!(own::peak() >= 6_400_000);
        for block in small {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
        }
        let peak = own::peak();
        assert!((6_400_000..7_500_000).contains(&peak), "{peak}");
    })
    .join()
    .expect("the thread");
}

fn moves() {
    let home = own::arena();
    let other = home + 1;
    own::set_arena(other).expect("an automatic arena");
    assert_eq!(own::arena(), other);
    assert_eq!(own::set_arena(4000), Err(own::MoveError::NoSuchArena));
    assert_eq!(own::arena(), other);
    assert!(own::count_in(other) >= 1);
    {
        let _scope = own::enter(home).expect("an arena");
        assert_eq!(own::arena(), home);
        {
            let _inner = own::enter(other).expect("an arena");
            assert_eq!(own::arena(), other);
            assert!(own::enter(5000).is_err());
        }
        assert_eq!(own::arena(), home);
    }
    assert_eq!(own::arena(), other);
    own::set_arena(home).expect("an automatic arena");
    assert_eq!(own::arena(), home);
}

/// The option makes arenas to move to, which a program on one CPU does not have by default.
#[test]
fn a_thread_moves_to_another_arena_and_back() {
    play_well("moves", "narenas:4");
}

fn enters() {
    let _ = own::arena();
    let before = totals().thread_caches;
    for _ in 0..100 {
        for arena in 0..3 {
            let _scope = own::enter(arena).expect("an arena");
            let block = raw::malloc(100);
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
        }
    }
    assert_eq!(totals().thread_caches - before, 3);
}

#[test]
fn a_thread_has_one_cache_for_each_arena_that_it_entered() {
    play_well("enters", "narenas:4");
}

fn by_cpu() {
    let home = own::arena();
    assert_eq!(own::set_arena(home), Ok(()));
    let other = u32::from(home == 0);
    assert_eq!(own::set_arena(other), Err(own::MoveError::ByCpu));
    assert_eq!(own::set_arena(4000), Err(own::MoveError::NoSuchArena));
}

#[test]
fn with_arenas_by_cpu_no_thread_chooses_one_of_those() {
    play_well("percpu", "percpu_arena:percpu");
}

#[test]
fn caches_are_turned_off_and_on() {
    let _alone = alone();
    thread::spawn(|| {
        let free = |block| {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) }
        };
        free(raw::malloc(100));
        assert!(own::is_cached() && totals().cached > 0);
        assert!(own::set_cached(false));
        assert!(!own::is_cached() && !control::flush_thread_cache());
        let before = totals();
        assert_eq!(before.cached, 0);
        (0..1000).for_each(|n| free(raw::malloc(n)));
        let after = totals();
        assert_eq!((after.cached, after.requests), (0, before.requests));
        assert!(own::set_cached(true));
        free(raw::malloc(100));
        assert!(totals().cached > 0);
    })
    .join()
    .expect("the thread");
    assert_empty();
}

#[test]
fn the_largest_cached_size_and_the_numbers_of_blocks_are_limits() {
    let _alone = alone();
    thread::spawn(|| {
        assert_eq!(own::cached_max(), 32 << 10);
        let blocks: Vec<_> = (0..1000).map(|_| raw::malloc(1000)).collect();
        for block in blocks {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
        }
        assert!(own::set_cached_max(800));
        assert_eq!(own::cached_max(), 896);
        assert_eq!((own::ncached_max(897), own::ncached_max(33 << 10)), (Some(0), None));
        assert_eq!(totals().cached, 0, "larger blocks went home");
        assert!(own::set_cached_max(1 << 20));
        assert_eq!(own::cached_max(), 32 << 10);
        assert!(own::set_ncached_max(b"1000-1000:3|64-64:100000"));
        assert_eq!((own::ncached_max(1024), own::ncached_max(64)), (Some(3), Some(2047)));
        let blocks: Vec<_> = (0..100).map(|_| raw::malloc(1000)).collect();
        for block in blocks {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
            assert!(totals().cached <= 3 * 1024);
        }
        for bad in ["", "1", "1-2", "1-2:3|", "1-2:x"] {
            assert_eq!(own::set_ncached_max(bad.as_bytes()), bad.is_empty(), "{bad}");
        }
        assert_eq!(own::ncached_max(1024), Some(3), "bad text changes nothing");
    })
    .join()
    .expect("the thread");
    assert_empty();
}
