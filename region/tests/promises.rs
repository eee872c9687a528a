//! What the pages vmalloc(3) promise of regions, methods and disciplines.
#![allow(unsafe_code)]

mod common;

use common::{Growth, Tiny, free, resize};
use lumalloc_region::{Best, Last, Method, Misuse, Pool, Region, Resize, Retry, System};
use std::ptr::NonNull;

fn open<M: Method>(tiny: Tiny) -> Region<M, Tiny> {
    Region::open(tiny).unwrap()
}

fn plain<M: Method>() -> Region<M, Tiny> {
    open(Tiny::new(64, 0, Growth::Refused))
}

fn at(block: NonNull<u8>) -> usize {
    block.as_ptr() as usize
}

/// Asks for no more memory than there is, and says what happens then.
fn limited(left: usize, retry: (Retry, usize)) -> Tiny {
    let mut tiny = Tiny::new(64, 0, Growth::Refused);
    (tiny.left, tiny.retry) = (left, retry);
    tiny
}

fn fill<M: Method>(region: &mut Region<M, Tiny>) -> usize {
    (0..).take_while(|_| region.alloc(100).is_some()).count()
}

#[test]
fn the_first_request_is_near_1_kib_and_honours_round() {
    for (round, size) in [(0, 4096), (64, 1088), (127, 2032), (4096, 4096)] {
        let mut region = open::<Best>(Tiny::new(round, 0, Growth::Refused));
        assert_eq!(region.discipline().segments[0].1, size);
    }
}

#[test]
fn a_region_without_memory_does_not_open() {
    assert!(Region::<Best, _>::open(limited(1000, (Retry::Fail, 0))).is_none());
}

#[test]
fn the_first_segment_is_released_last() {
    struct Order(Tiny, std::rc::Rc<std::cell::RefCell<Vec<usize>>>);
    // SAFETY: the discipline inside keeps the promises.
    unsafe impl lumalloc_region::Discipline for Order {
        fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
            self.0.obtain(size)
        }
        unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
            self.1.borrow_mut().push(segment.as_ptr() as usize);
            // SAFETY: the same promise.
            unsafe { self.0.release(segment, size) }
        }
    }
    let released = std::rc::Rc::default();
    let tiny = Tiny::new(0, 0, Growth::Refused);
    let mut region = Region::<Best, _>::open(Order(tiny, std::rc::Rc::clone(&released))).unwrap();
    for _ in 0..100 {
        region.alloc(1000).unwrap();
    }
    let obtained: Vec<usize> =
        region.discipline().0.segments.iter().map(|segment| segment.0).collect();
    drop(region);
    assert!(obtained.len() > 10);
    assert_eq!(released.borrow().last(), obtained.first());
    assert_eq!(released.borrow().len(), obtained.len());
}

#[test]
fn a_failing_no_memory_fails_the_request() {
    let mut region = open::<Best>(limited(1088, (Retry::Fail, 0)));
    assert!(fill(&mut region) > 0);
    assert_eq!(region.discipline().refusals, 1);
}

#[test]
fn asking_once_more_gets_what_came_meanwhile() {
    let mut region = open::<Best>(limited(1088, (Retry::AskOnce, 640)));
    let block = region.alloc(500).unwrap();
    assert_eq!(region.size(block), Some(504));
    assert_eq!(region.discipline().refusals, 1);
    let mut region = open::<Best>(limited(1088, (Retry::AskOnce, 0)));
    assert_eq!(region.alloc(500), None);
    assert_eq!(region.discipline().refusals, 1);
}

#[test]
fn repeating_goes_on_until_there_is_memory() {
    let mut region = open::<Pool>(limited(1088, (Retry::Repeat, 100)));
    assert!(region.alloc(900).is_some());
    assert!(region.alloc(900).is_some());
    assert!(region.discipline().refusals > 5);
}

#[test]
fn sizes_that_overflow_fail() {
    fn each<M: Method>() {
        let region = plain::<M>();
        for size in [usize::MAX, usize::MAX - 15, usize::MAX / 2 + 1, isize::MAX as usize] {
            assert_eq!(region.alloc(size), None);
            assert_eq!(region.align(size, 64), None);
        }
        assert_eq!(region.align(100, usize::MAX), None);
        assert_eq!(region.align(100, 0), None);
    }
    each::<Best>();
    each::<Last>();
    each::<Pool>();
}

#[test]
fn a_block_of_size_zero_is_a_block_but_not_in_a_pool() {
    let best = plain::<Best>();
    let block = best.alloc(0).unwrap();
    assert_eq!(best.size(block), Some(24));
    let last = plain::<Last>();
    let block = last.alloc(0).unwrap();
    assert_eq!(last.size(block), Some(16));
    assert_eq!(plain::<Pool>().alloc(0), None);
}

#[test]
fn blocks_of_100_bytes_lie_112_bytes_apart() {
    fn spacing<M: Method>() -> usize {
        let region = plain::<M>();
        let (first, second) = (region.alloc(100).unwrap(), region.alloc(100).unwrap());
        at(second).abs_diff(at(first))
    }
    assert_eq!((spacing::<Best>(), spacing::<Last>(), spacing::<Pool>()), (112, 112, 112));
}

#[test]
fn best_takes_the_smallest_block_that_fits() {
    let region = plain::<Best>();
    let mut holes = Vec::new();
    for size in [400, 200, 300, 2000, 1200] {
        holes.push((size, region.alloc(size).unwrap()));
        region.alloc(10).unwrap();
    }
    for &(_, block) in &holes {
        free(&region, block).unwrap();
    }
    for (size, hole) in [(190, 1), (290, 2), (1190, 4), (1900, 3), (350, 0)] {
        assert_eq!(region.alloc(size), Some(holes[hole].1), "{size}");
    }
}

#[test]
fn free_neighbours_are_joined() {
    let region = plain::<Best>();
    let room = region.alloc(5000).unwrap();
    free(&region, room).unwrap();
    let blocks: Vec<_> = (0..5).map(|_| region.alloc(600).unwrap()).collect();
    let before = region.stat().free;
    free(&region, blocks[1]).unwrap();
    free(&region, blocks[3]).unwrap();
    assert_eq!(region.stat().free, before + 2);
    free(&region, blocks[2]).unwrap();
    assert_eq!(region.stat().free, before + 1);
    assert_eq!(region.alloc(600 + 608 + 608), Some(blocks[1]));
}

#[test]
fn an_address_that_is_no_block_is_refused_and_changes_nothing() {
    let other = plain::<Best>();
    let foreign = other.alloc(100).unwrap();
    let local = 0u64;
    let region = plain::<Best>();
    let block = region.alloc(100).unwrap();
    let before = region.stat();
    let wrong = [foreign, NonNull::from(&local).cast(), NonNull::dangling()];
    for address in wrong {
        assert_eq!(free(&region, address), Err(Misuse::NotABlock));
        assert_eq!(resize(&region, address, 10, Resize::MOVE), Err(Misuse::NotABlock));
        assert_eq!(region.size(address), None);
        assert_eq!(region.offset(address), None);
    }
    assert_eq!(region.stat(), before);
    assert_eq!(free(&region, block), Ok(104));
    assert_eq!(region.segment(foreign), None);
}

#[test]
fn a_second_free_is_told_from_a_foreign_address() {
    let region = plain::<Best>();
    let block = region.alloc(100).unwrap();
    let _behind = region.alloc(100).unwrap();
    free(&region, block).unwrap();
    assert_eq!(free(&region, block), Err(Misuse::FreedBefore));
    assert_eq!(Misuse::FreedBefore.to_string(), "the block was freed before");
    assert_eq!(Misuse::NotABlock.to_string(), "not a block of the region");
    assert_eq!(Misuse::NotTheLast.to_string(), "only the last block can be freed");
    assert_eq!(Misuse::NoRoom.to_string(), "there is no room for the block");
}

#[test]
fn new_space_is_cleared_on_wish() {
    let how = Resize { zero: true, ..Resize::MOVE };
    let region = plain::<Best>();
    let block = region.alloc(24).unwrap();
    // SAFETY: the block is the test's, and so long.
    unsafe { block.write_bytes(1, 24) };
    let block = resize(&region, block, 1000, how).unwrap();
    for behind in 0..1000 {
        // SAFETY: the byte lies in the block.
        let byte = unsafe { block.add(behind) };
        // SAFETY: the byte was written by the region or by the test.
        assert_eq!(unsafe { byte.read() }, u8::from(behind < 24));
    }
}

#[test]
fn a_cleared_region_has_its_segments_and_no_blocks() {
    fn each<M: Method>() {
        let mut region = plain::<M>();
        let mut segments = None;
        for _ in 0..3 {
            let blocks: Vec<_> = (0..200).map(|_| region.alloc(100).unwrap()).collect();
            let now = region.stat().segments;
            assert_eq!(now, *segments.get_or_insert(now));
            region.clear();
            assert_eq!(region.stat().busy, 0);
            assert!(blocks.iter().all(|&block| free(&region, block).is_err()));
            assert_eq!(Some(region.stat().segments), segments);
        }
    }
    each::<Best>();
    each::<Last>();
    each::<Pool>();
}

#[test]
fn compacting_gives_back_what_is_free() {
    let region = plain::<Best>();
    let blocks: Vec<_> = (0..1000).map(|_| region.alloc(100).unwrap()).collect();
    let extent = region.stat().extent;
    for block in blocks {
        free(&region, block).unwrap();
    }
    assert_eq!(region.stat().extent, extent);
    region.compact();
    assert_eq!(region.stat().segments, 1);
    assert!(region.stat().extent <= 1088);
    assert!(region.alloc(5000).is_some());
}

#[test]
fn a_pool_gives_back_segments_without_blocks() {
    let region = plain::<Pool>();
    let blocks: Vec<_> = (0..1000).map(|_| region.alloc(100).unwrap()).collect();
    for &block in &blocks[1..] {
        free(&region, block).unwrap();
    }
    region.compact();
    assert_eq!(region.stat().busy, 1);
    assert_eq!(region.stat().segments, 1);
    free(&region, blocks[0]).unwrap();
    assert!(region.alloc(100).is_some());
}

#[test]
fn a_growing_line_stays_where_it_is() {
    const LINE: usize = 41 << 20;
    let region: Region<Best, System> = Region::open(System).unwrap();
    let mut line = region.alloc(64).unwrap();
    let first = line;
    for size in (64..LINE).step_by(4096) {
        line = resize(&region, line, size, Resize::MOVE).unwrap();
    }
    assert_eq!(line, first);
    let extent = region.stat().extent;
    assert!(extent < 60 << 20, "{extent}");
}

#[test]
fn a_block_that_was_overrun_is_noticed_and_the_region_goes_on() {
    let region = plain::<Best>();
    let blocks: Vec<_> = (0..20).map(|_| region.alloc(40).unwrap()).collect();
    // SAFETY: this writes behind the block on purpose, within the segment.
    unsafe { blocks[3].write_bytes(0x41, 48) };
    assert_eq!(free(&region, blocks[4]), Err(Misuse::NotABlock));
    assert!(free(&region, blocks[3]).is_ok());
    for block in blocks.into_iter().skip(5) {
        free(&region, block).unwrap();
    }
    for _ in 0..100 {
        assert!(region.alloc(40).is_some());
    }
}

#[test]
fn a_free_block_that_was_written_to_is_noticed_and_the_region_goes_on() {
    for size in [40, 2000] {
        let region = plain::<Best>();
        let blocks: Vec<_> = (0..40).map(|_| region.alloc(size).unwrap()).collect();
        for &block in blocks.iter().step_by(2) {
            free(&region, block).unwrap();
        }
        for &block in blocks.iter().step_by(4) {
            // SAFETY: this writes to a block after it was freed, on purpose.
            unsafe { block.write_bytes(0x42, size) };
        }
        let live: Vec<usize> = blocks.iter().skip(1).step_by(2).map(|&block| at(block)).collect();
        for _ in 0..100 {
            let block = region.alloc(size).unwrap();
            assert!(!live.contains(&at(block)));
        }
    }
}

#[test]
fn a_free_block_of_a_pool_that_was_written_to_is_noticed_and_the_region_goes_on() {
    let region = plain::<Pool>();
    let blocks: Vec<_> = (0..40).map(|_| region.alloc(100).unwrap()).collect();
    for &block in &blocks[10..30] {
        free(&region, block).unwrap();
    }
    // SAFETY: this writes to a block after it was freed, on purpose.
    unsafe { blocks[20].write_bytes(0x42, 100) };
    let mut live: Vec<usize> = blocks[..10].iter().chain(&blocks[30..]).map(|&b| at(b)).collect();
    for _ in 0..100 {
        let block = at(region.alloc(100).unwrap());
        assert!(!live.contains(&block));
        live.push(block);
    }
}

#[test]
fn a_discipline_that_calls_its_region_gets_an_error() {
    use std::cell::Cell;
    use std::rc::Rc;
    type Back = Rc<Cell<Option<&'static Region<Best, Caller>>>>;
    struct Caller(Tiny, Back, Rc<Cell<usize>>);
    // SAFETY: the discipline inside keeps the promises.
    unsafe impl lumalloc_region::Discipline for Caller {
        fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
            if let Some(region) = self.1.get() {
                assert_eq!(region.alloc(10), None);
                assert_eq!(free(region, NonNull::dangling()), Err(Misuse::Entered));
                assert_eq!(region.stat(), lumalloc_region::Stat::default());
                self.2.set(self.2.get() + 1);
            }
            self.0.obtain(size)
        }
        unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
            // SAFETY: the same promise.
            unsafe { self.0.release(segment, size) }
        }
    }
    let (back, calls) = (Back::default(), Rc::new(Cell::new(0)));
    let caller = Caller(Tiny::new(0, 0, Growth::Refused), Rc::clone(&back), Rc::clone(&calls));
    let place = Box::into_raw(Box::new(Region::<Best, Caller>::open(caller).unwrap()));
    // SAFETY: the region exists until the end of the test, and its discipline forgets it before.
    let region: &'static Region<Best, Caller> = unsafe { &*place };
    back.set(Some(region));
    assert!(region.alloc(10_000).is_some());
    assert_eq!(calls.get(), 1);
    assert!(region.alloc(10).is_some());
    assert_eq!(Misuse::Entered.to_string(), "the region's discipline called the region");
    back.set(None);
    // SAFETY: the box was taken apart above, and nobody has the reference any more.
    drop(unsafe { Box::from_raw(place) });
}

#[test]
fn blocks_that_move_are_counted_once() {
    let region = plain::<Last>();
    let mut blocks = [(); 2].map(|()| region.alloc(100).unwrap());
    let bytes = |region: &Region<Last, Tiny>| {
        let stat = region.stat();
        (stat.busy, stat.busy_bytes, stat.busy_largest)
    };
    assert_eq!(bytes(&region), (2, 224, 112));
    for size in 101..120 {
        blocks = blocks.map(|block| resize(&region, block, size, Resize::MOVE).unwrap());
        assert_eq!(region.stat().busy, 2);
    }
    // The last one has left nothing that is not known.
    let before = region.stat().busy_bytes;
    region.alloc(10).unwrap();
    let last = region.alloc(3000).unwrap();
    resize(&region, last, 9000, Resize::MOVE).unwrap();
    assert_eq!(bytes(&region), (4, before + 16 + 9008, 9008));
    // An address that was a block's twice is no reason for less blocks than there are.
    for _ in 0..5 {
        blocks[1] = resize(&region, blocks[0], 200, Resize::MOVE).unwrap();
    }
    assert!(region.stat().busy >= 1);
    free(&region, blocks[1]).unwrap();
    assert_eq!(region.stat().busy_largest, 0);
}
