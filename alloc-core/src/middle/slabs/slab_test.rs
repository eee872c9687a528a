//! Slabs against models: blocks, remote frees and the layout of records.

use super::*;
use crate::back::page_allocator::{Memory, PageAllocator};
use crate::back::system::provider::fixed::Fixed;
use crate::ground::size_class::MAX_WORDS;
use crate::middle::blocks::misuse_report::looks_free;
use crate::middle::blocks::slab_guard::is_cheap_to_absorb;
use crate::middle::blocks::slab_hold;
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab_record::{RECORD_CLASSES, lg_words};
use proptest::prelude::*;

pub(crate) fn slab(class: SizeClass) -> &'static Slab {
    let mut pages = PageAllocator::new(1, Fixed::leak(8 << 20));
    let row = class.row();
    let extent = pages.allocate(usize::from(row.slab_pages), 1 << 16, Memory::Any).unwrap();
    let slab = Slab::new_record(lg_words(class), 1).unwrap();
    slab.prepare(extent, class);
    slab.remote.birth(Guard::Bin);
    slab
}

#[test]
fn fixed_every_class_gives_all_blocks_in_order_and_takes_them_back() {
    for class in SizeClass::all() {
        let slab = slab(class);
        slab.check();
        let mut blocks = Vec::new();
        while slab.take_lowest(7, |block| blocks.push(block as usize)) > 0 {}
        assert_eq!(blocks.len(), class.slots());
        assert!(blocks.windows(2).all(|pair| pair[1] - pair[0] == class.size()));
        assert!(slab.is_full());
        for (slot, block) in blocks.iter().enumerate().rev() {
            assert_eq!(class.slot_at(block - slab.base()), Some(slot));
            slab.put(slot / 64, 1 << (slot % 64), 1).unwrap();
            assert_eq!(slab.put(slot / 64, 1 << (slot % 64), 1), Err(1 << (slot % 64)));
        }
        assert_eq!(slab.used(), 0);
        slab.check();
    }
}

#[test]
fn fixed_lines_are_taken_whole() {
    let class = SizeClass::of(16);
    let slab = slab(class);
    let mut blocks = Vec::new();
    assert_eq!(slab.take_lowest(2, |_| ()), 2);
    assert_eq!(slab.take_lines(4, |block| blocks.push(block as usize - slab.base())), 4);
    assert_eq!(blocks, [64, 80, 96, 112]);
    assert_eq!(slab.used(), 6);
    slab.check();
}

#[test]
fn fixed_remote_frees_come_home() {
    let class = SizeClass::of(64);
    let slab = slab(class);
    assert_eq!(slab.take_lowest(100, |_| ()), 100);
    // SAFETY: the blocks are allocated, and records live for ever.
    unsafe { slab.remote.free(0, 0b1010, |_| None) }.unwrap();
    assert_eq!(slab.absorb(), Ok(2));
    assert_eq!(slab.used(), 98);
    slab.check();
}

#[test]
fn the_words_of_a_record_follow_it_on_lines_of_their_own() {
    assert_eq!([0, 3, 4, 7].map(record_bytes), [256, 256, 384, 128 + 2048]);
    let longest = SizeClass::all().map(lg_words).max().unwrap();
    assert_eq!(longest + 1, RECORD_CLASSES);
    for lg in 0..RECORD_CLASSES {
        let slab = Slab::new_record(lg, 7).unwrap();
        assert_eq!((slab.lg_words(), slab.free_words().len(), slab.arena()), (lg, 1 << lg, 7));
        let word_at = |bytes: usize| {
            let word = core::ptr::from_ref(slab).wrapping_byte_add(bytes).cast::<u64>();
            // SAFETY: inside the record.
            unsafe { word.read_volatile() }
        };
        slab.remote.birth(Guard::Bin);
        for (n, word) in slab.free_words().iter().enumerate() {
            let mark = 1 << (n % 64);
            word.set(!mark);
            // SAFETY: no other thread has blocks of the record, which lives for ever.
            unsafe { slab.remote.free(n, mark, |_| None) }.unwrap();
        }
        let remote = LINES + (8 << lg).max(64);
        for n in 0..1 << lg {
            let mark = 1 << (n % 64);
            assert_eq!((word_at(LINES + 8 * n), word_at(remote + 8 * n)), (!mark, mark));
        }
    }
}

#[test]
fn a_slab_is_sparse_where_less_than_half_of_it_is_used() {
    for class in SizeClass::all() {
        let (slab, half) = (slab(class), class.slots() / 2);
        assert!(slab.extent().is_some_and(|run| run.base() == slab.base()));
        slab.take_lowest(half, |_| ());
        assert!(!slab.became_sparse(1));
        assert_eq!(slab.list(), ListName::None);
        assert!(!slab.stays_in_place(1), "in no list");
        slab.links.list.set(ListName::Partial);
        assert!(half == 0 || slab.stays_in_place(1));
        slab.put(0, 1, 1).unwrap();
        assert!(slab.became_sparse(1) && !slab.became_sparse(0));
        assert!(!slab.stays_in_place(1), "it moves back");
        assert_eq!(slab.stays_in_place(0), half > 1, "it is empty");
    }
}

#[test]
fn remote_words_are_read_at_every_refill_where_they_are_few() {
    let is_cheap = |size| is_cheap_to_absorb(SizeClass::of(size));
    assert_eq!([1024, 256, 224, 8].map(is_cheap), [true, true, false, false]);
}

#[test]
fn a_block_that_was_freed_here_and_elsewhere_looks_free() {
    let slab = slab(SizeClass::of(64));
    slab.take_lowest(2, |_| ());
    assert!(!looks_free(slab, slab.base()));
    // SAFETY: the block is in use, and the record lives for ever.
    unsafe { slab.remote.free(0, 1, |_| None) }.unwrap();
    assert!(looks_free(slab, slab.base()));
    slab.put(0, 1, 1).unwrap();
    assert!(looks_free(slab, slab.base()) && !looks_free(slab, slab.base() + 64));
}

#[test]
fn records_wait_for_their_next_use() {
    let mut pool = metadata::Pool::new();
    let records = [0, 0].map(|lg| Slab::new_record(lg, 0).unwrap());
    records.into_iter().for_each(|record| pool.put(record));
    let mut next = || pool.take().map(core::ptr::from_ref);
    let [first, second] = records.map(core::ptr::from_ref);
    assert_eq!([next(), next(), next()], [Some(second), Some(first), None]);
}

#[test]
fn a_run_of_blocks_with_a_bad_one_is_refused_with_its_address() {
    for class in SizeClass::all() {
        let last = class.size();
        for (first, second, is_interior) in [(0, last + 1, true), (last, last, false)] {
            let slab = slab(class);
            slab.take_lowest(2, |_| ());
            let bad = slab.base() + second;
            let blocks = [slab.base() + first, bad].map(core::ptr::with_exposed_provenance_mut);
            let found = match slab.put_run(class.grid(), &blocks) {
                Err(Misuse::Interior(at)) => (at, true),
                Err(Misuse::Twice(at)) => (at, false),
                _ => panic!("nothing was found"),
            };
            assert_eq!(found, (bad, is_interior));
        }
    }
}

/// The blocks of a slab as a set: `true` for a free one.
struct Model {
    slab: &'static Slab,
    free: Vec<bool>,
    remote: Vec<bool>,
}

impl Model {
    fn new(class: SizeClass) -> Model {
        let (free, remote) = (vec![true; class.slots()], vec![false; class.slots()]);
        Model { slab: slab(class), free, remote }
    }

    fn take(&mut self, want: usize) {
        let mut blocks = Vec::new();
        let taken = self.slab.take_lowest(want, |block| blocks.push(block as usize));
        let lowest = (0..self.free.len()).filter(|slot| self.free[*slot]).take(want);
        let lowest: Vec<usize> = lowest.collect();
        let block_of = |slot: &usize| self.slab.block_at(slot / 64, (slot % 64) as u32);
        assert_eq!(blocks, lowest.iter().map(block_of).collect::<Vec<_>>());
        assert_eq!(taken, lowest.len());
        lowest.iter().for_each(|slot| self.free[*slot] = false);
    }

    fn take_lines(&mut self, want: usize) {
        let group = self.slab.class().blocks_of_lines();
        let whole = (0..=self.free.len() - group).step_by(group);
        let whole = whole.filter(|first| self.free[*first..first + group].iter().all(|f| *f));
        let slots: Vec<usize> = whole.flat_map(|first| first..first + group).take(want).collect();
        let mut blocks = Vec::new();
        let taken = self.slab.take_lines(want, |block| blocks.push(block as usize));
        let size = self.slab.class().size();
        let expected: Vec<usize> = slots.iter().map(|n| self.slab.base() + n * size).collect();
        assert_eq!((taken, blocks), (slots.len(), expected));
        slots.iter().for_each(|slot| self.free[*slot] = false);
    }

    /// The slots in use from `first` on, in steps of `step`, at most `most`.
    fn in_use(&self, first: usize, step: usize, most: usize) -> Vec<usize> {
        let slots = (first..self.free.len()).step_by(step);
        slots.filter(|slot| !self.free[*slot] && !self.remote[*slot]).take(most).collect()
    }

    fn put_run(&mut self, slots: &[usize]) {
        let size = self.slab.class().size();
        let address = |slot: &usize| self.slab.base() + slot * size;
        let mut blocks: Vec<usize> = slots.iter().map(address).collect();
        // A block behind the slab is not put.
        blocks.push(self.slab.base() + self.slab.class().slots() * size);
        let blocks: Vec<*mut u8> =
            blocks.into_iter().map(core::ptr::with_exposed_provenance_mut).collect();
        let grid = self.slab.class().grid();
        assert!(self.slab.put_run(grid, &blocks).is_ok_and(|count| count == slots.len()));
        slots.iter().for_each(|slot| self.free[*slot] = true);
    }

    fn free_remotely(&mut self, slots: &[usize]) {
        for slot in slots {
            // SAFETY: the block is in use, and the record lives for ever.
            unsafe { self.slab.remote.free(slot / 64, 1 << (slot % 64), |_| None) }.unwrap();
            self.remote[*slot] = true;
        }
    }

    fn absorb(&mut self) {
        let remote = self.remote.iter().filter(|is_remote| **is_remote).count();
        assert_eq!(self.slab.absorb(), Ok(remote));
        for (free, remote) in self.free.iter_mut().zip(&mut self.remote) {
            *free |= core::mem::take(remote);
        }
    }

    fn check(&self, first: usize, end: usize) {
        let slab = self.slab;
        slab.check();
        let used = self.free.iter().filter(|free| !**free).count();
        let remote = self.remote.iter().filter(|is_remote| **is_remote).count();
        assert_eq!((slab.used(), slab.in_use()), (used, used - remote));
        let mut in_use = [!0; MAX_WORDS];
        slab_hold::copy_in_use(slab, &mut in_use[..slab.class().words()]);
        let is_in_use = |slot: usize| in_use[slot / 64] >> (slot % 64) & 1 == 1;
        assert!((0..self.free.len()).all(|n| is_in_use(n) != (self.free[n] || self.remote[n])));
        let all = in_use[..slab.class().words()].iter().map(|word| word.count_ones() as usize);
        assert_eq!(all.sum::<usize>(), slab.in_use());
        assert_eq!(slab.is_full(), used == self.free.len());
        let seems = |slot: usize| looks_free(slab, slab.block_at(slot / 64, slot as u32 % 64));
        for slot in [first, end - 1] {
            assert_eq!(seems(slot), self.free[slot] || self.remote[slot], "{slot}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, cases: 64, ..Default::default()
    })]

    #[test]
    fn a_slab_gives_its_lowest_blocks_and_takes_any_back(
        class in 0usize..SizeClass::all().count(),
        steps in prop::collection::vec((0u8..6, any::<(u16, u16)>(), 1usize..5), 1..40),
    ) {
        let class = SizeClass::all().nth(class).unwrap();
        let mut model = Model::new(class);
        for (kind, (a, b), step) in steps {
            let (a, b) = (usize::from(a) % class.slots(), usize::from(b) % class.slots());
            let slots = model.in_use(a, step, b);
            match kind {
                0 | 1 => model.take(b + 1),
                2 => model.put_run(&slots),
                3 => model.free_remotely(&slots),
                4 => model.take_lines(b + 1),
                _ => model.absorb(),
            }
            model.check(a.min(b), a.max(b) + 1);
        }
    }
}
