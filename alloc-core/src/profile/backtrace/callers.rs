//! The return addresses that a walk collects, without the allocator's own frames.

use super::DEEPEST;
use core::mem::MaybeUninit;

/// Return addresses that are being collected.
pub(super) struct Callers<'a> {
    stack: &'a mut [MaybeUninit<usize>],
    most: usize,
    /// Those that were taken, at the first places.
    count: usize,
    frames: usize,
    /// Whether a frame of the allocator was seen.
    pub(super) has_own: bool,
}

impl<'a> Callers<'a> {
    pub(super) fn new(stack: &'a mut [MaybeUninit<usize>], most: usize) -> Callers<'a> {
        Callers { stack, most, count: 0, frames: 0, has_own: false }
    }

    /// Takes the return address of one more frame. Returns whether others are wanted.
    #[inline(always)]
    pub(super) fn see(&mut self, back: usize, is_own: bool) -> bool {
        // Behind the allocator's own frames come none but in functions that it has called.
        if self.count == self.most && self.has_own && !is_own {
            return false;
        }
        if let Some(place) = self.stack.get_mut(self.count) {
            place.write(back);
        }
        // The first address is in this file.
        self.count = if is_own || self.frames == 0 { 0 } else { self.count + 1 };
        self.has_own |= is_own;
        self.frames += 1;
        self.frames < DEEPEST && self.count < self.stack.len()
    }

    /// Counts frames of the allocator, behind another frame that was seen.
    #[inline(always)]
    pub(super) fn count_own(&mut self, frames: usize) {
        if frames > 0 {
            (self.count, self.has_own) = (0, true);
            self.frames += frames;
        }
    }

    /// Returns the places of further return addresses, of frames that are not the allocator's, as
    /// far as they are wanted for certain. A frame was seen before.
    #[inline(always)]
    pub(super) fn places(&mut self) -> &mut [MaybeUninit<usize>] {
        let last = self.stack.len().saturating_sub(1);
        let end = if self.has_own { self.most.min(last) } else { last };
        let most = DEEPEST.saturating_sub(self.frames + 1);
        let end = end.min(self.count + most);
        self.stack.get_mut(self.count..end).unwrap_or_default()
    }

    /// Counts return addresses that were written to the first ones of [`Callers::places`].
    #[inline(always)]
    pub(super) fn count_written(&mut self, count: usize) {
        self.count += count;
        self.frames += count;
    }

    pub(super) fn found(self) -> &'a mut [usize] {
        let taken = self.stack.get_mut(..self.count.min(self.most)).unwrap_or_default();
        // SAFETY: `see` has written each place before it counted it.
        unsafe { taken.assume_init_mut() }
    }
}
