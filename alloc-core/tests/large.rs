//! Large blocks and the system: what a growing block costs in memory, faults and mappings. Each
//! scenario is a child of its own, so that its peak and its faults are its own.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::raw::{self, Flags};
use lumalloc::{PAGE, control, observe};

const MIB: usize = 1 << 20;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("doubling") => doubling(),
        Some("many_grow") => many_grow(),
        Some("sparse_zeros") => sparse_zeros(),
        Some("dense_zeros") => dense_zeros(),
        Some("addresses_back") => addresses_back(true),
        Some("addresses_kept") => addresses_back(false),
        Some("huge_default") => huge_default(),
        Some("huge_always") => huge_everywhere(listens()),
        Some("huge_never") => huge_everywhere(false),
        Some("huge_records") => huge_records(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Faults of this process so far, and its largest resident size in KiB.
fn faults_and_peak() -> (i64, i64) {
    // SAFETY: all-zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writable.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(status, 0);
    (usage.ru_minflt, usage.ru_maxrss)
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count()
}

/// Writes one byte of each page from `from` to `to`, counting up from the page's number.
fn touch(block: *mut u8, from: usize, to: usize) {
    for at in (from..to).step_by(PAGE) {
        // SAFETY: inside a live block.
        unsafe { block.wrapping_add(at).write((at / PAGE) as u8) };
    }
}

fn assert_touched(block: *mut u8, size: usize) {
    for at in (0..size).step_by(PAGE) {
        // SAFETY: inside a live block.
        assert_eq!(unsafe { block.wrapping_add(at).read() }, (at / PAGE) as u8);
    }
}

// --- growing -----------------------------------------------------------------------------------

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
        // SAFETY: a live block, used no more after.
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
    // SAFETY: a live block, not used after.
    unsafe { raw::free(block) };
    // SAFETY: a live block, not used after.
    unsafe { raw::free(neighbour) };
    assert!(control::purge(control::ARENAS_ALL));
    assert!(observe::totals().dirty == 0, "{:#?}", observe::totals());
}

/// Blocks that grow side by side: contents, zeroed ends, and mappings that do not pile up.
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
            // SAFETY: a live block, used no more after.
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
        // SAFETY: a live block, not used after.
        unsafe { raw::deallocate(block, flags) };
    }
    assert!(control::purge(control::ARENAS_ALL));
    // Purged runs are ordinary mappings, which the system makes one of.
    let at_end = mappings();
    assert!(at_end <= before + 8, "{before} mappings, {grown}, at the end {at_end}");
}

// --- zeroed blocks -----------------------------------------------------------------------------

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ').nth(1).expect("two words").parse::<usize>().expect("a number") * PAGE
}

/// A zeroed block of 4 MiB, of which pages are touched and freed again.
fn use_zeroed(touched: usize) {
    const SIZE: usize = 4 * MIB;
    let block = raw::malloc_zeroed(SIZE);
    touch(block, 0, touched);
    for at in (0..touched).step_by(PAGE) {
        // SAFETY: inside the live block.
        assert_eq!(unsafe { block.wrapping_add(at + PAGE / 2).read() }, 0);
    }
    // SAFETY: a live block, not used after.
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
    assert!(after - before < 100 * 3 + 300, "{} faults", after - before);
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
    // One is given back now and then, to see whether that is still so.
    for _ in 0..2 {
        use_zeroed(4 * MIB);
    }
    let (at_end, _) = faults_and_peak();
    assert!((PAGES / 2..PAGES * 2).contains(&(at_end - after)), "{} faults", at_end - after);
}

// --- addresses ---------------------------------------------------------------------------------

/// From now on the process may have so many bytes of addresses more than it has.
fn limit_addresses(more: usize) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: usize = text.split(' ').next().expect("a word").parse().expect("a number");
    let most = (pages * PAGE + more) as u64;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
fn without_retain_addresses_go_back() {
    for conf in ["retain:false", "retain:false,dirty_decay_ms:0", "retain:false,muzzy_decay_ms:9"] {
        play_well("addresses_back", conf);
    }
    play_well("addresses_kept", "");
}

/// Several blocks of a third of the addresses, one after the other: the system must have had each
/// Blocks of a third of the addresses and more, one after the other: the system must have had each
/// back before it can give the next, larger one.
fn addresses_back(go_back: bool) {
    let started = raw::malloc(100 << 10);
    limit_addresses(300 * MIB);
    for size in [100, 130, 160, 190, 220, 250] {
        let block = raw::malloc(size * MIB);
        assert_eq!(block.is_null(), !go_back && size > 160, "{size} MiB");
        if block.is_null() {
            continue;
        }
        touch(block, 0, MIB);
        // SAFETY: a live block, not used after.
        unsafe { raw::free(block) };
    }
    assert!(control::purge(control::ARENAS_ALL));
    let totals = observe::totals();
    assert_eq!(totals.retained < 4 * MIB, go_back, "{totals:#?}");
    assert_eq!(totals.dirty + totals.muzzy, 0, "{totals:#?}");
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let null = std::ptr::null_mut();
    // SAFETY: new memory anywhere.
    let others = unsafe { libc::mmap(null, 280 * MIB, protection, flags, -1, 0) };
    assert_eq!(others != libc::MAP_FAILED, go_back, "memory for somebody else");
    // SAFETY: a live block, not used after.
    unsafe { raw::free(started) };
}

// --- huge pages --------------------------------------------------------------------------------

/// Whether the system gives huge pages to who asks.
fn listens() -> bool {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    std::fs::read_to_string(path).is_ok_and(|text| !text.contains("[never]"))
}

/// The flags of each mapping of this process, with its first and last address.
fn flags() -> Vec<(usize, usize, String)> {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let (mut found, mut range) = (Vec::new(), (0, 0));
    for line in text.lines() {
        let first = line.split(' ').next().expect("a word");
        let number = |text| usize::from_str_radix(text, 16);
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) = (number(from), number(to))
        {
            range = (from, to);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            found.push((range.0, range.1, format!("{flags} ")));
        }
    }
    found
}

/// Whether huge pages were asked for under an address.
fn is_advised(block: *mut u8) -> bool {
    let address = block as usize;
    let mut flags = flags().into_iter();
    let mapping = flags.find(|(from, to, _)| (*from..*to).contains(&address)).expect("mapped");
    mapping.2.contains(" hg ")
}

#[test]
fn long_blocks_lie_in_huge_pages() {
    play_well("huge_default", "");
    play_well("huge_default", "retain:false");
}

fn huge_default() {
    let small = raw::malloc(100);
    let long = raw::malloc(16 * MIB);
    let zeros = raw::malloc_zeroed(17 * MIB);
    assert_eq!(is_advised(long), listens());
    assert!(!is_advised(small), "a small block");
    assert!(!is_advised(zeros), "zeros may never be touched");
    touch(long, 0, 16 * MIB);
    // SAFETY: a live block, used no more after.
    let longer = unsafe { raw::realloc(long, 40 * MIB) };
    assert_eq!(is_advised(longer), listens(), "moved");
    assert_touched(longer, 16 * MIB);
    touch(longer, 0, 40 * MIB);
    // SAFETY: a live block, used no more after.
    unsafe { raw::free(longer) };
    let totals = observe::totals();
    assert!(totals.dirty >= 40 * MIB, "{totals:#?}");
    let used_before = raw::malloc(30 * MIB);
    assert_eq!(is_advised(used_before), listens(), "as it was");
    // SAFETY: a live block, used no more after.
    unsafe { raw::free(used_before) };
    assert!(control::purge(control::ARENAS_ALL));
    assert!(!flags().iter().any(|(_, _, flags)| flags.contains(" hg ")), "purged");
    // A zeroed block in what was advised takes small pages, and is zero.
    let long = raw::malloc(16 * MIB);
    touch(long, 0, PAGE);
    // SAFETY: a live block, used no more after.
    unsafe { raw::free(long) };
    let zeros = raw::malloc_zeroed(16 * MIB);
    // SAFETY: a live block.
    assert_eq!(unsafe { zeros.wrapping_add(PAGE).read() }, 0);
}

#[test]
fn thp_says_where_huge_pages_are() {
    play_well("huge_always", "thp:always");
    play_well("huge_never", "thp:never");
    play_well("huge_records", "metadata_thp:always");
}

fn huge_everywhere(expected: bool) {
    let (small, long) = (raw::malloc(100), raw::malloc(16 * MIB));
    assert_eq!([is_advised(small), is_advised(long)], [expected; 2]);
    touch(long, 0, 16 * MIB);
    // SAFETY: a live block, used no more after.
    let longer = unsafe { raw::realloc(long, 40 * MIB) };
    assert_eq!(is_advised(longer), expected, "moved");
    // SAFETY: a live block, used no more after.
    unsafe { raw::free(longer) };
    assert!(control::purge(control::ARENAS_ALL));
    let again = raw::malloc(40 * MIB);
    assert_eq!(is_advised(again), expected, "purged and used again");
}

fn huge_records() {
    let small = raw::malloc(100);
    assert!(!is_advised(small));
    let advised = flags().iter().any(|(_, _, flags)| flags.contains(" hg "));
    assert_eq!(advised, listens(), "the records are");
}
