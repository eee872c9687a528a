//! A text that is made when it is first asked for, and kept.
use crate::error::Error;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// How many threads may begin to make a text. More than one begins only if two ask for it at once,
/// or if the process forked while one was making it.
const TRIES: usize = 4;

/// A text, and the room to make it in. There is no lock: each thread that asks before the text is
/// there makes it in a room of its own, and the first one that is done publishes it.
///
/// `ROOM` is the length of a text at most, including its NUL.
pub(crate) struct OnceText<const ROOM: usize> {
    published: AtomicPtr<c_char>,
    begun: AtomicUsize,
    rooms: UnsafeCell<[[u8; ROOM]; TRIES]>,
}

// SAFETY: a room is written only by the thread that got its number from `begun`, and read only
// after that thread has published it.
unsafe impl<const ROOM: usize> Sync for OnceText<ROOM> {}

/// Where a text is written. Text that does not fit is cut off.
pub(crate) struct Room<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Room<'_> {
    /// Appends bytes. The last byte of the room stays NUL.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.used + 1 < self.bytes.len()
                && let Some(place) = self.bytes.get_mut(self.used)
            {
                *place = byte;
                self.used += 1;
            }
        }
    }

    /// Appends a decimal number.
    pub(crate) fn push_number(&mut self, number: u64) {
        if number >= 10 {
            self.push_number(number / 10);
        }
        self.push(&[b'0' + (number % 10) as u8]);
    }
}

impl<const ROOM: usize> OnceText<ROOM> {
    pub(crate) const fn new() -> Self {
        OnceText {
            published: AtomicPtr::new(ptr::null_mut()),
            begun: AtomicUsize::new(0),
            rooms: UnsafeCell::new([[0; ROOM]; TRIES]),
        }
    }

    /// The text; `make` writes it if it is not there yet.
    ///
    /// # Errors
    /// [`Error::Again`] when so many threads are making the text that no room is left.
    pub(crate) fn get(
        &'static self,
        make: impl FnOnce(&mut Room<'_>),
    ) -> Result<&'static CStr, Error> {
        if let Some(text) = self.published() {
            return Ok(text);
        }
        let turn = self.begun.fetch_add(1, Ordering::Relaxed);
        if turn >= TRIES {
            self.begun.store(TRIES, Ordering::Relaxed);
            return self.published().ok_or(Error::Again);
        }
        let room = self.rooms.get().cast::<[u8; ROOM]>().wrapping_add(turn);
        // SAFETY: each turn is handed out once, so no other thread has this room.
        let bytes = unsafe { &mut *room };
        make(&mut Room { bytes, used: 0 });
        // If another thread was first, its text is equal to this one.
        let _ = self.publish(room.cast());
        self.published().ok_or(Error::Again)
    }

    /// Publishes a text, unless there is one already.
    fn publish(&self, text: *mut c_char) -> Result<*mut c_char, *mut c_char> {
        let none = ptr::null_mut();
        // Release: pairs with the Acquire in `published`.
        self.published.compare_exchange(none, text, Ordering::Release, Ordering::Relaxed)
    }

    fn published(&self) -> Option<&'static CStr> {
        // Acquire: pairs with the Release in `publish`.
        let text = self.published.load(Ordering::Acquire);
        // SAFETY: a published room ends with NUL, lies in a static, and is never written again.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_made_once_and_cut_where_the_room_ends() {
        static TEXT: OnceText<64> = OnceText::new();
        let long = TEXT.get(|room| (0..64).for_each(|_| room.push(b"xy"))).unwrap();
        assert_eq!(long.count_bytes(), 63);
        assert_eq!(TEXT.get(|_| unreachable!()).unwrap().as_ptr(), long.as_ptr());
    }

    #[test]
    fn those_who_ask_at_once_get_the_same_text() {
        static TEXT: OnceText<64> = OnceText::new();
        std::thread::scope(|scope| {
            for _ in 0..TRIES {
                scope.spawn(|| assert_eq!(TEXT.get(|room| room.push(b"here")), Ok(c"here")));
            }
        });
    }

    #[test]
    fn makers_that_never_end_leave_room_for_others_and_then_an_error() {
        static TEXT: OnceText<64> = OnceText::new();
        static LOST: OnceText<64> = OnceText::new();
        TEXT.begun.store(TRIES - 1, Ordering::Relaxed);
        assert_eq!(TEXT.get(|room| room.push(b"last")), Ok(c"last"));
        LOST.begun.store(TRIES, Ordering::Relaxed);
        assert_eq!(LOST.get(|room| room.push(b"none")), Err(Error::Again));
    }
}
