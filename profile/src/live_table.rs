//! Counts of the samples in use that have everything in common but the address.

use crate::table::Table;
use lumalloc::observe::{self, LiveSample};

/// Counts whose stacks are loaded at the same time.
const BATCH: usize = 16;
/// Words of a line of the processor's caches.
const LINE_WORDS: usize = 8;

/// A table of counts, in memory that it is given.
pub(crate) struct LiveTable<'a>(Table<'a, KEYS>);

/// The words of a key: the stack and its depth, the requested and the usable size, the arena, the
/// thread, and the thread's name with its length.
const KEYS: usize = 8;

/// Samples that have all this in common.
#[derive(Clone, Copy)]
pub(crate) struct Alike {
    pub(crate) stack: &'static [usize],
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) arena: u64,
    pub(crate) thread: u64,
    pub(crate) thread_name: &'static [u8],
    /// How many there are.
    pub(crate) samples: u64,
}

impl<'a> LiveTable<'a> {
    /// Words of a place of the table.
    pub(crate) const PLACE: usize = Table::<'a, KEYS>::PLACE;

    /// Counts the present samples, in zeroed words. `None`: there was no room for all.
    pub(crate) fn collect(words: &'a mut [u64]) -> Option<LiveTable<'a>> {
        let (mut table, mut is_whole) = (Table::new(words), true);
        observe::live_samples(|sample| match table.value(&key_of(&sample)) {
            Some(samples) => *samples += 1,
            None => is_whole = false,
        });
        is_whole.then_some(LiveTable(table))
    }

    /// Calls `see` with all counts.
    pub(crate) fn for_each(&self, mut see: impl FnMut(Alike)) {
        let mut all = self.0.all().map(|(key, samples)| alike(key, samples));
        loop {
            let mut batch = [None; BATCH];
            batch.iter_mut().zip(&mut all).for_each(|(place, next)| *place = Some(next));
            if batch.iter().flatten().next().is_none() {
                return;
            }
            // The stacks lie far from each other. So many of them are loaded at the same time.
            let lines = batch.iter().flatten().flat_map(|one| one.stack.iter().step_by(LINE_WORDS));
            core::hint::black_box(lines.fold(0, |all, line| all ^ line));
            batch.into_iter().flatten().for_each(&mut see);
        }
    }
}

fn key_of(sample: &LiveSample) -> [u64; KEYS] {
    [
        sample.stack.as_ptr().expose_provenance() as u64,
        sample.stack.len() as u64,
        sample.requested as u64,
        sample.usable as u64,
        u64::from(sample.arena),
        sample.thread,
        sample.thread_name.as_ptr().expose_provenance() as u64,
        sample.thread_name.len() as u64,
    ]
}

fn alike(key: &[u64; KEYS], samples: u64) -> Alike {
    let [stack, depth, requested, usable, arena, thread, name, length] = *key;
    let stack = core::ptr::with_exposed_provenance(stack as usize);
    let name = core::ptr::with_exposed_provenance(name as usize);
    Alike {
        // SAFETY: the slice was taken apart by `key_of`. It lives for ever.
        stack: unsafe { core::slice::from_raw_parts(stack, depth as usize) },
        requested: requested as usize,
        usable: usable as usize,
        arena,
        thread,
        // SAFETY: as above.
        thread_name: unsafe { core::slice::from_raw_parts(name, length as usize) },
        samples,
    }
}
