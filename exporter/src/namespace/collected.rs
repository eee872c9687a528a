//! Text that the allocator hands over in pieces.
use lumalloc_ctl::Error;
use std::ffi::{CStr, c_char, c_void};

/// Bytes that the text has room for at first. The preloaded exporter waits for memory for a smaller
/// block, and is told at once that there is none for this one.
pub(super) const FIRST: usize = 64 << 10;

/// The pieces so far.
#[derive(Default)]
pub(super) struct Collected {
    text: Vec<u8>,
    /// Whether there was no memory for a piece.
    is_cut: bool,
}

impl Collected {
    /// Adds a piece of text, unless there is no memory for it or for an earlier one.
    fn add(&mut self, piece: &[u8]) {
        let room = piece.len().max(if self.text.capacity() == 0 { FIRST } else { 0 });
        self.is_cut |= self.text.try_reserve(room).is_err();
        if !self.is_cut {
            self.text.extend_from_slice(piece);
        }
    }

    /// Returns the whole text.
    ///
    /// # Errors
    /// [`Error::NoMemory`] if there was none for a piece.
    pub(super) fn whole(self) -> Result<Vec<u8>, Error> {
        if self.is_cut { Err(Error::NoMemory) } else { Ok(self.text) }
    }
}

/// Adds a piece of text to what is behind `to`. `malloc_stats_print` calls it.
///
/// # Safety
/// `to` must point to a [`Collected`] that no other code uses, and `piece` must be NUL-terminated.
pub(super) unsafe extern "C" fn add(to: *mut c_void, piece: *const c_char) {
    // SAFETY: the caller guarantees that `to` is such a text.
    let text = unsafe { &mut *to.cast::<Collected>() };
    // SAFETY: the caller guarantees that `piece` is NUL-terminated.
    text.add(unsafe { CStr::from_ptr(piece) }.to_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_gap_is_none() {
        let mut text = Collected::default();
        text.add(b"one");
        text.add(b", two");
        assert_eq!((text.text.capacity(), text.whole()), (FIRST, Ok(b"one, two".to_vec())));
        let mut text = Collected { text: b"one".to_vec(), is_cut: true };
        text.add(b", three");
        assert_eq!(text.whole(), Err(Error::NoMemory));
    }
}
