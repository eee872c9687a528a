//! `stats.*` and related keys, through `mallctl`'s untyped buffers: compared with the core, for an
//! arena that nothing else uses.
#![allow(unsafe_code)]

mod door;

use door::{alone, call};
use lumalloc::control::arenas;
use lumalloc::raw::{self, Flags};
use lumalloc_namespace::Error;
use std::ptr;

fn read<T: Default>(name: &str) -> T {
    let mut value = T::default();
    call::<T, T>(name, Some(&mut value), None).expect(name);
    value
}

fn size(name: &str) -> usize {
    read(name)
}

fn count(name: &str) -> u64 {
    read(name)
}

fn epoch() -> u64 {
    let mut epoch = 0;
    call("epoch", Some(&mut epoch), Some(&1u64)).unwrap();
    epoch
}

fn allocate(arena: u32, size: usize) -> *mut u8 {
    let block = raw::allocate(size, Flags::NONE.arena(arena));
    assert!(!block.is_null());
    block
}

fn free(block: *mut u8) {
    // SAFETY: the block is live, and not used any more.
    unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
}

/// The index of a size among the small classes.
fn bin_of(size: usize) -> usize {
    (0..).find(|bin| self::size(&format!("arenas.bin.{bin}.size")) >= size).unwrap()
}

#[test]
fn an_arena_s_classes_say_what_happened_in_it() {
    let _alone = alone();
    let arena = arenas::create().unwrap();
    let blocks: Vec<_> = (0..100).map(|_| allocate(arena, 96)).collect();
    blocks[..30].iter().for_each(|block| free(*block));
    let large: Vec<_> = (0..3).map(|_| allocate(arena, 40 << 10)).collect();
    free(large[0]);
    let middle = allocate(arena, 20_000);
    epoch();
    let (of, bin) = (format!("stats.arenas.{arena}"), bin_of(96));
    let bins = format!("{of}.bins.{bin}");
    assert_eq!(count(&format!("{bins}.nmalloc")), 100);
    assert_eq!(count(&format!("{bins}.ndalloc")), 30);
    assert_eq!(count(&format!("{bins}.nrequests")), 100);
    assert_eq!(size(&format!("{bins}.curregs")), 70);
    assert_eq!(count(&format!("{bins}.nslabs")), 1);
    assert_eq!(size(&format!("{bins}.curslabs")), 1);
    assert_eq!(size(&format!("{bins}.nonfull_slabs")), 1);
    assert!(count(&format!("{bins}.mutex.num_ops")) >= 130);
    // 40 KiB is the first large class; 20 KiB come from slabs.
    let lextents = format!("{of}.lextents.0");
    assert_eq!(count(&format!("{lextents}.nmalloc")), 3);
    assert_eq!(count(&format!("{lextents}.ndalloc")), 1);
    assert_eq!(size(&format!("{lextents}.curlextents")), 2);
    assert_eq!(size(&format!("{of}.bins.{}.curregs", bin_of(20_000))), 1);
    assert_eq!(size(&format!("{of}.small.allocated")), 70 * 96 + (20 << 10));
    assert_eq!(count(&format!("{of}.small.nmalloc")), 101);
    assert_eq!(size(&format!("{of}.large.allocated")), (2 * 40) << 10);
    assert_eq!(count(&format!("{of}.large.nmalloc")), 3);
    // One slab of 64 KiB, one of two blocks of 20 KiB, and two large blocks.
    assert_eq!(size(&format!("{of}.pactive")), 16 + 10 + 20);
    assert!(count(&format!("{of}.uptime")) > 0);
    assert!(count(&format!("{of}.mutexes.extents_dirty.num_ops")) > 4);
    let merged = format!("stats.arenas.4096.bins.{bin}.curregs");
    assert!(size(&merged) >= 70);
    assert_eq!(size(&merged), size(&format!("stats.arenas.{}.bins.{bin}.curregs", narenas())));
    let counts = count("stats.arenas.4097.small.nmalloc");
    blocks[30..].iter().chain(&large[1..]).for_each(|block| free(*block));
    free(middle);
    // SAFETY: no blocks of the arena are in use.
    assert!(unsafe { arenas::destroy(arena) });
    epoch();
    assert_eq!(count("stats.arenas.4097.small.nmalloc"), counts + 101);
    let gone = call::<usize, u8>(&format!("{of}.pactive"), Some(&mut 0), None);
    assert_eq!(gone, Err(Error::NoEntry));
}

fn narenas() -> u32 {
    read("arenas.narenas")
}

#[test]
fn an_arena_reads_zeros_until_the_next_epoch_and_others_are_unknown() {
    let _alone = alone();
    epoch();
    let arena = arenas::create().unwrap();
    let block = allocate(arena, 1 << 20);
    let pages = format!("stats.arenas.{arena}.pactive");
    assert_eq!(size(&pages), 0);
    epoch();
    assert_eq!(size(&pages), 256);
    free(block);
    // SAFETY: no blocks of the arena are in use.
    assert!(unsafe { arenas::destroy(arena) });
    for name in ["stats.arenas.4095.pactive", "stats.arenas.0.bins.41.nmalloc"] {
        assert_eq!(call::<usize, u8>(name, Some(&mut 0), None), Err(Error::NoEntry), "{name}");
    }
}

#[test]
fn the_lines_of_the_memory_add_up() {
    let _alone = alone();
    let blocks: Vec<_> = (0..1000).map(|n| raw::malloc(n * 40 + 1)).collect();
    // SAFETY: this is the first byte of a live block.
    blocks.iter().for_each(|block| unsafe { block.write(1) });
    let huge = raw::malloc(64 << 20);
    epoch();
    let parts = ["allocated", "slab_free", "remote", "thread_caches", "dirty", "muzzy", "metadata"];
    let sum: usize = parts.iter().map(|part| size(&format!("stats.rss.{part}"))).sum();
    assert_eq!(sum, size("stats.resident"));
    let untouched: isize = read("stats.rss.untouched");
    assert!(untouched < -(60 << 20), "{untouched}: nobody wrote to the long block");
    let ours = size("stats.rss.ours");
    assert_eq!(ours as isize, sum as isize + untouched);
    assert_eq!(ours + size("stats.rss.not_ours"), size("stats.rss.process"));
    assert!(ours > 1000 * 3000, "the first bytes of 1000 blocks: {ours}");
    assert!(size("stats.thread_caches.bytes") <= size("stats.rss.thread_caches"));
    let again = size("stats.rss.process");
    // SAFETY: the block is live and has this length.
    unsafe { huge.write_bytes(1, 64 << 20) };
    assert_eq!(size("stats.rss.process"), again, "the snapshot's, until the next");
    epoch();
    assert!(size("stats.rss.ours") > ours + (60 << 20));
    // SAFETY: the blocks are live, and not used any more.
    blocks.into_iter().chain([huge]).for_each(|block| unsafe { raw::free(block) });
}

#[test]
fn locks_of_the_process_and_their_reset() {
    let _alone = alone();
    (0..20).for_each(|_| _ = size("stats.allocated"));
    epoch();
    assert!(count("stats.mutexes.ctl.num_ops") > 20);
    assert_eq!(call::<u8, u8>("stats.mutexes.reset", None, None), Ok(()));
    epoch();
    assert!(count("stats.mutexes.ctl.num_ops") < 10);
    assert_eq!(count("stats.mutexes.prof.num_ops"), 0);
    assert!(read::<u32>("stats.mutexes.ctl.max_num_thds") == 0);
}

#[test]
fn utilization_of_blocks() {
    let _alone = alone();
    let arena = arenas::create().unwrap();
    let blocks: Vec<_> = (0..10).map(|_| allocate(arena, 1024)).collect();
    let large = allocate(arena, 100_000);
    let mut query = [0usize; 6];
    let name = "experimental.utilization.query";
    assert_eq!(call(name, Some(&mut query), Some(&blocks[3])), Ok(()));
    let slab = blocks[0] as usize;
    assert_eq!(query, [slab, 54, 64, 64 << 10, 54, 64]);
    assert_eq!(call(name, Some(&mut query), Some(&large)), Ok(()));
    assert_eq!(query, [0, 0, 1, 112 << 10, 0, 0]);
    let nothing: *const [usize; 6] = &raw const query;
    assert_eq!(call(name, Some(&mut query), Some(&nothing)), Ok(()));
    assert_eq!(query, [0; 6]);
    assert_eq!(call(name, Some(&mut [0usize; 5]), Some(&large)), Err(Error::Invalid));
    assert_eq!(call(name, Some(&mut query), Some(&1u32)), Err(Error::Invalid));
    let name = "experimental.utilization.batch_query";
    let mut batch = [[9usize; 3]; 3];
    let input = [blocks[0].cast_const(), large, nothing.cast()];
    assert_eq!(call(name, Some(&mut batch), Some(&input)), Ok(()));
    assert_eq!(batch, [[54, 64, 64 << 10], [0, 1, 112 << 10], [0; 3]]);
    assert_eq!(call(name, Some(&mut [[0usize; 3]; 2]), Some(&input)), Err(Error::Invalid));
    assert_eq!(call::<_, [usize; 0]>(name, Some(&mut [0usize; 0]), Some(&[])), Err(Error::Invalid));
    blocks.iter().chain([&large]).for_each(|block| free(*block));
    // SAFETY: no blocks of the arena are in use.
    assert!(unsafe { arenas::destroy(arena) });
}

#[test]
fn active_pages_without_an_epoch() {
    let _alone = alone();
    let arena = arenas::create().unwrap();
    let mut place: *const usize = ptr::null();
    let name = format!("experimental.arenas.{arena}.pactivep");
    assert_eq!(call::<_, u8>(&name, Some(&mut place), None), Ok(()));
    // SAFETY: the word stays where it is while the arena exists.
    let pages = || unsafe { place.read_volatile() };
    let (before, active) = (pages(), size("approximate_stats.active"));
    let block = allocate(arena, 40 << 20);
    assert_eq!(pages() - before, 10 << 10);
    // The threads of other tests may end meanwhile and give pages back.
    assert!(size("approximate_stats.active") > active + (32 << 20));
    free(block);
    assert_eq!(pages(), before);
    // SAFETY: no blocks of the arena are in use.
    assert!(unsafe { arenas::destroy(arena) });
    assert_eq!(call::<_, u8>(&name, Some(&mut place), None), Err(Error::Fault));
}

#[test]
fn what_there_is_no_memory_for_is_counted() {
    let _alone = alone();
    let counted = || {
        call::<u64, u64>("epoch", None, Some(&1)).unwrap();
        read::<u64>("stats.out_of_memory")
    };
    let before = counted();
    for size in [usize::MAX / 2, 1 << 50] {
        assert!(raw::malloc(size).is_null());
    }
    assert!(raw::allocate(usize::MAX / 2, Flags::NONE.arena(0)).is_null());
    assert_eq!(counted() - before, 3);
}
