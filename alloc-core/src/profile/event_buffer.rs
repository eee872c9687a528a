//! Events of a thread that wait to be written.

use super::backtrace::MOST_OWN;
use super::event::Event;
use super::hooks::DEEPEST;
use crate::back::metadata::{self, Recycled};
use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::round_up;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Events of a buffer.
pub(crate) const CAPACITY: usize = 512;

/// A buffer of events, which belongs to a thread, or to all threads that have none.
pub(crate) struct Buffer {
    held: RankedMutex<Held>,
    /// The buffer that was made before it.
    older: Option<&'static Buffer>,
    next_free: Cell<Option<&'static Buffer>>,
}

// SAFETY: the link is used by the holder of the recorder's lock only.
unsafe impl Sync for Buffer {}

/// What the holder of a buffer's lock may touch.
pub(crate) struct Held {
    room: &'static mut Room,
    /// How many events are written.
    count: usize,
    /// The system's number of the thread that has the buffer. `None`: any thread may use it.
    pub(super) thread: Option<usize>,
}

/// The arrays of a buffer, which are too large to be made on the stack of a thread.
struct Room {
    events: [MaybeUninit<Event>; CAPACITY],
    /// For the walk through a stack.
    stack: [MaybeUninit<usize>; DEEPEST + MOST_OWN],
}

/// The buffer that was made last.
static NEWEST: AtomicPtr<Buffer> = AtomicPtr::new(core::ptr::null_mut());

impl Buffer {
    /// Makes a buffer. Returns `None` if there is no memory. Called under the recorder's lock.
    pub(super) fn make() -> Option<&'static Buffer> {
        let room = metadata::allocate(size_of::<Room>(), align_of::<Room>())?;
        let memory = metadata::allocate(size_of::<Buffer>(), align_of::<Buffer>())?;
        let memory = memory.cast::<Buffer>();
        // SAFETY: fresh memory of the right size and alignment, which nobody else has. Any bytes
        // are valid.
        let room = unsafe { room.cast::<Room>().as_mut() };
        let held = Held { room, count: 0, thread: None };
        let buffer = Buffer {
            held: RankedMutex::new(LockRank::Events, held),
            older: newest(),
            next_free: Cell::new(None),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(buffer) };
        // Release: pairs with the Acquire in `newest`.
        NEWEST.store(memory.as_ptr(), Ordering::Release);
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }

    /// Returns the lock, which fork takes too.
    pub(crate) fn held(&self) -> &RankedMutex<Held> {
        &self.held
    }
}

/// Returns the buffer that was made last.
pub(crate) fn newest() -> Option<&'static Buffer> {
    // Acquire: pairs with the Release in `make`.
    // SAFETY: buffers are never unmapped.
    unsafe { NEWEST.load(Ordering::Acquire).as_ref() }
}

/// Returns all buffers.
pub(crate) fn all() -> impl Iterator<Item = &'static Buffer> {
    up_to(newest())
}

/// Returns a buffer and all that were made before it.
pub(crate) fn up_to(buffer: Option<&'static Buffer>) -> impl Iterator<Item = &'static Buffer> {
    core::iter::successors(buffer, |buffer| buffer.older)
}

impl Held {
    /// Appends an event, at a time that is no earlier than that of the one before. Returns whether
    /// the buffer is full.
    pub(super) fn push(&mut self, event: Event) -> bool {
        let last = self.events().last().map_or(0, |last| last.time);
        if let Some(place) = self.room.events.get_mut(self.count) {
            place.write(Event { time: event.time.max(last), ..event });
            self.count += 1;
        }
        self.count == CAPACITY
    }

    /// Returns the events.
    pub(super) fn events(&self) -> &[Event] {
        let written = self.room.events.get(..self.count).unwrap_or_default();
        // SAFETY: `push` has written the first `count` ones.
        unsafe { written.assume_init_ref() }
    }

    /// Returns room for the walk through a stack.
    pub(super) fn stack(&mut self) -> &mut [MaybeUninit<usize>] {
        &mut self.room.stack
    }

    /// Forgets all events, and gives the memory for them back to the system.
    pub(super) fn give_back(&mut self) {
        self.clear();
        let begin = core::ptr::from_mut::<Room>(self.room).expose_provenance();
        let page = os::system_page();
        let (first, end) = (round_up(begin, page), (begin + size_of::<Room>()) & !(page - 1));
        // A huge page would be split.
        if first < end && metadata::HUGE_PAGES.get() == 0 {
            os::give_pages_back(first, end - first);
        }
    }

    /// Forgets all events.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

impl Recycled for Buffer {
    fn next_free(&self) -> &Cell<Option<&'static Buffer>> {
        &self.next_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_in_the_order_of_their_times() {
        let buffer = Buffer::make().expect("memory");
        assert!(all().any(|known| core::ptr::eq(known, buffer)));
        assert!(!up_to(buffer.older).any(|known| core::ptr::eq(known, buffer)));
        let mut held = buffer.held().lock();
        for time in [5, 9, 7] {
            assert!(!held.push(Event { time, ..Event::NONE }));
        }
        let times: Vec<u64> = held.events().iter().map(|event| event.time).collect();
        assert_eq!(times, [5, 9, 9]);
        let rest = (3..CAPACITY).map(|_| held.push(Event::NONE)).position(|is_full| is_full);
        assert_eq!(rest, Some(CAPACITY - 4), "full with the last one");
        held.clear();
        assert!(held.events().is_empty());
    }

    #[test]
    fn a_buffer_that_is_not_needed_has_no_memory() {
        let buffer = Buffer::make().expect("memory");
        let mut held = buffer.held().lock();
        (0..CAPACITY).for_each(|_| _ = held.push(Event::NONE));
        let resident = |held: &Held| {
            let begin = core::ptr::from_ref::<Room>(held.room).addr();
            os::resident_bytes(begin, size_of::<Room>())
        };
        assert!(resident(&held) >= CAPACITY * size_of::<Event>());
        held.give_back();
        // The first and the last page may have other records.
        let shared = 2 * os::system_page();
        assert!(metadata::HUGE_PAGES.get() > 0 || resident(&held) <= shared);
        assert!(held.events().is_empty() && !held.push(Event::NONE) && held.events().len() == 1);
    }
}
