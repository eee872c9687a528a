//! Records each allocation and each free, for the heap monitor.
//!
//! ```text
//!   thread ──▶ its buffer ──(full, or the thread ends)──▶ sink
//! ```
//! A thread whose buffer is full gives it to the sink before it goes on, and waits for other
//! threads that do the same. So no event is lost unless the sink says that it could not take it.

use super::backtrace::{self, Call};
use super::event::{Event, What};
use super::event_buffer::{self, Buffer, Held};
use super::sites;
use super::stack_depth;
use crate::back::metadata::Pool;
use crate::ground::counters::SharedCount;
use crate::ground::fatal;
use crate::ground::os;
use crate::ground::sync::exempt_thread;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Takes events, or the message with which the process ends. Returns whether it could.
///
/// It is called by any thread that allocates or frees, by one at a time, under a lock of the heap
/// monitor. It must not allocate, free, panic, or wait for a lock of the program.
pub type Sink = fn(Record<'_>) -> bool;

/// What a [`Sink`] takes.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// Events, in the order of their times.
    Events(&'a [Event]),
    /// The allocator ends the process, and says why.
    End(&'a [u8]),
    /// This is the child of a fork. The recording is the parent's, and goes on there.
    Forked,
}

/// The sink, and buffers that no thread has.
pub(crate) struct State {
    sink: Option<Sink>,
    free: Pool<Buffer>,
}

// SAFETY: the pool is reached under the lock only.
unsafe impl Send for State {}

/// The state and its lock, which fork takes too.
pub(crate) static STATE: RankedMutex<State> =
    RankedMutex::new(LockRank::Recorder, State { sink: None, free: Pool::new() });

static IS_ON: AtomicBool = AtomicBool::new(false);
/// When the recording ended. Events that a thread noted later, because it did not know, are left
/// out: other threads may have noted nothing since.
static END: AtomicU64 = AtomicU64::new(u64::MAX);
/// The buffer of the threads that have none.
static SHARED: AtomicPtr<Buffer> = AtomicPtr::new(core::ptr::null_mut());

/// Events that the sink of the present or last recording took, and those that it could not take.
pub(crate) static TAKEN: SharedCount = SharedCount::new();
pub(crate) static DROPPED: SharedCount = SharedCount::new();

/// Returns whether events are recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Turns the recording on, once all threads take the slow paths. There must be a sink.
pub(crate) fn turn_on() {
    END.store(u64::MAX, Ordering::Relaxed);
    // Release: pairs with the Acquire in `note`, which then sees the shared buffer.
    IS_ON.store(true, Ordering::Release);
}

/// Turns the recording off, before threads leave the slow paths.
pub(crate) fn turn_off() {
    END.fetch_min(os::nanoseconds(), Ordering::Relaxed);
    IS_ON.store(false, Ordering::Relaxed);
}

/// Why nothing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Events are being recorded already.
    Busy,
    /// There is no memory, or the system refuses `membarrier`.
    System,
}

/// Sets what takes the events, unless something does already.
pub(crate) fn begin(sink: Sink) -> Result<(), Refusal> {
    let mut state = STATE.lock();
    if state.sink.is_some() {
        return Err(Refusal::Busy);
    }
    if SHARED.load(Ordering::Relaxed).is_null() {
        let shared = state.free.take().or_else(Buffer::make).ok_or(Refusal::System)?;
        // Release: pairs with the Acquire in `shared`.
        SHARED.store(core::ptr::from_ref(shared).cast_mut(), Ordering::Release);
    }
    state.sink = Some(sink);
    fatal::set_reporter(give_all);
    TAKEN.sub(TAKEN.get());
    DROPPED.sub(DROPPED.get());
    Ok(())
}

/// Gives all events to the sink, which takes no more afterwards, and the memory of the buffers back
/// to the system. Recording must be off. Returns `false` if there was no sink.
pub(crate) fn end() -> bool {
    for buffer in event_buffer::all() {
        let mut held = buffer.held().lock();
        flush(&mut held);
        held.give_back();
    }
    STATE.lock().sink.take().is_some()
}

fn shared() -> Option<&'static Buffer> {
    // Acquire: pairs with the Release in `begin`.
    // SAFETY: buffers are never unmapped.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }
}

/// Returns a buffer for the calling thread. `None`: there is no memory, or the thread forks now,
/// and would not release a buffer that was made after it took the locks of all.
#[cold]
#[inline(never)]
pub(crate) fn take_buffer() -> Option<&'static Buffer> {
    if exempt_thread::is_caller() {
        return None;
    }
    let buffer = {
        let mut state = STATE.lock();
        state.free.take().or_else(Buffer::make)?
    };
    buffer.held().lock().thread = Some(os::thread_id());
    Some(buffer)
}

/// Takes the buffer of a thread back, which ends.
pub(crate) fn put_buffer(buffer: &'static Buffer) {
    let mut held = buffer.held().lock();
    flush(&mut held);
    held.thread = None;
    drop(held);
    flush_shared();
    STATE.lock().free.put(buffer);
}

/// Notes what happened to a block, with the stack of the calling thread, in the thread's buffer.
/// Without a time it happens now. The caller holds no lock.
#[inline(never)]
pub(crate) fn note(own: Option<&'static Buffer>, address: usize, what: What, time: Option<u64>) {
    let Some(buffer) = own.or_else(shared) else { return };
    if add(&mut buffer.held().lock(), address, what, time) {
        flush_shared();
    }
    sites::tell_shared();
}

/// Notes it in a buffer. Returns whether the buffer was full, and its events were given to the
/// sink.
#[inline(always)]
fn add(held: &mut Held, address: usize, what: What, time: Option<u64>) -> bool {
    // Acquire: pairs with the Release in `turn_on`.
    if !IS_ON.load(Ordering::Acquire) {
        return false;
    }
    let call = match what {
        What::Allocated { .. } => Call::Allocation,
        What::Freed { .. } => Call::Free,
    };
    let site = sites::site_beside(backtrace::take(held.stack(), stack_depth::most(), call));
    let stack = site.map_or(0, sites::Site::number);
    let thread = held.thread.unwrap_or_else(os::thread_id) as u32;
    let time = time.unwrap_or_else(os::nanoseconds);
    let is_full = held.push(Event { time, address, what, stack, thread });
    if is_full {
        flush(held);
    }
    is_full
}

/// Gives the events of the threads without a buffer to the sink. It is called whenever a thread has
/// given its own: the shared buffer may never be full, and a process that is killed would lose
/// events that are much older than the last ones. The caller holds no buffer.
#[cold]
#[inline(never)]
fn flush_shared() {
    if let Some(shared) = shared() {
        flush(&mut shared.held().lock());
    }
}

/// Gives the events of a buffer to the sink. Without a sink they are forgotten.
// Not inlined, because writing to a file takes more of the stack than an event does.
#[cold]
#[inline(never)]
fn flush(held: &mut Held) {
    give(&STATE.lock(), held);
}

fn give(state: &State, held: &mut Held) {
    let end = END.load(Ordering::Relaxed);
    let in_time = held.events().partition_point(|event| event.time <= end);
    let events = held.events().get(..in_time).unwrap_or_default();
    if let Some(sink) = state.sink.filter(|_| !events.is_empty()) {
        let counter = if sink(Record::Events(events)) { &TAKEN } else { &DROPPED };
        counter.add(events.len() as u64);
    }
    held.clear();
}

/// Calls `f` while no thread gives events to the sink.
pub(crate) fn alone<T>(f: impl FnOnce() -> T) -> T {
    let _state = STATE.lock();
    f()
}

/// Gives all events that no other thread uses at this moment to the sink, and then the message with
/// which the process ends.
#[cold]
fn give_all(message: &[u8]) {
    if !is_on() {
        return;
    }
    let Some(state) = STATE.try_lock() else { return };
    for buffer in event_buffer::all() {
        if let Some(mut held) = buffer.held().try_lock() {
            give(&state, &mut held);
        }
    }
    if let Some(sink) = state.sink {
        sink(Record::End(message));
    }
}

/// Ends the recording in the child of a fork. The sink gets no events: the file is the parent's.
/// Only `mine`, the buffer of the child's thread, stays in use.
pub(crate) fn forget_in_child(mine: Option<&'static Buffer>) {
    IS_ON.store(false, Ordering::Relaxed);
    {
        let mut state = STATE.lock();
        if let Some(sink) = state.sink.take() {
            sink(Record::Forked);
        }
        state.free = Pool::new();
    }
    for buffer in event_buffer::all() {
        let is = |used: Option<&Buffer>| used.is_some_and(|used| core::ptr::eq(used, buffer));
        let mut held = buffer.held().lock();
        held.clear();
        held.thread = is(mine).then(os::thread_id);
        if !is(mine) && !is(shared()) {
            STATE.lock().free.put(buffer);
        }
    }
}
