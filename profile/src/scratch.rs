//! Memory for the time in which a profile is written, straight from the system.

use core::sync::atomic::{AtomicBool, Ordering};

/// Words that are there even if the system has no memory left.
const SPARE: usize = 8192;

/// The spare words, which one writer has at a time.
struct Spare(core::cell::UnsafeCell<[u64; SPARE]>);

// SAFETY: only the owner of `SPARE_TAKEN` touches the words.
unsafe impl Sync for Spare {}

static SPARE_WORDS: Spare = Spare(core::cell::UnsafeCell::new([0; SPARE]));
static SPARE_TAKEN: AtomicBool = AtomicBool::new(false);

/// Words that belong to one writer.
pub(crate) struct Scratch {
    words: *mut u64,
    length: usize,
    is_spare: bool,
}

impl Scratch {
    /// Returns zeroed memory for `words` words. Where the system has none, returns fewer words, or
    /// none at all.
    pub(crate) fn new(words: usize) -> Scratch {
        Scratch::from_system(words).or_else(Scratch::spare).unwrap_or(Scratch {
            words: core::ptr::NonNull::dangling().as_ptr(),
            length: 0,
            is_spare: false,
        })
    }

    fn from_system(words: usize) -> Option<Scratch> {
        let bytes = words.checked_mul(size_of::<u64>()).filter(|bytes| *bytes > 0)?;
        let (how, what) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at an address of the system's choice.
        let place = unsafe { libc::mmap(core::ptr::null_mut(), bytes, how, what, -1, 0) };
        let is_there = place != libc::MAP_FAILED;
        is_there.then(|| Scratch { words: place.cast(), length: words, is_spare: false })
    }

    fn spare() -> Option<Scratch> {
        // Acquire: pairs with the Release in `drop`.
        if SPARE_TAKEN.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut spare =
            Scratch { words: SPARE_WORDS.0.get().cast(), length: SPARE, is_spare: true };
        spare.words().fill(0);
        Some(spare)
    }

    /// Returns the words.
    pub(crate) fn words(&mut self) -> &mut [u64] {
        // SAFETY: the words are mapped, and belong to this value alone.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.length) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_spare {
            // Release: pairs with the Acquire in `spare`.
            SPARE_TAKEN.store(false, Ordering::Release);
        } else if self.length > 0 {
            // SAFETY: mapped by `from_system`, and not used any more.
            unsafe { libc::munmap(self.words.cast(), self.length * size_of::<u64>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_there_is_a_little_when_the_system_has_none() {
        let mut some = Scratch::new(1000);
        assert_eq!(some.words(), [0; 1000]);
        some.words().fill(1);
        drop(some);
        for _ in 0..2 {
            let mut spare = Scratch::new(usize::MAX / 8 - 1000);
            assert!(spare.words().len() == SPARE && spare.words().iter().all(|word| *word == 0));
            spare.words().fill(1);
            assert!(Scratch::new(usize::MAX).words().is_empty(), "the spare words are taken");
        }
        assert!(Scratch::new(0).words().len() == SPARE);
    }
}
