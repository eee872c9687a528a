//! The protocol of remote frees: blocks that are returned to a slab whose guard is another.
//!
//! A slab is *guarded* by one lock at a time: that of the thread cache that owns it, or that of its
//! arena's bin. Only the holder of that lock touches the slab's free bits, its count and its list.
//! All other threads free through the words here, without a lock and without touching the block.
//!
//! ```text
//!   state  = │ generation:32 │ owner cache:24 │ … │ PENDING:1 │ kind:2 │
//!
//!   FREE ──birth──▶ OWNED ──orphan──▶ ORPHAN ──adopt──▶ OWNED        (PENDING is kept)
//!     ▲               │                  │
//!     └───release─────┴────release───────┘      generation + 1, only without PENDING
//! ```
//!
//! *Freer*: its block is still allocated, so the generation stands. The freer sets the block's bit
//! in a remote word (a bit already set is a double free), then reads the state. If the generation
//! has changed or PENDING is set, it is finished. Else it tries to set PENDING. The winner pushes
//! the slab on the pending stack of the guard that the state named, and touches nothing afterwards.
//!
//! *Drainer*, under its lock: takes the whole stack in one swap, so there is no ABA. For each slab
//! it reads the link first. If it guards the slab, it clears PENDING, then swaps every remote word
//! into the free words. If not, it forwards the slab, PENDING kept, to its present guard.
//!
//! *Release*: by the guard, when all blocks are free, and only from PENDING = 0. A failure means
//! that a push is under way. *Orphan* and *adopt* keep PENDING: a slab that lies on the stack of a
//! cache that gave it up is forwarded when that stack is drained, by the decay pass or by the
//! cache's next user.
//!
//! Why no wake-up is lost: both sides do a read-modify-write on the same word. If the drainer's
//! swap misses a bit, the freer's OR comes after the swap in that word's order and so reads from it
//! (or from a later OR, a release sequence): Release of the swap pairs with Acquire of the OR. The
//! drainer cleared PENDING before its swap, so the freer's read of the state sees it cleared, and
//! the freer pushes.

use crate::ground::sync::seam::{AtomicPtr, AtomicU64, Ordering};

const KIND: u64 = 0b11;
const FREE: u64 = 0;
const OWNED: u64 = 1;
const ORPHAN: u64 = 2;
const PENDING: u64 = 1 << 2;
const OWNER_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 32;

/// The largest number that names a cache.
pub(crate) const MAX_OWNER: u32 = (1 << 24) - 1;

/// Whose lock guards a slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Guard {
    /// The cache with this number.
    Owner(u32),
    /// The bin of the slab's class in its arena.
    Bin,
}

/// One reading of a slab's state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    fn new(generation: u32, guard: Guard) -> State {
        let generation = u64::from(generation) << GENERATION_SHIFT;
        match guard {
            Guard::Owner(id) => State(generation | u64::from(id) << OWNER_SHIFT | OWNED),
            Guard::Bin => State(generation | ORPHAN),
        }
    }

    fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    fn guard(self) -> Option<Guard> {
        match self.0 & KIND {
            OWNED => Some(Guard::Owner((self.0 >> OWNER_SHIFT) as u32 & MAX_OWNER)),
            ORPHAN => Some(Guard::Bin),
            _ => None,
        }
    }
}

/// The part of a slab's record that threads write without the guard's lock: a line of its own.
#[repr(C, align(64))]
pub(crate) struct Remote {
    state: AtomicU64,
    /// The next slab on a pending stack. Belongs to the thread that set PENDING, until drained.
    next: AtomicPtr<Remote>,
    /// One bit for each block that was freed remotely.
    words: &'static [AtomicU64],
}

// A line of its own in each record.
const _: () = assert!(size_of::<Remote>() == 64 && align_of::<Remote>() == 64);

/// Slabs that have remote frees, for one guard and one class.
pub(crate) struct PendingStack {
    head: AtomicPtr<Remote>,
}

/// What a remote free did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// It was the first of a series, so it pushed the slab on its guard's stack.
    pub(crate) pushed: bool,
    /// How often another thread came between.
    pub(crate) retries: u32,
}

/// The bits of a word that were freed twice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DoubleFree(pub(crate) u64);

impl Remote {
    /// The part of a new record that threads share: free, generation 0.
    #[cfg(not(loom))]
    pub(crate) const fn new(words: &'static [AtomicU64]) -> Remote {
        let next = AtomicPtr::new(core::ptr::null_mut());
        Remote { state: AtomicU64::new(FREE), next, words }
    }

    /// Whose lock guards the slab; `None` for a free record. Stable only under that lock.
    #[inline]
    pub(crate) fn guard(&self) -> Option<Guard> {
        State(self.state.load(Ordering::Relaxed)).guard()
    }

    /// Whether the cache `id` guards the slab. The holder of that cache's lock may rely on `true`.
    #[inline]
    pub(crate) fn is_owned_by(&self, id: u32) -> bool {
        const MASK: u64 = (MAX_OWNER as u64) << OWNER_SHIFT | KIND;
        let mine = u64::from(id) << OWNER_SHIFT | OWNED;
        // Relaxed: only the holder of that cache's lock can make it true or untrue.
        self.state.load(Ordering::Relaxed) & MASK == mine
    }

    /// Whether another cache than `id` guards the slab. A moment later a bin may guard it.
    #[inline]
    pub(crate) fn is_owned_by_other(&self, id: u32) -> bool {
        // Relaxed: only the holder of the owner's lock can change it; the result may be old.
        let state = self.state.load(Ordering::Relaxed);
        state & KIND == OWNED && (state >> OWNER_SHIFT) as u32 & MAX_OWNER != id
    }

    /// FREE → guarded. The caller made the record ready, and no other thread uses it.
    pub(crate) fn birth(&self, guard: Guard) {
        let generation = State(self.state.load(Ordering::Relaxed)).generation();
        // Release: pairs with the Acquire in `free` and `drain`, which see the record made ready.
        self.state.store(State::new(generation, guard).0, Ordering::Release);
    }

    /// Hands the slab from one guard to another and keeps PENDING. The caller holds both locks.
    pub(crate) fn transfer(&self, to: Guard) {
        let mut now = State(self.state.load(Ordering::Relaxed));
        loop {
            let then = State::new(now.generation(), to).0 | now.0 & PENDING;
            // AcqRel: Release pairs with the Acquire of the next holder's reads of the state.
            let done =
                self.state.compare_exchange(now.0, then, Ordering::AcqRel, Ordering::Relaxed);
            match done {
                Ok(_) => return,
                Err(other) => now = State(other),
            }
        }
    }

    /// Guarded → FREE. All blocks are free. `false`: a push is under way, and nothing changed.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        let now = State(self.state.load(Ordering::Relaxed));
        if now.is_pending() {
            return false;
        }
        let then = u64::from(now.generation().wrapping_add(1)) << GENERATION_SHIFT | FREE;
        // AcqRel: Release pairs with the Acquire load in `free`, which then sees the new
        // generation.
        self.state.compare_exchange(now.0, then, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Frees the blocks of `mask` in word `word`. `stack_of` returns each guard's stack.
    ///
    /// # Safety
    /// The caller owns these blocks, and the record lives for ever.
    #[inline(always)]
    pub(crate) unsafe fn free(
        &self,
        word: usize,
        mask: u64,
        stack_of: impl Fn(Guard) -> Option<*const PendingStack>,
    ) -> Result<Freed, DoubleFree> {
        // Relaxed: the caller's block is allocated, so the generation cannot change until the OR.
        let born = State(self.state.load(Ordering::Relaxed));
        if born.guard().is_none() {
            return Err(DoubleFree(mask));
        }
        let born = born.generation();
        let Some(remote) = self.words.get(word) else { return Ok(Freed::default()) };
        // AcqRel: Release hands the block's memory to the drainer's swap; Acquire pairs with the
        // Release of a swap that came before, so that the load below sees PENDING cleared.
        let before = remote.fetch_or(mask, Ordering::AcqRel);
        if before & mask != 0 {
            return Err(DoubleFree(before & mask));
        }
        // Acquire: pairs with `release`, `birth`, `transfer` and the clearing in `drain`.
        let now = State(self.state.load(Ordering::Acquire));
        if now.generation() != born || now.is_pending() {
            return Ok(Freed::default());
        }
        Ok(self.announce(now, stack_of))
    }

    /// The rest of [`Remote::free`] after the bit is set and the slab was seen not PENDING. Sets
    /// PENDING and pushes the slab on its guard's stack, unless another thread does.
    #[inline(never)]
    fn announce(
        &self,
        seen: State,
        stack_of: impl Fn(Guard) -> Option<*const PendingStack>,
    ) -> Freed {
        let (mut now, mut retries) = (seen, 0);
        loop {
            let then = now.0 | PENDING;
            // AcqRel: pairs with the clearing in `drain`. Of the threads that find the slab not
            // PENDING, one wins and owns its link.
            let done =
                self.state.compare_exchange(now.0, then, Ordering::AcqRel, Ordering::Acquire);
            match done {
                Ok(_) => break,
                Err(other) => now = State(other),
            }
            retries += 1;
            if now.generation() != seen.generation() || now.is_pending() {
                return Freed { pushed: false, retries };
            }
        }
        if let Some(stack) = now.guard().and_then(stack_of) {
            // SAFETY: stacks live as long as records do: for ever.
            retries += unsafe { &*stack }.push(self);
        }
        Freed { pushed: true, retries }
    }

    /// Takes the bits of one remote word. Called under the guard's lock, after PENDING was cleared.
    #[inline]
    pub(crate) fn take_word(&self, word: usize) -> u64 {
        // AcqRel: Acquire pairs with the Release of the ORs that set the bits; Release pairs with
        // the Acquire of an OR that comes after.
        self.words.get(word).map_or(0, |remote| remote.swap(0, Ordering::AcqRel))
    }

    /// The bits of one remote word at this moment, for a misuse report.
    #[cfg(not(loom))]
    pub(crate) fn seen(&self, word: usize) -> u64 {
        self.words.get(word).map_or(0, |remote| remote.load(Ordering::Relaxed))
    }
}

impl PendingStack {
    /// An empty stack.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> PendingStack {
        PendingStack { head: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Whether the stack is empty, as far as one look tells.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Pushes a slab. Returns how often another thread came between.
    fn push(&self, slab: &Remote) -> u32 {
        let record = core::ptr::from_ref(slab).cast_mut();
        let mut head = self.head.load(Ordering::Relaxed);
        let mut retries = 0;
        loop {
            slab.next.store(head, Ordering::Relaxed);
            // Release: pairs with the Acquire swap in `drain`, which reads the link.
            let done =
                self.head.compare_exchange(head, record, Ordering::Release, Ordering::Relaxed);
            match done {
                Ok(_) => return retries,
                Err(other) => head = other,
            }
            retries += 1;
        }
    }

    /// Takes all slabs. Those that `me` guards have PENDING cleared and go to `take`, which must
    /// take all their remote words. The others are forwarded. The caller holds the lock of `me`.
    ///
    /// # Safety
    /// Records and stacks live for ever.
    pub(crate) unsafe fn drain(
        &self,
        me: Guard,
        mut take: impl FnMut(*const Remote),
        stack_of: impl Fn(*const Remote, Guard) -> Option<*const PendingStack>,
    ) {
        // Acquire: pairs with the Release in `push`.
        let mut next = self.head.swap(core::ptr::null_mut(), Ordering::Acquire);
        while !next.is_null() {
            let record: *const Remote = next;
            // SAFETY: what lies on a stack is a record, and records live for ever.
            let slab = unsafe { &*record };
            // The link first: once PENDING is cleared or the slab forwarded, others may write it.
            next = slab.next.load(Ordering::Relaxed);
            // Acquire: pairs with the Release in `transfer`.
            let guard = State(slab.state.load(Ordering::Acquire)).guard();
            if guard == Some(me) {
                // AcqRel: Release, through the swaps that follow, tells later freers that PENDING
                // is clear; Acquire pairs with the freer that set it.
                slab.state.fetch_and(!PENDING, Ordering::AcqRel);
                take(record);
            } else if let Some(stack) = guard.and_then(|guard| stack_of(record, guard)) {
                // SAFETY: stacks live for ever.
                unsafe { &*stack }.push(slab);
            }
        }
    }
}

#[cfg(all(test, loom))]
#[path = "remote_free_loom.rs"]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;

    fn remote() -> &'static Remote {
        let words = keep(Box::new([const { AtomicU64::new(0) }; 2]));
        keep(Box::new(Remote::new(words)))
    }

    fn stack() -> &'static PendingStack {
        keep(Box::new(PendingStack::new()))
    }

    /// Frees blocks of the first word. Every guard has the stack `to`.
    fn free(slab: &Remote, mask: u64, to: &'static PendingStack) -> Result<Freed, DoubleFree> {
        // SAFETY: records of these tests live for ever, and no other thread has their blocks.
        unsafe { slab.free(0, mask, |_| Some(core::ptr::from_ref(to))) }
    }

    fn drained(
        stack: &PendingStack,
        me: Guard,
        other: &'static PendingStack,
    ) -> Vec<*const Remote> {
        let mut slabs = Vec::new();
        let stack_of = |_, _| Some(core::ptr::from_ref(other));
        // SAFETY: no other thread uses the slabs of these tests, as if the test held every lock.
        unsafe { stack.drain(me, |slab| slabs.push(slab), stack_of) };
        slabs
    }

    #[test]
    fn a_state_says_who_guards_and_how_often_the_record_was_used() {
        for guard in [Guard::Owner(0), Guard::Owner(5), Guard::Owner(MAX_OWNER), Guard::Bin] {
            for generation in [0, 77, u32::MAX] {
                let state = State::new(generation, guard);
                assert_eq!((state.guard(), state.generation()), (Some(guard), generation));
                let pending = State(state.0 | PENDING);
                assert_eq!((pending.guard(), pending.generation()), (Some(guard), generation));
                assert!(pending.is_pending() && !state.is_pending());
            }
        }
        assert_eq!(State(FREE).guard(), None);
    }

    #[test]
    fn a_slab_has_one_guard() {
        let slab = remote();
        let owned = |id| [slab.is_owned_by(id), slab.is_owned_by_other(id)];
        assert_eq!((slab.guard(), owned(0), owned(7)), (None, [false; 2], [false; 2]));
        for id in [0, 7, MAX_OWNER] {
            slab.birth(Guard::Owner(id));
            assert_eq!((slab.guard(), owned(id)), (Some(Guard::Owner(id)), [true, false]));
            assert_eq!(owned(id ^ 1), [false, true]);
            assert_eq!(owned(id ^ 1 << 23), [false, true]);
            slab.transfer(Guard::Bin);
            assert_eq!((slab.guard(), owned(id)), (Some(Guard::Bin), [false; 2]));
            assert!(slab.release());
            assert_eq!((slab.guard(), owned(id)), (None, [false; 2]));
        }
        assert_eq!(State(slab.state.load(Ordering::Relaxed)).generation(), 3);
    }

    #[test]
    fn the_first_of_a_series_announces_the_slab_and_the_guard_takes_it() {
        let (slab, mine, other) = (remote(), stack(), stack());
        slab.birth(Guard::Owner(3));
        let first = Freed { pushed: true, retries: 0 };
        assert_eq!(free(slab, 0b1010, mine), Ok(first));
        assert_eq!(free(slab, 0b0101, mine), Ok(Freed::default()));
        assert!(!mine.is_empty() && !slab.release());
        assert_eq!((slab.seen(0), slab.seen(1), slab.seen(2)), (0b1111, 0, 0));
        assert_eq!(drained(mine, Guard::Owner(3), other), [core::ptr::from_ref(slab)]);
        assert!(mine.is_empty() && other.is_empty());
        assert_eq!((slab.take_word(0), slab.take_word(0), slab.take_word(2)), (0b1111, 0, 0));
        // Now another series begins.
        assert_eq!(free(slab, 0b1, mine), Ok(first));
        assert_eq!(drained(mine, Guard::Owner(3), other).len(), 1);
        assert!(slab.release());
    }

    #[test]
    fn several_slabs_wait_on_one_stack_and_those_of_another_guard_are_sent_on() {
        let (mine, other) = (stack(), stack());
        let slabs = [remote(), remote(), remote()];
        for slab in slabs {
            slab.birth(Guard::Owner(3));
            assert!(free(slab, 1, mine).unwrap().pushed);
        }
        slabs[1].transfer(Guard::Bin);
        assert!(!slabs[1].release(), "still announced");
        let [first, second, third] = slabs.map(core::ptr::from_ref);
        assert_eq!(drained(mine, Guard::Owner(3), other), [third, first]);
        assert!(mine.is_empty() && !other.is_empty());
        assert_eq!(drained(other, Guard::Bin, mine), [second]);
    }

    #[test]
    fn blocks_that_were_freed_before_are_named() {
        let (slab, mine) = (remote(), stack());
        assert_eq!(free(slab, 0b11, mine), Err(DoubleFree(0b11)), "of no slab");
        slab.birth(Guard::Bin);
        assert!(free(slab, 0b0110, mine).unwrap().pushed);
        assert_eq!(free(slab, 0b1100, mine), Err(DoubleFree(0b0100)));
    }
}
