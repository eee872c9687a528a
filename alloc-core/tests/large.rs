//! Large blocks and the system: the memory, faults and mappings that a growing block takes. Each
//! scenario runs in a child process, with its own peak and faults.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::touched::{assert_touched, touch};
use lumalloc::raw::{self, Flags};
use lumalloc::{PAGE, control, observe};

const MIB: usize = 1 << 20;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("doubling") => doubling(),
        Some("room_to_grow") => room_to_grow(),
        Some("many_grow") => many_grow(),
        Some("sparse_zeros") => sparse_zeros(),
        Some("scattered_zeros") => scattered_zeros(),
        Some("dense_zeros") => dense_zeros(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Faults of this process so far, and its largest resident size in KiB.
fn faults_and_peak() -> (i64, i64) {
    // SAFETY: an all-zero `rusage` is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(status, 0);
    (usage.ru_minflt, usage.ru_maxrss)
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count()
}

// --- growing -----------------------------------------------------------------------------------

/// A block that grows moves once to unused memory with room for it, not to each hole that fits.
#[test]
fn a_growing_block_stays_where_unused_memory_has_room() {
    play_well("room_to_grow", "dirty_decay_ms:-1");
}

fn room_to_grow() {
    let mut between = Vec::new();
    let mut unused: Vec<_> = [50 << 10, 100 << 10, 250 << 10, MIB, 16 * MIB]
        .into_iter()
        .map(|size| {
            let block = raw::malloc(size);
            touch(block, 0, size);
            between.push(raw::malloc(PAGE * 5));
            block
        })
        .collect();
    // SAFETY: live blocks, not used afterwards.
    unused.drain(..).for_each(|block| unsafe { raw::free(block) });

    let (mut size, mut moves) = (40 << 10, 0);
    let mut block = raw::malloc(size);
    touch(block, 0, size);
    while size < 10 * MIB {
        let longer = size + size / 2;
        // SAFETY: a live block, not used afterwards.
        let grown = unsafe { raw::realloc(block, longer) };
        assert!(!grown.is_null());
        touch(grown, size, longer);
        moves += u32::from(grown != block);
        (block, size) = (grown, longer);
    }
    assert_touched(block, size);
    assert!(moves <= 1, "{moves} moves");
    // SAFETY: live blocks, not used afterwards.
    between.into_iter().chain([block]).for_each(|block| unsafe { raw::free(block) });
}

/// A block that doubles to a gigabyte touches each page once, and never has two copies.
#[test]
fn a_doubling_block_is_moved_and_not_copied() {
    play_well("doubling", "retain:false");
    play_well("doubling", "thp:never");
}

fn doubling() {
    let mut size = MIB / 2;
    let mut block = raw::malloc(size);
    let neighbour = raw::malloc(size);
    touch(block, 0, size);
    let (before, _) = faults_and_peak();
    let first = size;
    while size < 1024 * MIB {
        let align = if size < 16 * MIB { 1 } else { MIB };
        // SAFETY: a live block, not used afterwards.
        block = unsafe { raw::realloc_aligned(block, 2 * size, align) };
        assert!(!block.is_null() && (block as usize).is_multiple_of(align));
        touch(block, size, 2 * size);
        size *= 2;
    }
    let (after, peak) = faults_and_peak();
    let pages = ((size - first) / PAGE) as i64;
    assert!(after - before <= pages + pages / 50, "{} faults, {pages} pages", after - before);
    assert!((peak as usize) < (1024 + 48) * 1024, "a peak of {peak} KiB");
    assert_touched(block, size);
    let totals = observe::totals();
    assert!(totals.dirty < 2 * MIB, "{totals:#?}");
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block) };
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(neighbour) };
    assert!(control::purge(control::ARENAS_ALL));
    assert!(observe::totals().dirty == 0, "{:#?}", observe::totals());
}

/// Blocks grow side by side and keep their contents. Their new ends are zero, and mappings do not
/// pile up.
#[test]
fn growing_blocks_keep_what_they_hold_and_few_mappings() {
    play_well("many_grow", "");
    play_well("many_grow", "thp:always,metadata_thp:auto");
    play_well("many_grow", "dirty_decay_ms:0");
    play_well("many_grow", "retain:false");
    play_well("many_grow", "retain:false,dirty_decay_ms:0");
    play_well("many_grow", "retain:false,muzzy_decay_ms:1000");
}

fn many_grow() {
    const BLOCKS: usize = 40;
    let flags = Flags::NONE.zeroed();
    let mut sizes = [600 << 10; BLOCKS];
    let mut blocks = sizes.map(|size| raw::allocate(size, flags));
    let before = mappings();
    for (block, size) in blocks.iter().zip(sizes) {
        touch(*block, 0, size);
    }
    for round in 0..4 {
        for (block, size) in blocks.iter_mut().zip(&mut sizes) {
            let longer = *size + *size / 2 + round * 1000;
            // SAFETY: a live block, not used afterwards.
            *block = unsafe { raw::reallocate(*block, longer, flags) };
            assert!(!block.is_null());
            for at in (*size..longer).step_by(512) {
                // SAFETY: inside the live block.
                assert_eq!(unsafe { block.wrapping_add(at).read() }, 0);
            }
            *size = longer / PAGE * PAGE;
            assert_touched(*block, *size * 2 / 3 / PAGE * PAGE - 4 * PAGE);
            touch(*block, 0, *size);
        }
    }
    let grown = mappings();
    assert!(grown <= before + 4 * BLOCKS, "{before} mappings, then {grown}");
    for block in blocks {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate(block, flags) };
    }
    assert!(control::purge(control::ARENAS_ALL));
    // Purged runs are ordinary mappings, which the system merges.
    let at_end = mappings();
    assert!(at_end <= before + 8, "{before} mappings, {grown}, at the end {at_end}");
}

// --- zeroed blocks -----------------------------------------------------------------------------

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ').nth(1).expect("two words").parse::<usize>().expect("a number") * PAGE
}

/// Allocates a zeroed block of 4 MiB, touches its first `touched` bytes, and frees it.
fn use_zeroed(touched: usize) {
    const SIZE: usize = 4 * MIB;
    let block = raw::malloc_zeroed(SIZE);
    touch(block, 0, touched);
    for at in (0..touched).step_by(PAGE) {
        // SAFETY: inside the live block.
        assert_eq!(unsafe { block.wrapping_add(at + PAGE / 2).read() }, 0);
    }
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block) };
}

/// Where callers touch little, zeroed blocks take little memory and few faults.
#[test]
fn zeroed_blocks_that_are_hardly_touched_take_hardly_any_memory() {
    play_well("sparse_zeros", "dirty_decay_ms:-1");
}

fn sparse_zeros() {
    use_zeroed(PAGE);
    let (before, _) = faults_and_peak();
    let at_first = resident();
    for _ in 0..100 {
        use_zeroed(PAGE);
    }
    let (after, _) = faults_and_peak();
    assert!(resident() < at_first + MIB, "{} from {at_first}", resident());
    // The page that each block touches stays in memory.
    assert!(after - before < 50, "{} faults", after - before);
}

/// Whichever pages the last user wrote, a zeroed block reads zero.
#[test]
fn zeroed_blocks_are_zero_wherever_the_last_one_was_touched() {
    play_well("scattered_zeros", "dirty_decay_ms:-1");
}

fn scattered_zeros() {
    const SIZE: usize = MIB;
    let last = SIZE / PAGE - 1;
    for touched in [vec![0], vec![0, 1, 2], vec![0, 7], vec![last], vec![], vec![0, last], vec![1]]
    {
        let block = raw::malloc_zeroed(SIZE);
        for at in 0..SIZE {
            // SAFETY: inside the live block.
            assert_eq!(unsafe { block.wrapping_add(at).read() }, 0, "byte {at} before {touched:?}");
        }
        // Pages that were read have memory too. The next block begins without memory.
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
        assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
        let block = raw::malloc_zeroed(SIZE);
        for page in &touched {
            // SAFETY: inside the live block.
            unsafe { block.wrapping_add(page * PAGE).write_bytes(0xff, PAGE) };
        }
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
    }
}

/// Where callers touch everything, zeroed blocks are not faulted in again and again.
#[test]
fn zeroed_blocks_that_are_touched_keep_their_memory() {
    play_well("dense_zeros", "dirty_decay_ms:-1");
}

fn dense_zeros() {
    const PAGES: i64 = (4 * MIB / PAGE) as i64;
    use_zeroed(4 * MIB);
    let (before, _) = faults_and_peak();
    for _ in 0..127 {
        use_zeroed(4 * MIB);
    }
    let (after, _) = faults_and_peak();
    assert!(after - before < PAGES / 2, "{} faults", after - before);
    // A block is given back now and then, to see whether callers still touch everything.
    for _ in 0..2 {
        use_zeroed(4 * MIB);
    }
    let (at_end, _) = faults_and_peak();
    assert!((PAGES / 2..PAGES * 2).contains(&(at_end - after)), "{} faults", at_end - after);
}
