//! What became of samples: the last ones that were taken (`opt.prof_recent_alloc_max`), and those
//! that were freed while a log is kept (`prof.log_start`). Source: jemalloc(3).

use super::backtrace::{self, Call, MOST_OWN};
use super::hooks::DEEPEST;
use super::names::NameIndex;
use super::sites::{self, Site};
use super::stack_depth;
use crate::back::metadata::{self, Pool, Recycled};
use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Who did something, when, and from where.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// In nanoseconds of the monotonic clock.
    pub(crate) time: u64,
    /// The number of the thread, and its name.
    pub(crate) thread: u64,
    pub(crate) name: NameIndex,
    pub(crate) site: &'static Site,
}

/// What is kept of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Past {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) allocated: Moment,
    pub(crate) freed: Option<Moment>,
    /// Tells apart the samples that use one node after another.
    number: u64,
}

/// The place of a sample among the last ones, from which it may have gone.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    node: &'static Node,
    number: u64,
}

struct Node {
    past: Cell<Option<Past>>,
    next: Cell<Option<&'static Node>>,
}

// SAFETY: the cells are touched under the history's lock only, but for the links of a list that one
// thread has taken out, which it alone follows.
unsafe impl Sync for Node {}

/// Nodes in the order in which they were added.
struct List {
    first: Option<&'static Node>,
    last: Option<&'static Node>,
    count: usize,
}

/// The last samples, and the log.
pub(crate) struct History {
    recent: List,
    /// The most samples of `recent`. Negative: all.
    most: isize,
    log: List,
    /// When the log was begun. `None`: none is kept.
    log_since: Option<u64>,
    numbers: u64,
    free: Pool<Node>,
}

// SAFETY: the nodes are reached under the lock.
unsafe impl Send for History {}

/// The history and its lock, which fork takes too.
pub(crate) static HISTORY: RankedMutex<History> = RankedMutex::new(
    LockRank::History,
    History {
        recent: List::new(),
        most: 0,
        log: List::new(),
        log_since: None,
        numbers: 0,
        free: Pool::new(),
    },
);

/// Whether anything is kept.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Returns the calling thread's number and name.
pub(crate) type Who = fn() -> (u64, NameIndex);

static WHO: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function that tells who the calling thread is. Called at start.
pub(crate) fn set_who(who: Who) {
    WHO.store(who as *mut (), Ordering::Relaxed);
}

fn who() -> (u64, NameIndex) {
    let who = WHO.load(Ordering::Relaxed);
    if who.is_null() {
        return Default::default();
    }
    // SAFETY: only `set_who` stores here, and it stores only functions of this type.
    let who = unsafe { core::mem::transmute::<*mut (), Who>(who) };
    who()
}

impl List {
    const fn new() -> List {
        List { first: None, last: None, count: 0 }
    }

    fn push(&mut self, node: &'static Node) {
        node.next.set(None);
        match self.last {
            Some(last) => last.next.set(Some(node)),
            None => self.first = Some(node),
        }
        self.last = Some(node);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<&'static Node> {
        let first = self.first?;
        self.first = first.next.take();
        if self.first.is_none() {
            self.last = None;
        }
        self.count -= 1;
        Some(first)
    }
}

impl History {
    fn take(&mut self, past: Past) -> Option<&'static Node> {
        let node = self.free.take().or_else(Node::make)?;
        node.past.set(Some(past));
        Some(node)
    }

    fn put(&mut self, node: &'static Node) {
        node.past.set(None);
        self.free.put(node);
    }

    /// Forgets the oldest of the last samples, until they are not too many.
    fn trim(&mut self) {
        while usize::try_from(self.most).is_ok_and(|most| self.recent.count > most) {
            let Some(oldest) = self.recent.pop() else { return };
            self.put(oldest);
        }
    }

    /// Returns the sample of a place among the last ones, unless it has gone from there.
    fn recent_at(&self, at: Option<Ticket>) -> Option<(&'static Node, Past)> {
        let Ticket { node, number } = at?;
        let past = node.past.get().filter(|past| past.number == number)?;
        Some((node, past))
    }

    /// Returns whether the end of the sample of a place is to be noted.
    fn wants(&self, at: Option<Ticket>) -> bool {
        self.log_since.is_some() || self.recent_at(at).is_some()
    }

    fn note_keeps(&self) {
        KEEPS.store(self.most != 0 || self.log_since.is_some(), Ordering::Relaxed);
    }
}

/// Returns the time of a sample that is taken now. Unless anything is kept, it is that of the
/// system's last tick.
pub(super) fn time() -> u64 {
    if KEEPS.load(Ordering::Relaxed) { os::nanoseconds() } else { os::nanoseconds_at_tick() }
}

/// Notes a sample that was taken. Returns its place among the last ones, if they are kept.
pub(super) fn note_allocated(requested: usize, usable: usize, allocated: Moment) -> Option<Ticket> {
    if !KEEPS.load(Ordering::Relaxed) {
        return None;
    }
    let mut history = HISTORY.lock();
    if history.most == 0 {
        return None;
    }
    history.numbers += 1;
    let number = history.numbers;
    let node = history.take(Past { requested, usable, allocated, freed: None, number })?;
    history.recent.push(node);
    history.trim();
    Some(Ticket { node, number })
}

/// Notes that a sample is freed by the calling thread.
pub(super) fn note_freed(requested: usize, usable: usize, allocated: Moment, at: Option<Ticket>) {
    if KEEPS.load(Ordering::Relaxed) {
        note_end(requested, usable, allocated, at, here);
    }
}

/// Notes that a sample was freed some time ago. It is not known where, nor by which thread.
pub(super) fn note_freed_before(
    requested: usize,
    usable: usize,
    allocated: Moment,
    at: Option<Ticket>,
) {
    if KEEPS.load(Ordering::Relaxed) {
        note_end(requested, usable, allocated, at, somewhere);
    }
}

#[cold]
#[inline(never)]
fn note_end(
    requested: usize,
    usable: usize,
    allocated: Moment,
    at: Option<Ticket>,
    moment: fn() -> Option<Moment>,
) {
    // A stack takes time, and its site stays for ever.
    if !HISTORY.lock().wants(at) {
        return;
    }
    let freed = moment();
    if freed.is_none() {
        return;
    }
    let mut history = HISTORY.lock();
    if let Some((node, past)) = history.recent_at(at) {
        node.past.set(Some(Past { freed, ..past }));
    }
    if history.log_since.is_some() {
        let past = Past { requested, usable, allocated, freed, number: 0 };
        let node = history.take(past);
        node.into_iter().for_each(|node| history.log.push(node));
    }
}

/// Returns the present moment, with the stack and the thread that are running. `None`: there is no
/// memory for the stack.
fn here() -> Option<Moment> {
    let mut room = backtrace::room::<{ DEEPEST + MOST_OWN }>();
    let site = sites::site_beside(backtrace::take(&mut room, stack_depth::most(), Call::Free))?;
    let (thread, name) = who();
    Some(Moment { time: os::nanoseconds(), thread, name, site })
}

/// Returns the present moment, without a stack, and of no thread.
fn somewhere() -> Option<Moment> {
    let (thread, name) = Default::default();
    Some(Moment { time: os::nanoseconds(), thread, name, site: sites::site_beside(&[])? })
}

/// Returns how many of the last samples are kept. Negative: all.
pub(crate) fn most() -> isize {
    HISTORY.lock().most
}

/// Sets how many of the last samples are kept, and returns how many were.
pub(crate) fn set_most(most: isize) -> isize {
    let mut history = HISTORY.lock();
    let before = core::mem::replace(&mut history.most, most);
    history.trim();
    history.note_keeps();
    before
}

/// Begins a log of the samples that are freed. Returns `false` if one is kept already.
pub(crate) fn begin_log() -> bool {
    let mut history = HISTORY.lock();
    if history.log_since.is_some() {
        return false;
    }
    history.log_since = Some(os::nanoseconds());
    history.note_keeps();
    true
}

/// Ends the log, and returns it. `None`: none was kept.
pub(crate) fn end_log() -> Option<Log> {
    let mut history = HISTORY.lock();
    let since = history.log_since.take()?;
    history.note_keeps();
    let list = core::mem::replace(&mut history.log, List::new());
    Some(Log { list, since, until: os::nanoseconds() })
}

/// A log that has ended.
pub(crate) struct Log {
    list: List,
    /// When it began and ended, in nanoseconds of the monotonic clock.
    pub(crate) since: u64,
    pub(crate) until: u64,
}

impl Log {
    /// Returns the samples, in the order in which they were freed.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Past> {
        let nodes = core::iter::successors(self.list.first, |node| node.next.get());
        nodes.filter_map(|node| node.past.get())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        while let Some(node) = self.list.pop() {
            HISTORY.lock().put(node);
        }
    }
}

/// Whether a thread looks at the last samples.
static IS_SEEN: AtomicBool = AtomicBool::new(false);

/// Calls `see` with each of the last samples, the oldest first, under no lock. Samples that are
/// taken meanwhile are not among them. Returns `false`, and does nothing, if another thread does
/// the same.
pub(crate) fn for_each_recent(mut see: impl FnMut(Past)) -> bool {
    // Acquire: pairs with the Release below.
    if IS_SEEN.swap(true, Ordering::Acquire) {
        return false;
    }
    // Out of the list, no sample is forgotten meanwhile.
    let mut seen = core::mem::replace(&mut HISTORY.lock().recent, List::new());
    let mut next = seen.first;
    while let Some(node) = next {
        next = node.next.get();
        let past = {
            let _history = HISTORY.lock();
            node.past.get()
        };
        past.into_iter().for_each(&mut see);
    }
    let mut history = HISTORY.lock();
    while let Some(node) = history.recent.pop() {
        seen.push(node);
    }
    history.recent = seen;
    history.trim();
    // Release: pairs with the Acquire above.
    IS_SEEN.store(false, Ordering::Release);
    true
}

/// Notes, in the child of a fork, that no other thread looks at the last samples. If one did in the
/// parent, they are lost. The log is the parent's: the child keeps none.
pub(crate) fn forget_in_child() {
    IS_SEEN.store(false, Ordering::Relaxed);
    let mut history = HISTORY.lock();
    history.log_since = None;
    history.note_keeps();
    let log = core::mem::replace(&mut history.log, List::new());
    // As they are linked: a log may be long.
    if let (Some(first), Some(last)) = (log.first, log.last) {
        history.free.put_linked(first, last);
    }
}

impl Node {
    fn make() -> Option<&'static Node> {
        let memory = metadata::allocate(size_of::<Node>(), align_of::<Node>())?.cast::<Node>();
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(Node { past: Cell::new(None), next: Cell::new(None) }) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }
}

impl Recycled for Node {
    fn next_free(&self) -> &Cell<Option<&'static Node>> {
        &self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocated(n: u64) -> Moment {
        let site = sites::site_beside(&[0x7001]).expect("memory");
        Moment { time: n, thread: n, name: NameIndex::default(), site }
    }

    /// There is one history, so this is one test.
    #[test]
    fn the_last_samples_and_the_log_tell_what_was_freed() {
        let times = || {
            let mut times = std::vec::Vec::new();
            assert!(
                for_each_recent(|past| times.push((past.allocated.time, past.freed.is_some())))
            );
            times
        };
        assert!(note_allocated(8, 8, allocated(1)).is_none(), "nothing is kept");
        assert_eq!((set_most(3), most()), (0, 3));
        let tickets: std::vec::Vec<_> =
            (1..=5).map(|n| note_allocated(8, 8, allocated(n)).expect("memory")).collect();
        assert_eq!(times(), [(3, false), (4, false), (5, false)]);
        // The first one has gone, and another one uses its node.
        note_freed(8, 8, allocated(1), tickets.first().copied());
        note_freed(8, 8, allocated(4), tickets.get(3).copied());
        assert_eq!(times(), [(3, false), (4, true), (5, false)]);
        assert!(for_each_recent(|_| assert!(!for_each_recent(|_| ()))));
        set_most(1);
        assert_eq!(times(), [(5, false)]);

        assert!(end_log().is_none() && begin_log() && !begin_log());
        set_most(0);
        note_freed(100, 112, allocated(7), None);
        note_freed(200, 224, allocated(8), None);
        let log = end_log().expect("a log");
        let sizes: std::vec::Vec<_> = log.samples().map(|past| past.requested).collect();
        assert_eq!(sizes, [100, 200]);
        assert!(log.since <= log.until);
        let freed = log.samples().next().and_then(|past| past.freed).expect("it was freed");
        assert!(freed.time >= log.since && !freed.site.frames().is_empty());
        note_freed(300, 320, allocated(9), None);
        assert!(times().is_empty() && end_log().is_none());

        drop(log);
        let free = || {
            let first = HISTORY.lock().free.first();
            core::iter::successors(first, |node| node.next.get()).count()
        };
        let before = free();
        assert!(begin_log());
        (0..2).for_each(|n| note_freed(8, 8, allocated(n), None));
        assert_eq!(free(), before - 2);
        forget_in_child();
        assert_eq!(free(), before, "the nodes are free");
        note_freed(8, 8, allocated(9), None);
        assert!(free() == before && end_log().is_none(), "nothing is kept");
        assert!(begin_log() && end_log().is_some_and(|log| log.samples().next().is_none()));
    }
}
