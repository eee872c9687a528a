//! The frames of the last walk of each thread.
//!
//! Most walks of a thread differ in their first frames only. A frame with the return address and
//! the stack pointer of one of the last walk has its caller's values at the same places; where the
//! rule is about the frame pointer, with the same frame pointer. If the return address there is the
//! same too, the caller's frame is the next one of the last walk, and so on: no rule is looked up,
//! and the places are known before the values are.
//!
//! ```text
//!   0          count           run        next            FRAMES
//!   │ new ones │               │ the same │ not reached yet │
//! ```
//! In the end the new ones are moved to before the others. Frames that belong to no stack any more
//! may stay among them: they are compared like all others, so they lead nowhere.

use super::callers::Callers;
use super::machine::{Registers, stripped};
use super::rule::Packed;
use super::{Call, LONG_FRAME};
use crate::back::metadata;
use crate::ground::os;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The most frames that are kept of a walk: those of the longest stack of a sample by default, and
/// the allocator's own ones.
const FRAMES: usize = 128 + super::MOST_OWN;
/// Records of threads, a power of two. A record is shared by threads, and the last one has it.
const RECORDS: usize = 256;
/// Records of a thread for allocations, and for frees. Walks that begin at other stack pointers
/// have others: the program called another function, or from another depth.
const OF_CALL: usize = 4;

static LAST: [AtomicPtr<LastWalk>; RECORDS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; RECORDS];

/// After so many walks in a row with many new frames, which are more than half of the others, the
/// next [`PAUSE`] ones do without a record, which costs less.
const MOST_NEW: u32 = 4;
const PAUSE: u32 = 60;

/// Counts how often all frames were forgotten. Relaxed: it is changed before other threads begin.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

/// Forgets the frames of all threads.
pub(super) fn forget() {
    FORGOTTEN.fetch_add(1, Ordering::Relaxed);
}

/// A frame, and where the values of its caller's are, in words from the stack pointer.
#[derive(Clone, Copy)]
struct Frame {
    at: Registers,
    /// The words of the frame: where the caller's begins. 0: nothing is known of it, or [`NONE`].
    words: u16,
    back: u16,
    /// [`IN_REGISTER`]: it has not changed.
    frame: u16,
    /// Whether all of this is so with this frame pointer only.
    is_by_frame: bool,
    is_own: bool,
}

/// The frame has no caller.
const NONE: u16 = u16::MAX;
const IN_REGISTER: u16 = u16::MAX;
const _: () = assert!(LONG_FRAME / size_of::<usize>() < IN_REGISTER as usize);

impl Frame {
    #[inline(always)]
    fn new(at: &Registers, rule: Packed, caller: Option<Registers>) -> Frame {
        let is_own = rule.is_own();
        let Some((step, caller)) = rule.plain().zip(caller) else {
            let words = if rule.is_end() { NONE } else { 0 };
            return Frame { at: *at, words, back: 0, frame: 0, is_by_frame: false, is_own };
        };
        let words = (caller.stack.wrapping_sub(at.stack) / size_of::<usize>()) as u16;
        let place = |offset: isize| words.wrapping_add_signed(offset as i16);
        Frame {
            at: *at,
            words,
            back: place(step.back()),
            frame: step.frame().map_or(IN_REGISTER, place),
            is_by_frame: step.is_by_frame(),
            is_own,
        }
    }

    /// Returns the frame pointer of the caller, if the caller's frame is this one. `frame` is the
    /// frame pointer now. The frame must be on the stack, and the other one at an address of the
    /// same stack.
    #[inline(always)]
    fn lead_to(&self, caller: &Frame, frame: usize) -> Option<usize> {
        let bytes = usize::from(self.words) * size_of::<usize>();
        if matches!(self.words, 0 | NONE)
            || self.at.stack.wrapping_add(bytes) != caller.at.stack
            || self.is_by_frame && self.at.frame != frame
        {
            return None;
        }
        let word = |offset: u16| {
            let stack = core::ptr::with_exposed_provenance::<usize>(self.at.stack);
            // SAFETY: a word of a frame that has not returned, because it is below the caller's.
            unsafe { stack.wrapping_add(usize::from(offset)).read_volatile() }
        };
        let is_there = stripped(word(self.back)) == caller.at.back;
        let next = if self.frame == IN_REGISTER { frame } else { word(self.frame) };
        is_there.then_some(next)
    }
}

/// The frames of a walk, of which all bytes may be zero: then there are none.
struct LastWalk {
    /// Whether a walk uses the record.
    is_taken: AtomicBool,
    /// What [`FORGOTTEN`] was.
    forgotten: AtomicU32,
    /// How many frames there are, at the end of the array.
    used: AtomicU32,
    /// How many walks in a row had many new frames, up to [`MOST_NEW`].
    new: AtomicU32,
    /// How many walks do without the record from now on.
    pause: AtomicU32,
    frames: UnsafeCell<[Frame; FRAMES]>,
}

impl LastWalk {
    /// Returns the record of the calling thread for a walk that begins at a stack pointer. Returns
    /// `None` without memory.
    #[inline(always)]
    fn of_thread(call: Call, stack: usize) -> Option<&'static LastWalk> {
        // Fibonacci hashing: the records of threads lie at multiples of large powers of two.
        let mix = |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = (mix(os::thread_address()) as usize * 2 + call as usize) * OF_CALL;
        let place = LAST.get((first + mix(stack) as usize % OF_CALL) % RECORDS)?;
        // SAFETY: what is stored there is never unmapped. Acquire: pairs with the Release in
        // `make`.
        unsafe { place.load(Ordering::Acquire).as_ref() }.or_else(|| LastWalk::make(place))
    }

    /// Returns whether a walk does without the record.
    #[inline(always)]
    fn is_paused(&self) -> bool {
        let left = self.pause.load(Ordering::Relaxed);
        if left > 0 {
            // Relaxed, and no more than a guess where threads share the record.
            self.pause.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// Notes whether a walk had many new frames, if that is above 0. After a pause the first walk
    /// finds the frames of an old one, so the second one decides.
    #[inline(always)]
    fn judge(&self, more_new: isize) {
        let new = if more_new > 0 { self.new.load(Ordering::Relaxed) + 1 } else { 0 };
        let is_enough = new >= MOST_NEW;
        self.new.store(if is_enough { MOST_NEW - 2 } else { new }, Ordering::Relaxed);
        if is_enough {
            self.pause.store(PAUSE, Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn make(place: &AtomicPtr<LastWalk>) -> Option<&'static LastWalk> {
        // SAFETY: zeroes are a record without frames.
        let made = unsafe { metadata::allocate_zeroed::<LastWalk>() }?;
        // If another thread is faster, its record is replaced, and used no more. Release: pairs
        // with the Acquire in `of_thread`.
        place.store(core::ptr::from_ref(made).cast_mut(), Ordering::Release);
        Some(made)
    }
}

/// What a walk knows of the one before.
pub(super) struct Known {
    record: &'static LastWalk,
    frames: &'static mut [Frame],
    /// The new frames, which are the first ones of the array.
    count: usize,
    /// Where the frames that are the same begin and end.
    run: usize,
    next: usize,
    /// How many new frames there were, each counted twice, more than others.
    more_new: isize,
    /// The highest stack pointer of all frames.
    highest: usize,
}

impl Known {
    /// Returns what is known of the calling thread's last walk that began at a stack pointer like
    /// this one. Returns `None` if the walk is to do without.
    #[inline(always)]
    pub(super) fn of_thread(call: Call, stack: usize) -> Option<Known> {
        let record = LastWalk::of_thread(call, stack)?;
        if record.is_paused() {
            return None;
        }
        // A signal's handler may have interrupted a walk. Acquire: pairs with the Release in `end`.
        if record.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: this walk has taken the record.
        let frames = unsafe { &mut *record.frames.get() };
        let forgotten = FORGOTTEN.load(Ordering::Relaxed);
        if record.forgotten.load(Ordering::Relaxed) != forgotten {
            record.forgotten.store(forgotten, Ordering::Relaxed);
            record.used.store(0, Ordering::Relaxed);
        }
        let begin = FRAMES.saturating_sub(record.used.load(Ordering::Relaxed) as usize);
        let highest = frames.last().map_or(0, |frame| frame.at.stack);
        let (count, more_new) = (0, 0);
        Some(Known { record, frames, count, run: begin, next: begin, more_new, highest })
    }

    /// Returns whether a frame is one of the last walk, from which nothing but words below `end` is
    /// read.
    #[inline(always)]
    pub(super) fn has(&mut self, at: &Registers, end: usize) -> bool {
        if self.run != self.next {
            self.leave_run();
        }
        while let Some(frame) = self.frames.get(self.next) {
            if frame.at.stack >= at.stack {
                let is_there = frame.at.stack == at.stack && frame.at.back == at.back;
                return is_there && self.highest <= end;
            }
            self.next += 1;
            self.run = self.next;
        }
        false
    }

    /// Goes on from the frame of [`Known::has`] for as long as the frames are those of the last
    /// walk, which `callers` see. Returns the last one of them, or `None` if no more are wanted or
    /// there are none.
    #[inline(always)]
    pub(super) fn follow(
        &mut self,
        mut frame: usize,
        callers: &mut Callers<'_>,
    ) -> Option<Registers> {
        loop {
            let known = self.frames.get(self.next)?;
            if !callers.see(known.at.back, known.is_own) {
                return None;
            }
            let mut last = known;
            let mut others = self.frames.get(self.next + 1..).unwrap_or_default();
            // First a run of the allocator's own frames, then one of others.
            let mut count = 0;
            while let Some((caller, rest)) = others.split_first()
                && caller.is_own
                && let Some(of_caller) = last.lead_to(caller, frame)
            {
                (last, others, frame, count) = (caller, rest, of_caller, count + 1);
            }
            callers.count_own(count);
            let mut followed = count;
            count = 0;
            for (caller, place) in others.iter().zip(callers.places()) {
                if caller.is_own {
                    break;
                }
                let Some(of_caller) = last.lead_to(caller, frame) else { break };
                place.write(caller.at.back);
                (last, frame, count) = (caller, of_caller, count + 1);
            }
            callers.count_written(count);
            followed += count;
            self.next += followed;
            self.more_new -= followed.cast_signed();
            let caller = self.frames.get(self.next + 1);
            match caller.and_then(|caller| last.lead_to(caller, frame)) {
                Some(of_caller) => (self.next, frame) = (self.next + 1, of_caller),
                None if last.words == NONE => return None,
                None => return Some(Registers { frame, ..last.at }),
            }
        }
    }

    /// Notes a frame with its rule, which stays true, and its caller's frame, if a plain step leads
    /// there. Frames are noted the innermost first.
    #[inline(always)]
    pub(super) fn note(&mut self, at: &Registers, rule: Packed, caller: Option<Registers>) {
        if caller.is_none() && self.run != self.next {
            // The outermost one, which is known.
            return;
        }
        self.leave_run();
        self.more_new += 2;
        if self.frames.get(self.next).is_some_and(|next| next.at.stack == at.stack) {
            // What is noted takes its place.
            self.next += 1;
            self.run = self.next;
        }
        let last = self.count.checked_sub(1).and_then(|last| self.frames.get(last));
        // A signal's handler may have a stack of its own, above the one that it interrupted.
        let is_above = last.is_none_or(|last| last.at.stack < at.stack);
        let Some(free) = self.frames.get_mut(self.count) else { return };
        if self.count >= self.next || !is_above {
            return;
        }
        *free = Frame::new(at, rule, caller);
        self.count += 1;
    }

    /// Counts the frames that were the same as new ones, because another one follows.
    fn leave_run(&mut self) {
        while self.run < self.next {
            self.copy(self.run, self.count);
            (self.run, self.count) = (self.run + 1, self.count + 1);
        }
    }

    fn copy(&mut self, from: usize, to: usize) {
        if let Some(frame) = self.frames.get(from).copied()
            && let Some(place) = self.frames.get_mut(to)
        {
            *place = frame;
        }
    }

    /// Keeps the frames of this walk for the next one.
    #[inline(always)]
    pub(super) fn end(mut self) {
        let record = self.record;
        record.judge(self.more_new);
        let begin = self.move_together();
        record.used.store(FRAMES.saturating_sub(begin) as u32, Ordering::Relaxed);
        // Release: pairs with the Acquire in `of_thread`.
        record.is_taken.store(false, Ordering::Release);
    }

    /// Moves the new frames to before the others. Returns where the first one is.
    #[inline(always)]
    fn move_together(&mut self) -> usize {
        let begin = self.run - self.count;
        for n in (0..self.count).rev() {
            self.copy(n, n + begin);
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::{Base, Rule, Step};
    use super::super::{DEEPEST, room, walk_from, walk_with};
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    /// Returns the callers' return addresses, as a walk finds them that knows of the last one, and
    /// as one does that knows nothing.
    #[inline(never)]
    fn both_ways() -> [Vec<usize>; 2] {
        let walk = |known: Option<Known>| {
            let (mut stack, here) = (room::<DEEPEST>(), Registers::here());
            let callers = Callers::new(&mut stack, DEEPEST);
            let callers = match known {
                Some(known) => walk_with(known, here, callers),
                None => walk_from(here, callers),
            };
            // The first addresses are in these functions.
            callers.found()[2..].to_vec()
        };
        let stack = Registers::here().stack;
        LastWalk::of_thread(Call::Free, stack).expect("a record").pause.store(0, Ordering::Relaxed);
        [Known::of_thread(Call::Free, stack), None].map(walk)
    }

    const MOST: usize = 3000;

    /// Walks at the ends of random paths of calls, of functions with frames of different kinds.
    #[inline(never)]
    fn call(random: &mut u64, depth: usize, walks: &mut usize) -> usize {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = *random >> 33;
        if depth == 0 || *walks >= MOST || choice.is_multiple_of(8) {
            let [known, plain] = both_ways();
            assert_eq!(known, plain);
            *walks += 1;
            return known.len();
        }
        let calls = 1 + choice as usize / 8 % 3;
        let next = [of_bytes::<16>, of_bytes::<5000>, of_aligned, call][choice as usize / 24 % 4];
        (0..calls).map(|_| next(random, depth - 1, walks)).fold(0, usize::max)
    }

    #[inline(never)]
    fn of_bytes<const N: usize>(random: &mut u64, depth: usize, walks: &mut usize) -> usize {
        let bytes = core::hint::black_box([0u8; N]);
        call(random, depth, walks).max(usize::from(*core::hint::black_box(&bytes[0])))
    }

    /// Has a frame that is found by its frame pointer, because its stack pointer is aligned.
    #[inline(never)]
    fn of_aligned(random: &mut u64, depth: usize, walks: &mut usize) -> usize {
        #[repr(align(128))]
        struct Aligned([u8; 128]);
        let bytes = core::hint::black_box(Aligned([0; 128]));
        call(random, depth, walks).max(usize::from(core::hint::black_box(&bytes).0[0]))
    }

    #[test]
    fn what_is_known_of_the_last_walk_changes_no_stack() {
        let (mut random, mut walks, mut deepest) = (1, 0, 0);
        while walks < MOST {
            deepest = deepest.max(call(&mut random, 40, &mut walks));
        }
        assert!(deepest > 40, "{deepest}");
    }

    #[test]
    fn walks_with_mostly_new_frames_do_without_the_record_for_a_time() {
        // SAFETY: zeroes are a record without frames.
        let record = unsafe { Box::<LastWalk>::new_zeroed().assume_init() };
        let walk = |more_new| {
            let is_paused = record.is_paused();
            if !is_paused {
                record.judge(more_new);
            }
            is_paused
        };
        let paused = |more_new| (0..1000).filter(|_| walk(more_new)).count();
        assert_eq!([walk(1), walk(1), walk(1), walk(0)], [false; 4]);
        assert_eq!(
            [walk(9), walk(9), walk(9), walk(9), walk(-5)],
            [false, false, false, false, true]
        );
        // The rest of the pause, and then two walks after each.
        assert_eq!(paused(1), 59 + (1000 - 59) / 62 * 60 + (1000 - 59) % 62 - 2);
        record.pause.store(60, Ordering::Relaxed);
        assert_eq!(paused(-1), 60, "it is used again");
    }

    #[test]
    fn a_walk_that_interrupts_another_one_is_right() {
        let [known, plain] = both_ways();
        assert_eq!(known, plain);
        let interrupted = Known::of_thread(Call::Free, Registers::here().stack).expect("a record");
        let [other, plain] = both_ways();
        assert_eq!(other, plain);
        interrupted.end();
        assert_eq!(both_ways()[0].len(), known.len());
    }

    /// A stack of three frames of eight words each, which a walk has gone through.
    struct World {
        words: Box<[usize; 24]>,
        known: Known,
    }

    const BACKS: [usize; 3] = [0x1000, 0x2000, 0x3000];

    impl World {
        fn new(is_by_frame: bool, own: usize) -> World {
            let mut words = Box::new([0; 24]);
            let base = words.as_mut_ptr().expose_provenance();
            let frame = |n: usize| Frame {
                at: Registers { back: BACKS[n], stack: base + n * 64, frame: 70 + n },
                words: if n == 2 { 0 } else { 8 },
                back: 7,
                frame: 6,
                is_by_frame,
                is_own: n == own,
            };
            let frames = Box::leak(Box::new([0, 1, 2].map(frame)));
            // SAFETY: zeroes are a record without frames.
            let record = Box::leak(unsafe { Box::<LastWalk>::new_zeroed().assume_init() });
            let (count, run, next, more_new, highest) = (0, 0, 0, 0, base + 128);
            let known = Known { record, frames, count, run, next, more_new, highest };
            for n in 0..2 {
                (words[n * 8 + 7], words[n * 8 + 6]) = (BACKS[n + 1], 71 + n);
            }
            World { words, known }
        }

        /// Returns the return addresses that are known, and the frame pointer in the end.
        fn follow(&mut self, frame: usize) -> (Vec<usize>, Option<usize>) {
            let stack = self.words.as_ptr().addr();
            let first = Registers { back: BACKS[0], stack, frame };
            assert!(self.known.has(&first, stack + 128));
            let mut room = room::<DEEPEST>();
            let mut callers = Callers::new(&mut room, DEEPEST);
            callers.see(1, false);
            let last = self.known.follow(frame, &mut callers);
            (callers.found().to_vec(), last.map(|last| last.frame))
        }
    }

    #[test]
    fn frames_are_known_until_one_has_changed() {
        assert_eq!(World::new(false, 9).follow(5), (BACKS.to_vec(), Some(72)));
        assert_eq!(World::new(true, 9).follow(70), (BACKS.to_vec(), Some(72)));
        // The allocator's own frame is no caller, and those before it are none.
        assert_eq!(World::new(false, 1).follow(5), (BACKS[2..].to_vec(), Some(72)));
        assert_eq!(World::new(true, 9).follow(5), (BACKS[..1].to_vec(), Some(5)));
        let mut world = World::new(true, 9);
        world.words[6] = 5;
        assert_eq!(world.follow(70), (BACKS[..2].to_vec(), Some(5)), "another frame pointer");
        let mut world = World::new(false, 9);
        world.words[15] = 5;
        assert_eq!(world.follow(70), (BACKS[..2].to_vec(), Some(71)), "another return address");
        let mut world = World::new(false, 9);
        world.known.frames[1].at.stack += 8;
        assert_eq!(world.follow(70), (BACKS[..1].to_vec(), Some(70)), "there is one in between");
        let mut world = World::new(false, 9);
        world.known.frames[2].words = NONE;
        assert_eq!(world.follow(70), (BACKS.to_vec(), None), "there is no other");
    }

    #[test]
    fn nothing_is_known_of_other_frames_and_beyond_the_end() {
        let mut world = World::new(false, 9);
        let stack = world.words.as_ptr().addr();
        let at = |back, stack| Registers { back, stack, frame: 0 };
        assert!(!world.known.has(&at(BACKS[0], stack - 8), stack + 128));
        assert!(!world.known.has(&at(BACKS[1], stack), stack + 128));
        assert!(!world.known.has(&at(BACKS[0], stack), stack + 120));
        assert!(world.known.has(&at(BACKS[1], stack + 64), stack + 128));
        assert!(!world.known.has(&at(BACKS[2], stack + 136), stack + 200));
    }

    #[test]
    fn new_frames_are_kept_before_those_that_are_the_same() {
        let mut world = World::new(false, 9);
        let stack = world.words.as_ptr().addr();
        let at = |back, stack| Registers { back, stack, frame: 0 };
        let backs = |known: &Known| known.frames.iter().map(|f| f.at.back).collect::<Vec<_>>();
        assert!(!world.known.has(&at(0x5000, stack + 32), stack + 128));
        world.known.note(&at(0x5000, stack + 32), Rule::Unknown.pack(), None);
        world.known.note(&at(0x5001, stack + 32), Rule::Unknown.pack(), None);
        assert_eq!(backs(&world.known), [0x5000, 0x2000, 0x3000], "in the order of addresses");
        assert!(world.known.has(&at(BACKS[2], stack + 128), stack + 128));
        assert_eq!(world.known.move_together(), 1);
        assert_eq!(backs(&world.known)[1..], [0x5000, 0x3000]);
    }

    #[test]
    fn frames_that_are_the_same_are_kept_if_the_next_one_is_not_noted() {
        let mut world = World::new(false, 9);
        let (at, stack) = (world.follow(5).1, world.words.as_ptr().addr());
        let beyond = Registers { back: 0x9000, stack: stack + 136, frame: at.expect("a frame") };
        assert!(!world.known.has(&beyond, stack + 200));
        assert_eq!((world.known.count, world.known.run, world.known.next), (2, 3, 3));
    }

    #[test]
    fn frames_that_are_the_same_are_kept_behind_which_another_one_follows() {
        let mut world = World::new(false, 9);
        let (_, last) = world.follow(5);
        let stack = world.words.as_ptr().addr() + 128;
        let (at, caller) = (
            Registers { back: BACKS[2], stack, frame: last.expect("a frame") },
            Registers { back: 0x7000, stack: stack + 16, frame: 5 },
        );
        let (base, frame, back) = (Base::Frame, None, Some(-1));
        let step = Rule::Step(Step { base, offset: 16, frame, back, is_own: true });
        world.known.note(&at, step.pack(), Some(caller));
        assert_eq!((world.known.count, world.known.move_together()), (3, 0));
        let last = world.known.frames[2];
        assert_eq!((last.at, last.words, last.back, last.frame), (at, 2, 1, IN_REGISTER));
        assert!(last.is_by_frame && last.is_own);
        let firsts = [0, 1].map(|n: usize| world.known.frames[n].at.back);
        assert_eq!(firsts, BACKS[..2]);
    }
}
