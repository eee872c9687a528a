//! The slack of a block: its bytes between the requested size and its canary.
//!
//! ```text
//!   │ requested bytes … │ slack: 32 bytes are filled │ canary: tells the slack's length │
//! ```
//! The slack is filled when the block is handed out or resized, and compared when it is freed or
//! resized. So a write behind the requested bytes is found even if it ends before the canary. Its
//! length is mixed into the middle of the canary, so that what comes from either side changes other
//! bits first, and so is the operator of C++ that allocated the block. The filling is one odd byte,
//! because a string's end is a zero.
//!
//! Both take a straight line of instructions, whatever the length, because a branch on it cannot be
//! guessed. Short slack is in the last lines of the block, one of which ends with the canary. Each
//! line is written by one store, and compared by a load of the same line: a processor gives a load
//! the value of a store just before at once only if all its bytes come from that store.
//!
//! Other threads may look at the canary meanwhile. They see what it was before, or all of it
//! filled, or the canary, because its word is aligned and no store ends within it.

#[cfg(target_arch = "x86_64")]
pub(crate) use by_lines::{is_intact, write};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use by_words::{is_intact, write};

use crate::ground::operator::Operator;

/// Bits of a canary below the length of the slack.
const SHIFT: u32 = 24;

/// Bits of the length. A block's operator is above them.
const LENGTH: u32 = 15;

/// Bytes from the beginning of the slack that are filled and compared.
const COVERED: usize = 32;

/// Bytes of a canary, and of a word.
const WORD: usize = size_of::<u64>();

/// Returns the word with which the slack is filled.
pub(crate) const fn filling(secret: u64) -> u64 {
    (secret >> 56 | 1) * (u64::MAX / 0xff)
}

/// Returns the canary of a block in use. `seal` is the canary of one without slack.
#[inline(always)]
pub(crate) fn canary(seal: u64, slack: usize) -> u64 {
    seal ^ (slack as u64) << SHIFT
}

/// Returns how long the slack is by a canary. That is more than any block has if the canary is not
/// that of a block in use.
#[inline(always)]
pub(crate) fn told(seal: u64, canary: u64) -> usize {
    (canary ^ seal).rotate_right(SHIFT) as usize
}

/// Returns the bits by which the canary of a block of an operator differs from one of unknown
/// operator.
#[inline(always)]
pub(crate) fn mark(operator: Operator) -> u64 {
    (operator as u64) << (SHIFT + LENGTH)
}

/// Returns whether a word may be the last one of a block with this seal, in use or free, or one
/// that was never in use, in zeroed memory. Takes a straight line of instructions.
#[inline(always)]
pub(crate) fn may_be_last(seal: u64, word: u64) -> bool {
    const TOLD: u64 = ((1 << (LENGTH + 2)) - 1) << SHIFT;
    let differs = seal ^ word;
    // One of the three is 0. Their minimum takes no branch, which could not be guessed.
    (differs & !TOLD).min(!differs).min(word) == 0
}

/// As [`told`], for a block of any operator, which is also returned.
pub(crate) fn told_of_any(seal: u64, canary: u64) -> (usize, Operator) {
    let told = |operator| (told(seal ^ mark(operator), canary), operator);
    let mut all = Operator::ALL.into_iter().map(told);
    all.find(|(slack, _)| *slack >> LENGTH == 0).unwrap_or((usize::MAX, Operator::Unknown))
}

/// Fills the slack as [`write()`], but writes no byte beside it.
///
/// # Safety
/// As for [`write()`]; the block may be in use.
pub(crate) unsafe fn fill_exactly(end: *mut u8, slack: usize, filling: u64) {
    let first = end.wrapping_sub(slack);
    let Some(last) = slack.checked_sub(WORD) else {
        // SAFETY: the slack.
        return unsafe { first.write_bytes(filling as u8, slack) };
    };
    for place in (0..COVERED).step_by(WORD) {
        // SAFETY: a word of the slack.
        unsafe { first.wrapping_add(place.min(last)).cast::<u64>().write_unaligned(filling) };
    }
}

/// 16 bytes at a time.
#[cfg(target_arch = "x86_64")]
mod by_lines {
    use super::{COVERED, WORD};
    use crate::ground::checked::at;
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set_epi64x,
        _mm_set1_epi64x, _mm_storeu_si128,
    };

    const LINE: usize = size_of::<__m128i>();
    const _: () = assert!(COVERED == 2 * LINE);

    /// Where the two lines of a slack begin, counted from its own beginning, and which of their
    /// bytes belong to it. The last line of a block holds the word before the canary, and the
    /// canary. Lines begin at multiples of their length, if the slack is in the last two.
    #[derive(Clone, Copy)]
    struct Lines {
        begin: [i8; 2],
        belong: u32,
    }

    /// The lines for each length of a slack; those of the last one are for all longer ones too.
    static LINES: [Lines; COVERED + 1] = {
        let mut table = [Lines { begin: [0; 2], belong: 0 }; COVERED + 1];
        let mut slack = 0;
        while slack <= COVERED {
            // The canary begins here.
            let end = slack.cast_signed() as i8;
            let last = end - WORD as i8;
            table[slack].begin = if slack <= WORD {
                [last, last]
            } else if slack <= LINE + WORD {
                [last - LINE as i8, last]
            } else {
                [0, end - LINE as i8]
            };
            let mut place = 0;
            while place < 2 * LINE {
                let byte = table[slack].begin[place / LINE] + (place % LINE) as i8;
                if 0 <= byte && byte < end {
                    table[slack].belong |= 1 << place;
                }
                place += 1;
            }
            slack += 1;
        }
        table
    };

    #[inline(always)]
    fn lines(slack: usize) -> &'static Lines {
        // SAFETY: the table goes as far.
        unsafe { at(&LINES, slack.min(COVERED)) }
    }

    /// Returns the addresses of the lines of a slack.
    #[inline(always)]
    fn places(end: *const u8, slack: usize, lines: &Lines) -> [*const u8; 2] {
        let first = end.wrapping_sub(slack);
        lines.begin.map(|begin| first.wrapping_offset(begin.into()))
    }

    #[inline(always)]
    fn line_of(filling: u64) -> __m128i {
        // SAFETY: all x86-64 processors have SSE2.
        unsafe { _mm_set1_epi64x(filling.cast_signed()) }
    }

    /// Returns which bytes of a line are those of `filling`.
    ///
    /// # Safety
    /// The line must be memory that the caller may read.
    #[inline(always)]
    unsafe fn equal(line: *const u8, filling: __m128i) -> u32 {
        // SAFETY: the caller's promise.
        let line = unsafe { _mm_loadu_si128(line.cast()) };
        // SAFETY: all x86-64 processors have SSE2.
        let equal = unsafe { _mm_cmpeq_epi8(line, filling) };
        // SAFETY: as above.
        unsafe { _mm_movemask_epi8(equal) }.cast_unsigned()
    }

    /// Fills the slack of a block that is handed out, and writes its canary. The canary may read as
    /// filled meanwhile.
    ///
    /// # Safety
    /// `end` must be the address of the canary of a free block that belongs to the caller, whose
    /// length is a multiple of 16, and `slack` shorter than the block before the canary.
    #[inline(always)]
    pub(crate) unsafe fn write(end: *mut u8, slack: usize, filling: u64, canary: u64) {
        for line in places(end, slack, lines(slack)) {
            // SAFETY: 16 bytes of the block.
            unsafe { _mm_storeu_si128(line.cast_mut().cast(), line_of(filling)) };
        }
        // SAFETY: all x86-64 processors have SSE2.
        let last = unsafe { _mm_set_epi64x(canary.cast_signed(), filling.cast_signed()) };
        // SAFETY: the last 16 bytes of the block.
        unsafe { _mm_storeu_si128(end.wrapping_sub(WORD).cast(), last) };
    }

    /// Returns whether the slack reads as it was filled.
    ///
    /// # Safety
    /// As for [`write()`], but the block may be in use.
    #[inline(always)]
    pub(crate) unsafe fn is_intact(end: *const u8, slack: usize, filling: u64) -> bool {
        // SAFETY: 16 bytes of the block each.
        let equal = |line| unsafe { equal(line, line_of(filling)) };
        let lines = lines(slack);
        let [first, second] = places(end, slack, lines).map(equal);
        !(first | second << LINE) & lines.belong == 0
    }
}

/// 8 bytes at a time, for processors of other kinds.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod by_words {
    use super::{COVERED, WORD, fill_exactly};

    /// The addresses of the words of a slack of which none begins behind `last`.
    #[inline(always)]
    fn words(end: *const u8, slack: usize, last: usize) -> [*const u64; COVERED / WORD] {
        let first = end.wrapping_sub(slack);
        core::array::from_fn(|n| first.wrapping_add(last.min(n * WORD)).cast())
    }

    /// Fills the slack of a block that is handed out, and writes its canary.
    ///
    /// # Safety
    /// `end` must be the address of the canary of a free block that belongs to the caller, and
    /// `slack` no longer than the block before it.
    #[inline(always)]
    pub(crate) unsafe fn write(end: *mut u8, slack: usize, filling: u64, canary: u64) {
        // SAFETY: the caller's promise.
        unsafe { fill_exactly(end, slack, filling) };
        // SAFETY: the block's last word, which is aligned.
        unsafe { end.cast::<u64>().write_unaligned(canary) };
    }

    /// Returns whether the slack reads as it was filled.
    ///
    /// # Safety
    /// `end` must be the address of the canary of a block that belongs to the caller, and `slack`
    /// no longer than the block before it.
    #[inline(always)]
    pub(crate) unsafe fn is_intact(end: *const u8, slack: usize, filling: u64) -> bool {
        let mut differs = 0;
        for word in words(end, slack, slack.saturating_sub(WORD)) {
            // SAFETY: a word that begins in the slack or at its end, and the canary follows it.
            differs |= u64::from_le(unsafe { word.read_unaligned() }) ^ filling;
        }
        // If the slack is shorter than a word, all these words are one, which ends in the canary.
        // Two shifts, because one by 64 has no meaning.
        let half = 4 * (WORD - slack.min(WORD));
        differs << half << half == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_tells_the_slack_and_no_other_word_does() {
        let seal = 0x1234_5678_9abc_def1;
        for slack in (0..200).chain([4096, 32_759]) {
            let canary = canary(seal, slack);
            assert_eq!((told(seal, canary), canary & 1), (slack, 1));
            for bit in (0..SHIFT).chain(SHIFT + 15..64) {
                assert!(told(seal, canary ^ 1 << bit) >= 1 << 15, "bit {bit}");
            }
            for operator in Operator::ALL {
                let marked = canary ^ mark(operator);
                assert_eq!(told_of_any(seal, marked), (slack, operator));
                assert_eq!(told(seal, marked) == slack, operator == Operator::Unknown);
            }
            assert!(may_be_last(seal, canary) && may_be_last(seal, !seal) && may_be_last(seal, 0));
            for bit in (0..SHIFT).chain(SHIFT + 17..64) {
                assert!(!may_be_last(seal, canary ^ 1 << bit), "bit {bit}");
                assert!(!may_be_last(seal, !seal ^ 1 << bit), "bit {bit} of a free one");
                assert!(told_of_any(seal, canary ^ 1 << bit).0 == usize::MAX, "bit {bit}");
            }
            assert_eq!(told_of_any(seal, canary ^ 3 << (SHIFT + 15)).0, usize::MAX);
        }
        assert!(told(seal, !seal) > 1 << 15 && told(seal, 0) > 1 << 15);
    }

    type Write = unsafe fn(*mut u8, usize, u64, u64);
    type IsIntact = unsafe fn(*const u8, usize, u64) -> bool;

    /// Writes the slack of a block and its canary between other bytes. Returns all of them.
    fn written(write: Write, slack: usize, room: usize) -> Vec<u8> {
        let mut memory = vec![0_u8; WORD + room + 2 * WORD];
        let end = memory.as_mut_ptr().wrapping_add(WORD + room);
        // SAFETY: a block of this length.
        unsafe { write(end, slack, filling(0x36 << 56), 0x1122_3344_5566_7788) };
        let (before, block) = memory.split_at(WORD);
        let (block, after) = block.split_at(room + WORD);
        assert!(before.iter().chain(after).all(|byte| *byte == 0), "{slack} of {room}");
        assert_eq!(block[room..], 0x1122_3344_5566_7788_u64.to_ne_bytes());
        block.to_vec()
    }

    fn each_byte_is_filled_and_compared(write: Write, is_intact: IsIntact, room: usize) {
        let filling = filling(0x36 << 56);
        assert_eq!(filling, 0x3737_3737_3737_3737);
        for slack in 0..room {
            let mut block = written(write, slack, room);
            let first = room - slack;
            assert!(block[first..room].iter().take(COVERED).all(|byte| *byte == 0x37), "{slack}");
            // What is not the slack is of other bytes.
            block[..first].fill(0x36);
            block[room..].fill(0x36);
            for at in 0..room {
                block[at] ^= 1;
                // SAFETY: a block.
                let is_intact =
                    unsafe { is_intact(block.as_ptr().wrapping_add(room), slack, filling) };
                let is_slack = (first..first + slack.min(COVERED)).contains(&at);
                assert_eq!(is_intact, !is_slack, "{at} of {slack}");
                block[at] ^= 1;
            }
        }
    }

    unsafe fn write_exactly(end: *mut u8, slack: usize, filling: u64, canary: u64) {
        // SAFETY: the caller's promise.
        unsafe { fill_exactly(end, slack, filling) };
        // SAFETY: as above.
        unsafe { end.cast::<u64>().write_unaligned(canary) };
    }

    #[test]
    fn each_byte_of_the_slack_is_filled_and_compared_and_no_other_one() {
        // The first class with room has 8 bytes before the canary.
        for room in [8, 24, 40, 56, 72, 120] {
            each_byte_is_filled_and_compared(write, is_intact, room);
            each_byte_is_filled_and_compared(by_words::write, by_words::is_intact, room);
            each_byte_is_filled_and_compared(write_exactly, is_intact, room);
        }
        for slack in 0..120 {
            let used = written(write_exactly, slack, 120);
            assert!(used[..120 - slack].iter().all(|byte| *byte == 0), "{slack}");
        }
    }
}
