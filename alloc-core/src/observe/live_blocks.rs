//! The live blocks: those that the program holds.
//!
//! A batch of slabs and large blocks is copied, a slab at a time under the lock of its guard: a bit
//! for each block that is out of the slab. Then the blocks that wait in caches are struck out, a
//! cache at a time under its lock. No decay pass runs meanwhile, because it moves free blocks from
//! caches to slabs. Other threads may do so too, when they end or free, so the slabs are copied
//! once more, and what is in its slab then is struck out. What is left is told to the program,
//! under no lock.

use super::heap_cursor::{Found, HeapCursor};
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::front::cache::registry;
use crate::front::modes::block_size::usable;
use crate::front::modes::guarded;
use crate::ground::size_class::{MAX_WORDS, SizeClass};
use crate::middle::blocks::empty_blocks;
use crate::middle::blocks::slab_hold::HeldSlab;
use crate::middle::passes::decay_pass;
use crate::middle::slabs::slab::Slab;

/// Slabs and large blocks of a batch.
const PLACES: usize = 64;
/// Words for the bits of a batch. As many as four slabs of the smallest class need.
const WORDS: usize = 4 * MAX_WORDS;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Where it is.
    pub address: usize,
    /// The bytes that it may hold, as [`usable_size`](crate::raw::usable_size) returns them. Of a
    /// block of the hardened tier, what it may hold at most, whatever was requested, as
    /// [`block_size`](crate::raw::block_size).
    pub usable: usize,
    /// The index of its arena. `None` for a guarded sample (`opt.guarded_sample`).
    pub arena: Option<u32>,
}

/// The live blocks: see [`blocks`].
pub struct Blocks {
    /// Blocks of other arenas are left out.
    wanted: Option<u32>,
    cursor: HeapCursor,
    batch: Batch,
    /// The next slot of guarded samples.
    guarded: usize,
}

/// Returns the live blocks of the arena with this index, or of all arenas for `None`, by address,
/// and for `None` then the guarded samples. There are none if there is no such arena. Blocks of no
/// bytes are not among them: see [`blocks_without_bytes`].
///
/// If no other thread allocates or frees meanwhile, the blocks are exactly those that were
/// allocated and not freed. Otherwise a block that is allocated, freed or resized meanwhile may be
/// missing, a block that was just freed, or moves from one thread's cache to another's, may be
/// returned, and by the time it is returned there may be another block at its place. So the
/// contents of a block may be read only if it is known that no other thread frees it. Blocks that
/// are not allocated or freed meanwhile are returned once.
///
/// The caller may allocate and free between two blocks: no lock is held then. What it allocates and
/// frees itself is seen as what another thread does. In the child of a fork, blocks that waited in
/// caches of the parent's other threads are returned too: they are lost.
///
/// ```
/// use lumalloc::{observe, raw};
///
/// let block = raw::malloc(100);
/// let is_it = |found: &observe::Block| found.address == block as usize;
/// assert_eq!(observe::blocks(None).find(is_it).unwrap().usable, 112);
/// // SAFETY: a live block, used no more.
/// unsafe { raw::free(block) };
/// assert!(!observe::blocks(None).any(|found| is_it(&found)));
/// ```
#[must_use]
pub fn blocks(arena: Option<u32>) -> Blocks {
    Blocks { wanted: arena, cursor: HeapCursor::new(0), batch: Batch::new(PLACES), guarded: 0 }
}

/// Calls `see` with each of [`blocks`]. `see` may allocate and free.
///
/// ```
/// let mut bytes = 0;
/// lumalloc::observe::for_each_block(None, |block| bytes += block.usable);
/// assert!(bytes <= lumalloc::observe::totals().mapped);
/// ```
pub fn for_each_block(arena: Option<u32>, see: impl FnMut(Block)) {
    blocks(arena).for_each(see);
}

/// Returns the addresses of the blocks that were allocated for 0 bytes and not freed, which no
/// thread may touch. They belong to no arena. Those for which such addresses ran out are among
/// [`blocks`].
///
/// ```
/// use lumalloc::{observe, raw};
///
/// let block = raw::malloc(0);
/// assert!(observe::blocks_without_bytes().any(|address| address == block as usize));
/// // SAFETY: a live block, used no more.
/// unsafe { raw::free(block) };
/// ```
pub fn blocks_without_bytes() -> impl Iterator<Item = usize> {
    empty_blocks::in_use()
}

/// Returns the live block in which an address lies, or `None` if it lies in none. Looks into the
/// caches of all threads.
///
/// ```
/// use lumalloc::{observe, raw};
///
/// let block = raw::malloc(100);
/// let inside = block as usize + 99;
/// assert_eq!(observe::block_around(inside).unwrap().address, block as usize);
/// // SAFETY: a live block, used no more.
/// unsafe { raw::free(block) };
/// assert_eq!(observe::block_around(inside), None);
/// ```
#[must_use]
pub fn block_around(address: usize) -> Option<Block> {
    let holds = |block: &Block| address.wrapping_sub(block.address) < block.usable.max(1);
    let run = match Slab::of(page_map::lookup(address)) {
        Some(slab) => Some(slab.base()),
        None => page_map::extent_around(address).map(Extent::base),
    };
    let Some(run) = run else {
        let mut guarded = blocks(None);
        return core::iter::from_fn(|| guarded.next_guarded()).find(holds);
    };
    let mut batch = Batch::new(1);
    let is_there = batch.fill(&mut HeapCursor::new(run), None);
    batch.around(address).filter(|block| is_there && holds(block))
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        loop {
            if let Some(block) = self.batch.next() {
                return Some(block);
            }
            if !self.batch.fill(&mut self.cursor, self.wanted) {
                return self.next_guarded();
            }
        }
    }
}

impl Blocks {
    fn next_guarded(&mut self) -> Option<Block> {
        while self.wanted.is_none() && self.guarded < guarded::SLOTS {
            let sample = guarded::live_in(self.guarded);
            self.guarded += 1;
            if let Some((address, usable)) = sample {
                return Some(Block { address, usable, arena: None });
            }
        }
        None
    }
}

/// A slab, or a large block.
#[derive(Clone, Copy)]
struct Place {
    base: usize,
    bytes: usize,
    arena: u32,
    /// `None`: a large block.
    class: Option<SizeClass>,
    /// The first of its words in the batch.
    first: usize,
}

/// Some slabs and large blocks that follow each other, with a bit for each live block.
struct Batch {
    places: [Place; PLACES],
    /// How many places are taken in at most.
    most: usize,
    count: usize,
    words: [u64; WORDS],
    /// Words that are in use.
    used: usize,
    /// The place that blocks are taken from, and the number of its word.
    at: usize,
    word: usize,
}

impl Batch {
    const fn new(most: usize) -> Batch {
        const NOWHERE: Place = Place { base: 0, bytes: 0, arena: 0, class: None, first: 0 };
        let (places, words) = ([NOWHERE; PLACES], [0; WORDS]);
        Batch { places, most, count: 0, words, used: 0, at: 0, word: 0 }
    }

    /// Takes the next slabs and large blocks of a walk in. Returns whether there were any.
    fn fill(&mut self, cursor: &mut HeapCursor, wanted: Option<u32>) -> bool {
        decay_pass::between_passes(|| self.fill_now(cursor, wanted))
    }

    fn fill_now(&mut self, cursor: &mut HeapCursor, wanted: Option<u32>) -> bool {
        (self.count, self.used, self.at, self.word) = (0, 0, 0, 0);
        while self.count < self.most && self.used + MAX_WORDS <= WORDS {
            let taken = cursor.next(|found| match found {
                Found::Slab(held) => self.take_slab(held, wanted),
                Found::Run(run) => self.take_large(run, wanted),
            });
            if taken.is_none() {
                break;
            }
        }
        self.strike_cached();
        self.count > 0
    }

    fn add(&mut self, base: usize, bytes: usize, arena: u32, class: Option<SizeClass>) {
        if let Some(place) = self.places.get_mut(self.count) {
            *place = Place { base, bytes, arena, class, first: self.used };
            self.count += 1;
            self.used += class.map_or(1, SizeClass::words);
        }
    }

    fn take_slab(&mut self, held: &HeldSlab, wanted: Option<u32>) {
        let (slab, class) = (held.slab, held.slab.class());
        if wanted.is_some_and(|wanted| wanted != slab.arena()) {
            return;
        }
        let first = self.used;
        self.add(slab.base(), held.bytes(), slab.arena(), Some(class));
        copy(held, self.words.get_mut(first..self.used).unwrap_or_default());
    }

    fn take_large(&mut self, run: &'static Extent, wanted: Option<u32>) {
        let is_wanted = wanted.is_none_or(|wanted| wanted == run.arena());
        if is_wanted && run.state.get() == ExtentState::Active {
            let first = self.used;
            self.add(run.base(), run.bytes(), run.arena(), None);
            if let Some(word) = self.words.get_mut(first) {
                *word = 1;
            }
        }
    }

    /// Strikes the blocks out that wait in caches, and those that such a cache has given back to
    /// their slabs since they were copied.
    fn strike_cached(&mut self) {
        let places = self.places.get(..self.count).unwrap_or_default();
        let classes = places.iter().filter_map(|place| place.class);
        let classes = classes.fold(0u64, |all, class| all | 1 << class.index());
        if classes != 0 {
            for cache in registry::all() {
                cache.for_each_free(classes, |block| self.strike(block as usize));
            }
            self.strike_returned();
        }
    }

    /// Strikes the blocks out that are in their slabs by now, and those of slabs that have ended.
    fn strike_returned(&mut self) {
        for place in self.places.iter().take(self.count) {
            let Some(class) = place.class else { continue };
            let mut now = [0; MAX_WORDS];
            let see = |found: Found<'_>| match found {
                Found::Slab(held) if held.slab.base() == place.base => copy(held, &mut now),
                _ => {}
            };
            HeapCursor::new(place.base).next(see);
            let words = self.words.iter_mut().skip(place.first).take(class.words());
            words.zip(now).for_each(|(word, now)| *word &= now);
        }
    }

    fn strike(&mut self, address: usize) {
        let places = self.places.get(..self.count).unwrap_or_default();
        let behind = places.partition_point(|place| place.base <= address);
        let place = behind.checked_sub(1).and_then(|n| places.get(n)).copied();
        if let Some(Place { base, bytes, class: Some(class), first, .. }) = place
            && address - base < bytes
        {
            strike_slot(self.words.get_mut(first..).unwrap_or_default(), class, address - base);
        }
    }

    /// Returns the live block of the batch's first place that lies around an address, if any.
    fn around(&self, address: usize) -> Option<Block> {
        let place = self.places.get(..self.count)?.first()?;
        let offset = address.checked_sub(place.base).filter(|offset| *offset < place.bytes)?;
        let slot = place.class.map_or(0, |class| class.slot_around(offset));
        let word = self.words.get(place.first + slot / 64)?;
        (word >> (slot % 64) & 1 != 0).then(|| place.block(slot))
    }

    /// Takes the first block that is left out of the batch.
    fn next(&mut self) -> Option<Block> {
        while let Some(place) = self.places.get(..self.count)?.get(self.at).copied() {
            let words = place.class.map_or(1, SizeClass::words);
            while self.word < words {
                let word = self.words.get_mut(place.first + self.word)?;
                if *word != 0 {
                    let slot = self.word * 64 + word.trailing_zeros() as usize;
                    *word &= *word - 1;
                    return Some(place.block(slot));
                }
                self.word += 1;
            }
            (self.at, self.word) = (self.at + 1, 0);
        }
        None
    }
}

/// Writes a bit for each block that is out of its slab and does not wait in the slab's bin.
fn copy(held: &HeldSlab, words: &mut [u64]) {
    held.copy_in_use(words);
    held.waiting().for_each(|offset| strike_slot(words, held.slab.class(), offset));
}

/// Strikes the block out that begins `offset` bytes into the slab of these words.
fn strike_slot(words: &mut [u64], class: SizeClass, offset: usize) {
    if let Some(slot) = class.slot_at(offset)
        && let Some(word) = words.get_mut(slot / 64)
    {
        *word &= !(1 << (slot % 64));
    }
}

impl Place {
    fn block(&self, slot: usize) -> Block {
        let arena = Some(self.arena);
        match self.class {
            Some(class) => {
                let address = self.base + slot * class.size();
                Block { address, usable: usable(class), arena }
            }
            None => Block { address: self.base, usable: self.bytes, arena },
        }
    }
}
