//! What the method `Debug` finds, with the text of each line.
#![allow(unsafe_code, reason = "blocks are raw memory, and are overrun on purpose")]

mod common;

use common::{Growth, Tiny, free, resize};
use lumalloc_region::{Debug, Discipline, Misuse, Region, Resize, Warning};
use std::ptr::NonNull;

fn open() -> Region<Debug, Tiny> {
    Region::open(Tiny::new(64, 0, Growth::InPlace)).unwrap()
}

/// Writes a byte at a distance from the start of a block.
fn poke(block: NonNull<u8>, distance: isize, byte: u8) {
    // SAFETY: callers stay in the memory of the region.
    let place = unsafe { block.offset(distance) };
    // SAFETY: as above.
    unsafe { place.write(byte) };
}

/// Overwrites a byte at a distance from the start of a block with another one.
fn flip(block: NonNull<u8>, distance: isize) {
    // SAFETY: callers stay in the memory of the region.
    let place = unsafe { block.offset(distance) };
    // SAFETY: as above.
    poke(block, distance, !unsafe { place.read() });
}

/// Reads a byte of a block.
fn peek(block: NonNull<u8>, at: usize) -> u8 {
    // SAFETY: callers stay in the memory of the region.
    let place = unsafe { block.add(at) };
    // SAFETY: as above.
    unsafe { place.read() }
}

fn warnings(region: &mut Region<Debug, Tiny>) -> Vec<String> {
    // SAFETY: the discipline stays.
    std::mem::take(&mut unsafe { region.discipline_mut() }.warnings)
}

/// Returns the text between the parts of a line that depend on the address and the position.
fn says(line: &str, begins: &str, block: NonNull<u8>, ends: &str) -> bool {
    let begin = format!("{begins}:region=0:block={:x}:{ends}", block.as_ptr() as usize);
    line.starts_with(&begin) && line.ends_with('\n') && line.contains("debugging.rs,")
}

#[test]
fn each_overrun_is_found_and_reported_once() {
    for size in [1isize, 7, 8, 40, 1000] {
        for distance in [-8, -1, size, size + 7] {
            let mut region = open();
            let block = region.alloc(size.cast_unsigned()).unwrap();
            assert_eq!(region.check(), Some(0));
            poke(block, distance, 1);
            assert_eq!(region.check(), Some(1));
            assert_eq!(region.check(), Some(1));
            assert!(free(&region, block).is_ok());
            let found = warnings(&mut region);
            assert_eq!(found.len(), 1, "{found:?}");
            let expected = format!("bad byte at={distance}:allocated at=");
            assert!(says(&found[0], "corrupted data", block, &expected), "{found:?}");
        }
    }
}

#[test]
fn an_overrun_is_found_when_the_block_is_freed_or_resized() {
    let mut region = open();
    let (one, two) = (region.alloc(10).unwrap(), region.alloc(10).unwrap());
    poke(one, 10, 0);
    poke(two, 12, 0);
    assert!(free(&region, one).is_ok());
    assert!(resize(&region, two, 20, Resize::MOVE).is_ok());
    assert_eq!(warnings(&mut region).len(), 2);
}

#[test]
fn a_block_whose_size_was_overwritten_is_found_and_can_be_freed() {
    let mut region = open();
    let block = region.alloc(10).unwrap();
    poke(block, -45, 1);
    assert_eq!(region.check(), Some(1));
    assert!(free(&region, block).is_ok());
    let found = warnings(&mut region);
    assert_eq!(found.len(), 1);
    assert!(says(&found[0], "corrupted data", block, "bad byte at=-48:detected"), "{found:?}");
}

#[test]
fn damage_before_a_block_is_reported_once_although_it_is_resized() {
    let mut region = open();
    let block = region.alloc(10).unwrap();
    poke(block, -1, 1);
    for size in [11, 12, 13] {
        assert_eq!(resize(&region, block, size, Resize::STAY), Ok(block));
    }
    // It has new guards, as a block that was moved has.
    assert_eq!(region.check(), Some(0));
    assert_eq!(warnings(&mut region).len(), 1);
}

/// These words are the addresses of names, which warnings have.
#[test]
fn a_position_that_was_overwritten_is_not_used() {
    for distance in -40isize..-8 {
        let mut region = open();
        let block = region.alloc(10).unwrap();
        flip(block, distance);
        poke(block, 10, 1);
        assert_eq!(region.check(), Some(1));
        assert!(free(&region, block).is_ok());
        poke(block, 3, 1);
        assert_eq!(region.check(), Some(1));
        let found = warnings(&mut region);
        let address = block.as_ptr() as usize;
        let begin = format!("corrupted data:region=0:block={address:x}:bad byte at=");
        let [overrun, after] = &found[..] else { panic!("{found:?}") };
        assert!(overrun.starts_with(&format!("{begin}10:detected")), "{distance} {overrun}");
        assert!(
            after.starts_with(&format!("{begin}3:already freed:detected")),
            "{distance} {after}"
        );
    }
}

#[test]
fn a_write_after_the_free_is_found() {
    let mut region = open();
    let block = region.alloc(10).unwrap();
    free(&region, block).unwrap();
    assert_eq!(region.check(), Some(0));
    poke(block, 3, 1);
    assert_eq!(region.check(), Some(1));
    assert_eq!(region.check(), Some(1));
    let found = warnings(&mut region);
    assert_eq!(found.len(), 1);
    let expected = "bad byte at=3:already freed:allocated at=";
    assert!(says(&found[0], "corrupted data", block, expected), "{found:?}");
}

#[test]
fn freed_blocks_are_zero_and_come_back_late() {
    let mut region = open();
    let block = region.alloc(100).unwrap();
    // SAFETY: the block is the test's, and so long.
    unsafe { block.write_bytes(7, 100) };
    free(&region, block).unwrap();
    assert!((0..100).all(|at| peek(block, at) == 0));
    let mut others = (0..1000).map(|_| region.alloc(100).unwrap());
    assert!(others.all(|other| other != block));
    for _ in 0..2000 {
        free(&region, region.alloc(100).unwrap()).unwrap();
    }
    assert_eq!(region.check(), Some(0));
    assert!(warnings(&mut region).is_empty());
    assert!(region.stat().free > 1);
}

#[test]
fn what_is_no_block_and_what_was_freed_is_reported() {
    let mut region = open();
    let block = region.alloc(100).unwrap();
    free(&region, block).unwrap();
    assert_eq!(free(&region, block), Err(Misuse::FreedBefore));
    assert_eq!(resize(&region, block, 5, Resize::MOVE), Err(Misuse::FreedBefore));
    let found = warnings(&mut region);
    assert!(says(&found[0], "free error", block, "already freed:detected at="), "{found:?}");
    assert!(says(&found[1], "resize error", block, "already freed:detected at="), "{found:?}");
    let inside = region.alloc(100).unwrap().map_addr(|at| at.checked_add(16).unwrap());
    assert_eq!(free(&region, inside), Err(Misuse::NotABlock));
    assert_eq!(resize(&region, inside, 5, Resize::MOVE), Err(Misuse::NotABlock));
    let found = warnings(&mut region);
    assert!(says(&found[0], "free error", inside, "unallocated block:detected at="), "{found:?}");
    assert!(says(&found[1], "resize error", inside, "unallocated block:detected at="), "{found:?}");
}

#[test]
fn no_memory_is_reported() {
    let mut region = open();
    let block = region.alloc(10).unwrap();
    assert_eq!(region.alloc(usize::MAX - 100), None);
    assert_eq!(resize(&region, block, usize::MAX - 100, Resize::MOVE), Err(Misuse::NoRoom));
    let found = warnings(&mut region);
    assert!(
        found[0].starts_with("alloc error:region=0:can't get memory:detected at="),
        "{found:?}"
    );
    assert!(found[1].starts_with("resize error:region=0:can't get memory:"), "{found:?}");
}

#[test]
fn freed_blocks_are_given_up_when_memory_is_short() {
    let mut tiny = Tiny::new(64, 0, Growth::Refused);
    tiny.left = 20_000;
    let region: Region<Debug, Tiny> = Region::open(tiny).unwrap();
    for _ in 0..1000 {
        let block = region.alloc(3000).unwrap();
        free(&region, block).unwrap();
    }
}

#[test]
fn all_blocks_are_checked_at_each_call_if_wanted() {
    let mut region = open();
    let block = region.alloc(10).unwrap();
    poke(block, 10, 1);
    let other = region.alloc(10).unwrap();
    assert!(warnings(&mut region).is_empty());
    region.check_each_call(true);
    free(&region, other).unwrap();
    assert_eq!(warnings(&mut region).len(), 1);
}

#[test]
fn watched_blocks_are_reported() {
    let mut region = open();
    let block = region.alloc(40).unwrap();
    assert_eq!(lumalloc_region::watch(block.as_ptr() as usize), None);
    assert_eq!(resize(&region, block, 30, Resize::STAY), Ok(block));
    free(&region, block).unwrap();
    lumalloc_region::watch_nothing();
    let found = warnings(&mut region);
    let expected = ["size=40:being resized:", "size=30:just resized:", "size=30:being freed:"];
    assert_eq!(found.len(), 3);
    for (line, expected) in found.iter().zip(expected) {
        assert!(says(line, "alert", block, expected), "{line}");
    }
}

#[test]
fn new_bytes_are_clear_from_the_requested_size_on() {
    let region = open();
    let zero = Resize { zero: true, ..Resize::MOVE };
    let mut block = region.alloc(3).unwrap();
    poke(block, 2, 9);
    for size in [4, 5, 20, 33, 5000] {
        block = resize(&region, block, size, zero).unwrap();
        assert!((3..size).all(|at| peek(block, at) == 0) && peek(block, 2) == 9, "{size}");
    }
}

/// Writes its warnings to a list that outlives it.
struct Told(Tiny, std::rc::Rc<std::cell::RefCell<Vec<String>>>);

// SAFETY: segments come from the discipline inside.
unsafe impl Discipline for Told {
    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.0.obtain(size)
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the same promise.
        unsafe { self.0.release(segment, size) }
    }

    fn warn(&mut self, warning: &Warning, _region: usize) {
        let line = warning.line(0);
        self.1.borrow_mut().push(String::from_utf8_lossy(line.get()).into_owned());
    }
}

#[test]
fn what_is_in_use_at_the_end_is_reported_if_wanted() {
    for wanted in [false, true] {
        let list = std::rc::Rc::default();
        let told = Told(Tiny::new(64, 0, Growth::Refused), std::rc::Rc::clone(&list));
        let region: Region<Debug, Told> = Region::open(told).unwrap();
        region.report_leaks(wanted);
        let (kept, freed) = (region.alloc(10).unwrap(), region.alloc(20).unwrap());
        free(&region, freed).unwrap();
        let mut seen = Vec::new();
        assert!(region.for_each_block(|block, size| seen.push((block, size))));
        assert_eq!(seen, [(kept, 10)]);
        drop(region);
        let found = list.borrow();
        assert_eq!(found.len(), usize::from(wanted));
        assert!(found.iter().all(|line| says(line, "leak", kept, "size=10:allocated at=")));
    }
}

#[test]
fn clearing_forgets_blocks_and_freed_blocks() {
    let mut region = open();
    let (one, two) = (region.alloc(10).unwrap(), region.alloc(10).unwrap());
    free(&region, one).unwrap();
    region.clear();
    assert_eq!(free(&region, two), Err(Misuse::NotABlock));
    assert_eq!((region.stat().busy, region.check()), (0, Some(0)));
    assert!(region.alloc(10).is_some());
}
