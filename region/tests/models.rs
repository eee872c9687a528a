//! Regions run against a map of their blocks, with disciplines of small segments.
#![allow(unsafe_code, reason = "blocks are raw memory")]

mod common;

use common::{Growth, Tiny, free, resize};
use lumalloc_region::{Best, Debug, Last, Method, Misuse, Pool, Profile, Region, Resize};
use proptest::prelude::*;
use std::ptr::NonNull;

/// A block that the model knows: its start, the bytes requested, and what they are filled with.
struct Block {
    start: NonNull<u8>,
    size: usize,
    fill: u8,
    /// Whether it moved away. What it held stays, but it is no block any more.
    is_left: bool,
}

struct Model<M: Method> {
    region: Region<M, Tiny>,
    blocks: Vec<Block>,
    fills: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Align(usize, usize),
    Free(usize),
    Resize(usize, usize, bool),
    FreeAgain(usize),
    FreeInside(usize, usize),
    Compact,
    Clear,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..600usize, 2 => 600..5000usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => size().prop_map(Step::Alloc),
        2 => (1..600usize, 1..300usize).prop_map(|(size, align)| Step::Align(size, align)),
        8 => any::<usize>().prop_map(Step::Free),
        4 => (any::<usize>(), 1..3000usize, any::<bool>())
            .prop_map(|(index, size, moves)| Step::Resize(index, size, moves)),
        2 => any::<usize>().prop_map(Step::FreeAgain),
        2 => (any::<usize>(), 1..600usize)
            .prop_map(|(index, behind)| Step::FreeInside(index, behind)),
        1 => Just(Step::Compact),
        1 => Just(Step::Clear),
    ]
}

fn tiny() -> impl Strategy<Value = (usize, usize, Growth, bool)> {
    let round = prop_oneof![Just(0), Just(64), Just(127), Just(4096), Just(24), Just(1)];
    let growth = prop_oneof![Just(Growth::Refused), Just(Growth::InPlace), Just(Growth::Another)];
    (round, 0..16usize, growth, any::<bool>())
}

impl<M: Method> Model<M> {
    fn new((round, misaligned, growth, takes_back): (usize, usize, Growth, bool)) -> Model<M> {
        let mut tiny = Tiny::new(round, misaligned, growth);
        tiny.takes_back = takes_back;
        Model { region: Region::open(tiny).unwrap(), blocks: Vec::new(), fills: 0 }
    }

    fn add(&mut self, start: NonNull<u8>, size: usize) {
        self.fills = self.fills.wrapping_add(1);
        // SAFETY: the block is the test's, and so long.
        unsafe { start.write_bytes(self.fills, size) };
        self.blocks.push(Block { start, size, fill: self.fills, is_left: false });
    }

    /// Looks at every byte of every block, and at the counts.
    fn check(&mut self) {
        for block in &self.blocks {
            assert_eq!(block.start.as_ptr() as usize % 16, 0);
            assert!(filled(block.start, block.size, block.fill));
        }
        let stat = self.region.stat();
        let blocks = || self.blocks.iter().filter(|block| !block.is_left);
        assert_eq!(stat.busy, blocks().count());
        assert!(stat.busy_bytes >= blocks().map(|block| block.size).sum());
        assert!(stat.busy_bytes + stat.free_bytes <= stat.extent);
        let segments = &self.region.discipline().segments;
        assert_eq!(stat.segments, segments.len());
        assert_eq!(stat.extent, segments.iter().map(|segment| segment.1).sum::<usize>());
    }

    fn choose(&self, index: usize) -> Option<usize> {
        (!self.blocks.is_empty()).then(|| index % self.blocks.len())
    }
}

fn filled(start: NonNull<u8>, size: usize, fill: u8) -> bool {
    (0..size).all(|at| {
        // SAFETY: the byte lies in the block.
        let byte = unsafe { start.add(at) };
        // SAFETY: the byte was written.
        unsafe { byte.read() == fill }
    })
}

fn inside(block: &Block, behind: usize) -> NonNull<u8> {
    // SAFETY: callers stay in the block.
    unsafe { block.start.add(behind) }
}

/// Blocks of any size come and go.
fn run_any<M: Method>(tiny: (usize, usize, Growth, bool), steps: &[Step]) {
    let mut model = Model::<M>::new(tiny);
    for step in steps {
        match *step {
            Step::Alloc(size) => {
                let start = model.region.alloc(size).unwrap();
                assert!(model.region.size(start).unwrap() >= size.max(1));
                model.add(start, size);
            }
            Step::Align(size, align) => {
                let start = model.region.align(size, align).unwrap();
                assert_eq!(start.as_ptr() as usize % align, 0);
                model.add(start, size);
            }
            Step::Free(index) => free_one(&mut model, index),
            Step::Resize(index, size, moves) => resize_one(&mut model, index, size, moves),
            Step::FreeAgain(index) => {
                let Some(index) = model.choose(index) else { continue };
                let block = model.blocks.swap_remove(index);
                assert!(free(&model.region, block.start).is_ok());
                assert!(free(&model.region, block.start).is_err());
            }
            Step::FreeInside(index, behind) => {
                let Some(index) = model.choose(index) else { continue };
                let block = &model.blocks[index];
                if behind < block.size {
                    let wrong = inside(block, behind);
                    assert_eq!(free(&model.region, wrong), Err(Misuse::NotABlock));
                    assert_eq!(model.region.offset(wrong), Some(behind));
                }
            }
            Step::Compact => model.region.compact(),
            Step::Clear => {
                model.region.clear();
                model.blocks.clear();
            }
        }
        model.check();
        assert_eq!(model.region.check(), Some(0));
    }
    let warnings = &model.region.discipline().warnings;
    assert!(warnings.iter().all(|line| line.starts_with("free error:")), "{warnings:?}");
}

fn free_one<M: Method>(model: &mut Model<M>, index: usize) {
    let Some(index) = model.choose(index) else { return };
    let block = model.blocks.swap_remove(index);
    assert!(free(&model.region, block.start).unwrap() >= block.size);
}

fn resize_one<M: Method>(model: &mut Model<M>, index: usize, size: usize, moves: bool) {
    let Some(index) = model.choose(index) else { return };
    let how = if moves { Resize::MOVE } else { Resize::STAY };
    let block = &model.blocks[index];
    match resize(&model.region, block.start, size, how) {
        Ok(start) => {
            let common = size.min(block.size);
            assert!(filled(start, common, block.fill));
            assert!(moves || start == block.start);
            model.blocks.swap_remove(index);
            model.add(start, size);
        }
        Err(misuse) => assert_eq!((misuse, moves), (Misuse::NoRoom, false)),
    }
}

/// Only the last block can be freed; the others stay as they are.
fn run_last(tiny: (usize, usize, Growth, bool), steps: &[Step]) {
    let mut model = Model::<Last>::new(tiny);
    let mut last_is_there = false;
    for step in steps {
        match *step {
            Step::Alloc(size) => {
                let start = model.region.alloc(size).unwrap();
                model.add(start, size);
                last_is_there = true;
            }
            Step::Align(size, align) => {
                let start = model.region.align(size, align).unwrap();
                assert_eq!(start.as_ptr() as usize % align, 0);
                model.add(start, size);
                last_is_there = true;
            }
            Step::Free(index) | Step::FreeAgain(index) => {
                let Some(index) = model.choose(index) else { continue };
                let (block, is_last) = (&model.blocks[index], index + 1 == model.blocks.len());
                let result = free(&model.region, block.start);
                if is_last && last_is_there {
                    assert!(result.unwrap() >= block.size);
                    model.blocks.pop();
                    last_is_there = false;
                } else {
                    assert_eq!(result, Err(Misuse::NotTheLast));
                }
            }
            Step::Resize(_, size, moves) if last_is_there => {
                let index = model.blocks.len() - 1;
                let (start, old_size, fill) = {
                    let block = &model.blocks[index];
                    (block.start, block.size, block.fill)
                };
                let how = if moves { Resize::MOVE } else { Resize::STAY };
                let Ok(new) = resize(&model.region, start, size, how) else {
                    assert!(!moves);
                    continue;
                };
                assert!(filled(new, size.min(old_size), fill));
                if new == start {
                    model.blocks.pop();
                    model.add(new, size);
                } else {
                    // What the old block held stays, because it is no longer the last one.
                    model.blocks[index].is_left = true;
                    model.add(new, size);
                }
            }
            Step::FreeInside(index, behind) => {
                let Some(index) = model.choose(index) else { continue };
                let block = &model.blocks[index];
                if behind < block.size {
                    assert!(free(&model.region, inside(block, behind)).is_err());
                }
            }
            Step::Compact => model.region.compact(),
            Step::Clear => {
                model.region.clear();
                model.blocks.clear();
                last_is_there = false;
            }
            Step::Resize(..) => {}
        }
        model.check();
    }
}

/// All blocks have the size of the first one.
fn run_pool(tiny: (usize, usize, Growth, bool), steps: &[Step]) {
    let mut model = Model::<Pool>::new(tiny);
    let mut element = None;
    for step in steps {
        match *step {
            Step::Alloc(size) => {
                let size = *element.get_or_insert(size.max(1));
                let start = model.region.alloc(size).unwrap();
                assert_eq!(model.region.alloc(size + 1), None);
                assert_eq!(model.region.size(start), Some(size));
                model.add(start, size);
            }
            Step::Align(size, align) => assert_eq!(model.region.align(size, align), None),
            Step::Free(index) => free_one(&mut model, index),
            Step::Resize(index, size, moves) => {
                let Some(index) = model.choose(index) else { continue };
                let block = &model.blocks[index];
                let how = if moves { Resize::MOVE } else { Resize::STAY };
                let expected =
                    if size == block.size { Ok(block.start) } else { Err(Misuse::NoRoom) };
                assert_eq!(resize(&model.region, block.start, size, how), expected);
            }
            Step::FreeAgain(index) => {
                let Some(index) = model.choose(index) else { continue };
                let block = model.blocks.swap_remove(index);
                assert_eq!(free(&model.region, block.start), Ok(block.size));
                assert_eq!(free(&model.region, block.start), Err(Misuse::FreedBefore));
            }
            Step::FreeInside(index, behind) => {
                let Some(index) = model.choose(index) else { continue };
                let block = &model.blocks[index];
                if behind < block.size {
                    let wrong = inside(block, behind);
                    assert_eq!(free(&model.region, wrong), Err(Misuse::NotABlock));
                    assert_eq!(model.region.offset(wrong), Some(behind));
                }
            }
            Step::Compact => model.region.compact(),
            Step::Clear => {
                model.region.clear();
                model.blocks.clear();
                element = None;
            }
        }
        model.check();
    }
}

proptest! {
    #[test]
    fn best_keeps_the_blocks_of_a_map(
        tiny in tiny(), steps in proptest::collection::vec(step(), 1..200)
    ) {
        run_any::<Best>(tiny, &steps);
    }

    #[test]
    fn debug_keeps_the_blocks_of_a_map(
        tiny in tiny(), steps in proptest::collection::vec(step(), 1..200)
    ) {
        run_any::<Debug>(tiny, &steps);
    }

    #[test]
    fn profile_keeps_the_blocks_of_a_map(
        tiny in tiny(), steps in proptest::collection::vec(step(), 1..200)
    ) {
        run_any::<Profile>(tiny, &steps);
    }

    #[test]
    fn last_keeps_the_blocks_of_a_list(
        tiny in tiny(), steps in proptest::collection::vec(step(), 1..200)
    ) {
        run_last(tiny, &steps);
    }

    #[test]
    fn pool_keeps_the_blocks_of_a_set(
        tiny in tiny(), steps in proptest::collection::vec(step(), 1..200)
    ) {
        run_pool(tiny, &steps);
    }
}
