//! Converts a recording for the replayer (`c/replay.c`): a stream of 12-byte records per thread,
//! with slots in place of blocks, and with the numbers of windows, which keep the threads together.
//!
//! A thread that uses the block of another thread waits for its slot to be filled. So the slot must
//! never show an older block. The slots of blocks that other threads will free are therefore left
//! unused for two windows, which all threads have passed by then. All other slots are reused at
//! once by the thread that freed them. A realloc of another thread's block becomes an allocation
//! and a free.

use super::raw::{Deed, Event};
use std::collections::{HashMap, VecDeque};

const WINDOW: u32 = 6;
const START: u32 = 7;
const FREE: u32 = 5;
/// The block in the slot was made by another thread.
const REMOTE: u32 = 8;
/// Another thread will free the block, but its maker will resize it before.
const PRIVATE: u32 = 1 << 31;

/// The number of events, of all threads together, that make a window.
const EVENTS_A_WINDOW: usize = 8192;

/// A trace, and its statistics.
pub(crate) struct Trace {
    streams: Vec<Vec<[u32; 3]>>,
    slots: u32,
    pub(crate) operations: u64,
    /// The largest number of bytes requested and not yet freed.
    pub(crate) peak_bytes: u64,
    /// Operations on blocks that another thread made.
    pub(crate) remote: u64,
    /// Frees of blocks whose allocation was not seen. They are left out.
    pub(crate) unknown: u64,
}

struct Live {
    slot: u32,
    thread: u16,
    size: u64,
}

struct Writer {
    trace: Trace,
    live: HashMap<u64, Live>,
    bytes: u64,
    /// For each event, what becomes of its block.
    fates: Vec<Fate>,
    /// For each thread, the slots that it freed itself, the last one at the end.
    own: Vec<Vec<u32>>,
    /// Slots that other threads freed, each with the window of the free.
    others: VecDeque<(u32, u32)>,
    /// The current window of each thread; `None` for a thread that has not started.
    windows: Vec<Option<u32>>,
    window: u32,
}

/// Turns events into a trace.
pub(crate) fn compact(events: &[Event]) -> Trace {
    let threads = events.iter().map(|event| event.thread).max().map_or(1, |most| most + 1);
    let threads = usize::from(threads);
    let mut writer = Writer {
        trace: Trace {
            streams: vec![Vec::new(); threads],
            slots: 0,
            operations: 0,
            peak_bytes: 0,
            remote: 0,
            unknown: 0,
        },
        live: HashMap::new(),
        bytes: 0,
        fates: fates(events),
        own: vec![Vec::new(); threads],
        others: VecDeque::new(),
        windows: vec![None; threads],
        window: 0,
    };
    writer.windows[0] = Some(0);
    for (number, event) in events.iter().enumerate() {
        writer.window = (number / EVENTS_A_WINDOW) as u32;
        writer.event(event, writer.fates[number]);
    }
    writer.trace
}

/// What becomes of the block that an event makes or resizes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its own thread frees it, or no thread does.
    Stays,
    /// Another thread will free it, without a resize before.
    Leaves,
    /// Another thread will free it, after a resize.
    LeavesLater,
}

fn fates(events: &[Event]) -> Vec<Fate> {
    let mut fates = vec![Fate::Stays; events.len()];
    // For each live block, the events that made and resized it, and their thread.
    let mut made: HashMap<u64, (Vec<usize>, u16)> = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        let from = if let Deed::Realloc(from) = event.deed { from } else { event.address };
        let gone = made.remove(&from);
        if let Some((makers, _)) = gone.as_ref().filter(|(_, thread)| *thread != event.thread) {
            makers.iter().for_each(|&maker| fates[maker] = Fate::LeavesLater);
            makers.iter().last().iter().for_each(|&&maker| fates[maker] = Fate::Leaves);
        }
        let mut makers = match (event.deed, gone) {
            (Deed::Free, _) => continue,
            (Deed::Realloc(_), Some((makers, thread))) if thread == event.thread => makers,
            _ => Vec::new(),
        };
        makers.push(number);
        made.insert(event.address, (makers, event.thread));
    }
    fates
}

impl Writer {
    fn event(&mut self, event: &Event, fate: Fate) {
        self.enter(event.thread);
        match event.deed {
            Deed::Malloc => self.allocate(event, 1, fate),
            Deed::Calloc => self.allocate(event, 2, fate),
            Deed::Aligned(to) => {
                self.allocate(event, 4 | to.max(8).trailing_zeros() << 4, fate);
            }
            Deed::Free => self.free(event.address, event.thread),
            Deed::Realloc(from) => self.resize(from, event, fate),
        }
        self.trace.peak_bytes = self.trace.peak_bytes.max(self.bytes);
    }

    /// Brings a thread into the current window, and starts it if need be.
    fn enter(&mut self, thread: u16) {
        if self.windows[usize::from(thread)].is_none() {
            // The first thread starts all others, in its own window.
            self.enter(0);
            self.push(0, [0, START, u32::from(thread)]);
            self.windows[usize::from(thread)] = Some(self.window);
        }
        let window = &mut self.windows[usize::from(thread)];
        if self.trace.streams.len() > 1 && *window != Some(self.window) {
            *window = Some(self.window);
            self.push(thread, [0, WINDOW, self.window]);
        }
    }

    fn push(&mut self, thread: u16, record: [u32; 3]) {
        self.trace.streams[usize::from(thread)].push(record);
    }

    fn operate(&mut self, thread: u16, what: u32, size: u64, slot: u32) {
        self.trace.operations += 1;
        self.push(thread, [size as u32, what | ((size >> 32) as u32) << 10, slot]);
    }

    fn slot(&mut self, thread: u16, fate: Fate) -> u32 {
        if fate == Fate::Stays
            && let Some(slot) = self.own[usize::from(thread)].pop()
        {
            return slot;
        }
        if fate != Fate::Stays
            && let Some(&(slot, freed)) = self.others.front()
            && freed + 2 <= self.window
        {
            self.others.pop_front();
            return slot;
        }
        self.trace.slots += 1;
        self.trace.slots - 1
    }

    fn allocate(&mut self, event: &Event, what: u32, fate: Fate) {
        if self.live.contains_key(&event.address) {
            // It was freed in a way that the recorder does not see.
            self.trace.unknown += 1;
            self.free(event.address, event.thread);
        }
        let slot = self.slot(event.thread, fate);
        self.operate(event.thread, what | private(fate), event.size, slot);
        self.bytes += event.size;
        self.live.insert(event.address, Live { slot, thread: event.thread, size: event.size });
    }

    fn free(&mut self, address: u64, thread: u16) {
        let Some(block) = self.live.remove(&address) else {
            self.trace.unknown += 1;
            return;
        };
        self.bytes -= block.size;
        if block.thread == thread {
            self.operate(thread, FREE, 0, block.slot);
            self.own[usize::from(thread)].push(block.slot);
        } else {
            self.trace.remote += 1;
            self.operate(thread, FREE | REMOTE, 0, block.slot);
            self.others.push_back((block.slot, self.window));
        }
    }

    fn resize(&mut self, from: u64, event: &Event, fate: Fate) {
        match self.live.remove(&from) {
            Some(block) if block.thread == event.thread => {
                self.operate(event.thread, 3 | private(fate), event.size, block.slot);
                self.bytes = self.bytes - block.size + event.size;
                self.live.insert(event.address, Live { size: event.size, ..block });
            }
            Some(block) => {
                self.live.insert(from, block);
                let made = Event { deed: Deed::Malloc, ..*event };
                if from == event.address {
                    self.free(from, event.thread);
                    self.allocate(&made, 1, fate);
                } else {
                    self.allocate(&made, 1, fate);
                    self.free(from, event.thread);
                }
            }
            None => {
                self.trace.unknown += 1;
                self.allocate(event, 1, fate);
            }
        }
    }
}

const fn private(fate: Fate) -> u32 {
    if matches!(fate, Fate::LeavesLater) { PRIVATE } else { 0 }
}

impl Trace {
    /// The number of threads in the trace.
    pub(crate) fn threads(&self) -> usize {
        self.streams.len()
    }

    /// The file: `lumatrc2`, threads, slots, operations; offset and length of each stream; streams.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"lumatrc2".to_vec();
        bytes.extend((self.streams.len() as u32).to_le_bytes());
        bytes.extend(self.slots.to_le_bytes());
        bytes.extend(self.operations.to_le_bytes());
        let mut offset = (bytes.len() + 16 * self.streams.len()) as u64;
        for stream in &self.streams {
            bytes.extend(offset.to_le_bytes());
            bytes.extend((stream.len() as u64).to_le_bytes());
            offset += 12 * stream.len() as u64;
        }
        for number in self.streams.iter().flatten().flatten() {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, FREE, PRIVATE, REMOTE, START, WINDOW, compact};
    use crate::traces::raw::Deed;

    fn event(thread: u16, deed: Deed, address: u64, size: u64) -> Event {
        Event { deed, thread, address, size }
    }

    #[test]
    fn a_slot_is_used_again_by_who_freed_it() {
        let trace = compact(&[
            event(0, Deed::Malloc, 0x10, 100),
            event(0, Deed::Realloc(0x10), 0x20, 1 << 33),
            event(0, Deed::Free, 0x20, 0),
            event(0, Deed::Aligned(64), 0x10, 8),
            event(0, Deed::Free, 0x99, 0),
        ]);
        let wanted = [[100, 1, 0], [0, 3 | 2 << 10, 0], [0, FREE, 0], [8, 4 | 6 << 4, 0]];
        assert_eq!(trace.streams, [wanted]);
        assert_eq!((trace.slots, trace.operations, trace.unknown), (1, 4, 1));
        assert_eq!(trace.peak_bytes, 1 << 33);
    }

    #[test]
    fn a_remote_free_is_marked_and_its_slot_rests() {
        let trace = compact(&[
            event(0, Deed::Malloc, 0x10, 1),
            event(1, Deed::Free, 0x10, 0),
            event(0, Deed::Malloc, 0x10, 2),
        ]);
        assert_eq!(trace.streams[0], [[1, 1, 0], [0, START, 1], [2, 1, 1]]);
        assert_eq!(trace.streams[1], [[0, FREE | REMOTE, 0]]);
        assert_eq!((trace.remote, trace.threads()), (1, 2));
    }

    #[test]
    fn threads_are_told_of_windows() {
        let mut events = vec![event(0, Deed::Malloc, 0x10, 1), event(1, Deed::Free, 0x10, 0)];
        for i in 0..super::EVENTS_A_WINDOW as u64 {
            events.push(event(1, Deed::Malloc, 0x100 + 16 * i, 1));
        }
        events.push(event(0, Deed::Malloc, 0x10, 2));
        let trace = compact(&events);
        assert!(trace.streams[1].contains(&[0, WINDOW, 1]));
        assert_eq!(trace.streams[0][2..], [[0, WINDOW, 1], [2, 1, trace.slots - 1]]);
    }

    #[test]
    fn a_slot_that_is_waited_for_shows_no_older_block() {
        let round = |address| {
            [
                event(0, Deed::Malloc, address, 1),
                event(0, Deed::Free, address, 0),
                event(0, Deed::Malloc, address, 1),
                event(1, Deed::Free, address, 0),
            ]
        };
        let trace = compact(&[round(0x10), round(0x20)].concat());
        let slots = |thread: usize, what: u32| -> Vec<u32> {
            let those = trace.streams[thread].iter().filter(|record| record[1] == what);
            those.map(|record| record[2]).collect()
        };
        assert_eq!(slots(0, FREE), [0, 0]);
        assert_eq!(slots(1, FREE | REMOTE), [1, 2]);
    }

    #[test]
    fn a_block_is_shown_when_its_maker_is_done_with_it() {
        let trace = compact(&[
            event(0, Deed::Malloc, 0x10, 1),
            event(0, Deed::Realloc(0x10), 0x20, 2),
            event(0, Deed::Realloc(0x20), 0x20, 3),
            event(1, Deed::Free, 0x20, 0),
        ]);
        let wanted = [[1, 1 | PRIVATE, 0], [2, 3 | PRIVATE, 0], [3, 3, 0], [0, START, 1]];
        assert_eq!(trace.streams[0], wanted);
        assert_eq!(trace.streams[1], [[0, FREE | REMOTE, 0]]);
    }

    #[test]
    fn a_realloc_of_another_threads_block_is_an_allocation_and_a_free() {
        let trace =
            compact(&[event(0, Deed::Malloc, 0x10, 1), event(1, Deed::Realloc(0x10), 0x20, 2)]);
        assert_eq!(trace.streams[1], [[2, 1, 1], [0, FREE | REMOTE, 0]]);
    }
}
