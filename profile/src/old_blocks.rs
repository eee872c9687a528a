//! The blocks that are live when the heap monitor starts or stops, without those that it does not
//! record: the blocks of arenas that heap profiles leave out.

use crate::event_file::Chunk;
use crate::process::{self, thread_id};
use lumalloc::control::monitor::{NO_POINTER, first_word};
use lumalloc::control::profile::is_arena_profiled;
use lumalloc::observe::{self, Block};

/// Blocks that are looked at together.
const TOGETHER: usize = 64;
/// Words of a block that are read.
const WORDS: usize = 2;

/// Which time a chunk has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// One before its blocks were read: a block that was allocated later is another one.
    Before,
    /// One after that: a block that was allocated earlier is the same.
    After,
}

/// Some blocks, and what they begin with.
struct Batch {
    blocks: [Block; TOGETHER],
    words: [[usize; WORDS]; TOGETHER],
    count: usize,
    /// When they began to be read.
    before: u64,
}

/// Calls `put` with functions that fill chunks, which together have all live blocks. With
/// [`Time::After`] there is at least one chunk. `put` returns whether the chunk was written.
/// Returns how many blocks were not.
pub(crate) fn for_each_chunk(
    time: Time,
    mut put: impl FnMut(&dyn Fn(&mut Chunk<'_>)) -> bool,
) -> u64 {
    let mut lost = 0;
    let mut batch = Batch::new();
    let mut write = |batch: &mut Batch| {
        batch.read();
        if !put(&|chunk| batch.fill(chunk, time)) {
            lost += batch.count as u64;
        }
        batch.count = 0;
    };
    let is_recorded = |block: &Block| block.arena.and_then(is_arena_profiled).unwrap_or(true);
    let without_bytes = observe::blocks_without_bytes();
    let without_bytes = without_bytes.map(|address| Block { address, usable: 0, arena: None });
    for block in observe::blocks(None).filter(is_recorded).chain(without_bytes) {
        if let Some(place) = batch.blocks.get_mut(batch.count) {
            *place = block;
            batch.count += 1;
        }
        if batch.count == TOGETHER {
            write(&mut batch);
        }
    }
    // The last chunk tells when all blocks had been looked at, also if there was none.
    if batch.count > 0 || time == Time::After {
        write(&mut batch);
    }
    lost
}

impl Batch {
    fn new() -> Batch {
        let block = Block { address: 0, usable: 0, arena: None };
        Batch { blocks: [block; TOGETHER], words: [[0; WORDS]; TOGETHER], count: 0, before: 0 }
    }

    /// Reads what the blocks begin with. The system reads it, because other threads may free blocks
    /// meanwhile, and their memory may be gone. What cannot be read is [`NO_POINTER`].
    fn read(&mut self) {
        self.words = [[NO_POINTER; WORDS]; TOGETHER];
        self.before = process::monotonic();
        let mut done = 0;
        while done < self.count {
            // A block that cannot be read ends the call.
            done += self.read_from(done).max(1);
        }
    }

    /// Reads blocks from this one on. Returns how many were read whole.
    fn read_from(&mut self, first: usize) -> usize {
        let empty = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let (mut local, mut remote) = ([empty; TOGETHER], [empty; TOGETHER]);
        let blocks = self.blocks.get(first..self.count).unwrap_or_default();
        let words = self.words.get_mut(first..self.count).unwrap_or_default();
        let places = local.iter_mut().zip(&mut remote);
        for ((local, remote), (block, words)) in places.zip(blocks.iter().zip(words)) {
            let length = length(block);
            // A word that a short block lacks does not exist.
            *words = [NO_POINTER; WORDS];
            let base = words.as_mut_ptr().cast();
            *local = libc::iovec { iov_base: base, iov_len: length };
            let base = core::ptr::with_exposed_provenance_mut(block.address);
            *remote = libc::iovec { iov_base: base, iov_len: length };
        }
        let count = blocks.len();
        let (local, remote) = (local.as_ptr(), remote.as_ptr());
        let me = thread_id();
        // SAFETY: the kernel checks the remote places, and writes only to the words.
        let read = process::keep_errno(|| unsafe {
            libc::process_vm_readv(me, local, count as u64, remote, count as u64, 0)
        });
        let mut left = usize::try_from(read).unwrap_or(0);
        let is_whole = |block: &&Block| {
            let is_whole = left >= length(block);
            left = left.saturating_sub(length(block));
            is_whole
        };
        blocks.iter().take_while(is_whole).count()
    }

    fn fill(&self, chunk: &mut Chunk<'_>, time: Time) {
        chunk.number(match time {
            Time::Before => self.before,
            Time::After => process::monotonic(),
        });
        let mut last = 0;
        for (block, words) in self.blocks.iter().zip(&self.words).take(self.count) {
            chunk.difference(block.address as u64, last).number(block.usable as u64);
            chunk.number(first_word(*words, block.usable) as u64);
            last = block.address as u64;
        }
    }
}

/// Returns how many bytes of a block are read.
fn length(block: &Block) -> usize {
    block.usable.min(WORDS * size_of::<usize>()) / size_of::<usize>() * size_of::<usize>()
}
