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

use super::LONG_FRAME;
use super::callers::Callers;
use super::machine::{Registers, stripped};
use super::rule::Plain;
use crate::back::metadata;
use crate::ground::os;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The most frames that are kept of a walk: those of the longest stack of a sample by default, and
/// the allocator's own ones.
const FRAMES: usize = 128 + super::MOST_OWN;
/// Records of threads, a power of two. A record is shared by threads, and the last one has it.
const RECORDS: usize = 64;

static LAST: [AtomicPtr<LastWalk>; RECORDS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; RECORDS];

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
    /// The words of the frame: where the caller's begins. 0: nothing is known of it.
    words: u16,
    back: u16,
    /// [`IN_REGISTER`]: it has not changed.
    frame: u16,
    /// Whether all of this is so with this frame pointer only.
    is_by_frame: bool,
    is_own: bool,
}

const IN_REGISTER: u16 = u16::MAX;
const _: () = assert!(LONG_FRAME / size_of::<usize>() < IN_REGISTER as usize);

impl Frame {
    #[inline(always)]
    fn new(at: &Registers, is_own: bool, step: Option<(Plain, Registers)>) -> Frame {
        let Some((step, caller)) = step else {
            let (words, back, frame, is_by_frame) = (0, 0, 0, false);
            return Frame { at: *at, words, back, frame, is_by_frame, is_own };
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
        if bytes == 0
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
    frames: UnsafeCell<[Frame; FRAMES]>,
}

impl LastWalk {
    /// Returns the record of the calling thread. Returns `None` without memory.
    #[inline(always)]
    fn of_thread() -> Option<&'static LastWalk> {
        // Fibonacci hashing: the records of threads lie at multiples of large powers of two.
        let mixed = (os::thread_address() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = LAST.get(mixed as usize % RECORDS)?;
        // SAFETY: what is stored there is never unmapped. Acquire: pairs with the Release in
        // `make`.
        unsafe { place.load(Ordering::Acquire).as_ref() }.or_else(|| LastWalk::make(place))
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
    record: Option<&'static LastWalk>,
    frames: &'static mut [Frame],
    /// The new frames, which are the first ones of the array.
    count: usize,
    /// Where the frames that are the same begin and end.
    run: usize,
    next: usize,
    /// The highest stack pointer of all frames.
    highest: usize,
}

impl Known {
    /// Knows nothing and notes nothing.
    #[inline(always)]
    pub(super) fn nothing() -> Known {
        Known { record: None, frames: &mut [], count: 0, run: 0, next: 0, highest: 0 }
    }

    /// Returns what is known of the calling thread's last walk.
    #[inline(always)]
    pub(super) fn of_thread() -> Known {
        let Some(record) = LastWalk::of_thread() else { return Known::nothing() };
        // A signal's handler may have interrupted a walk. Acquire: pairs with the Release in `end`.
        if record.is_taken.swap(true, Ordering::Acquire) {
            return Known::nothing();
        }
        // SAFETY: this walk has taken the record.
        let frames = unsafe { &mut *record.frames.get() };
        let forgotten = FORGOTTEN.load(Ordering::Relaxed);
        if record.forgotten.swap(forgotten, Ordering::Relaxed) != forgotten {
            record.used.store(0, Ordering::Relaxed);
        }
        let begin = FRAMES.saturating_sub(record.used.load(Ordering::Relaxed) as usize);
        let highest = frames.last().map_or(0, |frame| frame.at.stack);
        Known { record: Some(record), frames, count: 0, run: begin, next: begin, highest }
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
    /// walk, which `callers` see. Returns the last one of them, or `None` if no more are wanted.
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
            if !known.is_own {
                let others = self.frames.get(self.next + 1..).unwrap_or_default().iter();
                let mut count = 0;
                for (caller, place) in others.zip(callers.places()) {
                    if caller.is_own {
                        break;
                    }
                    let Some(of_caller) = last.lead_to(caller, frame) else { break };
                    place.write(caller.at.back);
                    (last, frame, count) = (caller, of_caller, count + 1);
                }
                callers.count_written(count);
                self.next += count;
            }
            let caller = self.frames.get(self.next + 1);
            match caller.and_then(|caller| last.lead_to(caller, frame)) {
                Some(of_caller) => (self.next, frame) = (self.next + 1, of_caller),
                None => return Some(Registers { frame, ..last.at }),
            }
        }
    }

    /// Notes a frame, and the step from it to that of its caller, if one is known. Frames are noted
    /// the innermost first.
    #[inline(always)]
    pub(super) fn note(&mut self, at: &Registers, is_own: bool, step: Option<(Plain, Registers)>) {
        if step.is_none() && self.run != self.next {
            // The outermost one, which is known.
            return;
        }
        self.leave_run();
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
        *free = Frame::new(at, is_own, step);
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
        let Some(record) = self.record else { return };
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
    use super::super::{DEEPEST, room, walk_from};
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    /// Returns the callers' return addresses, as a walk finds them that knows of the last one, and
    /// as one does that knows nothing.
    #[inline(never)]
    fn both_ways() -> [Vec<usize>; 2] {
        let walk = |known: Known| {
            let mut stack = room::<DEEPEST>();
            walk_from(Registers::here(), Callers::new(&mut stack, DEEPEST), known).found().to_vec()
        };
        // The first address is in this function.
        [true, false].map(|knows| {
            let mut found = walk(if knows { Known::of_thread() } else { Known::nothing() });
            found.remove(0);
            found
        })
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
    fn a_walk_that_interrupts_another_one_is_right() {
        let [known, plain] = both_ways();
        assert_eq!(known, plain);
        let interrupted = Known::of_thread();
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
            let known = Known { frames, highest: base + 128, ..Known::nothing() };
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
        world.known.note(&at(0x5000, stack + 32), false, None);
        world.known.note(&at(0x5001, stack + 32), false, None);
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
        let step = Rule::Step(Step { base, offset: 16, frame, back, is_own: false });
        world.known.note(&at, true, step.pack().plain().map(|step| (step, caller)));
        assert_eq!((world.known.count, world.known.move_together()), (3, 0));
        let last = world.known.frames[2];
        assert_eq!((last.at, last.words, last.back, last.frame), (at, 2, 1, IN_REGISTER));
        assert!(last.is_by_frame && last.is_own);
        let firsts = [0, 1].map(|n: usize| world.known.frames[n].at.back);
        assert_eq!(firsts, BACKS[..2]);
    }
}
