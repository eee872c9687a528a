//! A leak on purpose, for `lumalloc serve --leak`: those who look for leaks have one to find.

use std::mem::size_of;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of a value that are kept.
const EXCERPT: usize = 128;
/// The leak ends at so many bytes, so that a forgotten demonstration does not use up the machine.
const MOST: usize = 1 << 30;

/// Keeps a note of each value that is written.
#[derive(Default)]
pub(crate) struct History {
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    all: Vec<Note>,
    bytes: usize,
}

/// What is known of a value.
#[allow(dead_code, reason = "nobody reads what leaks")]
struct Note {
    key: String,
    excerpt: Vec<u8>,
}

impl History {
    /// Notes that a value was written. Nothing ever removes the note: this is the leak.
    #[inline(never)]
    pub(crate) fn remember(&self, key: &str, value: &[u8]) {
        let excerpt = &value[..value.len().min(EXCERPT)];
        let mut notes = self.notes();
        let bytes = size_of::<Note>() + key.len() + excerpt.len();
        if notes.bytes + bytes <= MOST {
            notes.all.push(Note { key: key.to_owned(), excerpt: excerpt.to_vec() });
            notes.bytes += bytes;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_pile_up_to_a_bound() {
        let history = History::default();
        let kept = || {
            let notes = history.notes();
            (notes.all.len(), notes.bytes)
        };
        history.remember("key", &[b'x'; 300]);
        let bytes = size_of::<Note>() + 3 + EXCERPT;
        assert_eq!(kept(), (1, bytes));
        assert_eq!(history.notes().all[0].excerpt, [b'x'; EXCERPT]);
        history.notes().bytes = MOST - bytes;
        for _ in 0..2 {
            history.remember("key", &[b'x'; 300]);
        }
        assert_eq!(kept(), (2, MOST));
    }
}
