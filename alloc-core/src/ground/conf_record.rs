//! A record of the option sources that were read at the start: their names, their texts, and what
//! was ignored.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Bytes for the texts of all sources. Text that does not fit is cut off.
const TEXT_ROOM: usize = 16 << 10;
/// Bytes for the list of what was ignored.
const IGNORED_ROOM: usize = 4 << 10;
/// Room for more sources than there are.
const SOURCES: usize = 8;

/// NUL-terminated texts, one after the other.
struct Texts<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Texts<N> {
    const EMPTY: Texts<N> = Texts { bytes: [0; N], used: 0 };

    /// Appends bytes to the last text. The last byte of the buffer always stays a NUL.
    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if self.used + 1 < N
                && let Some(slot) = self.bytes.get_mut(self.used)
            {
                *slot = byte;
                self.used += 1;
            }
        }
    }

    /// Ends the last text.
    fn end(&mut self) {
        self.used = (self.used + 1).min(N);
    }

    /// Returns the text that begins at an index.
    fn at(&self, begin: usize) -> &CStr {
        let rest = self.bytes.get(begin..).unwrap_or(&[]);
        CStr::from_bytes_until_nul(rest).unwrap_or(c"")
    }
}

/// The sources of options, and their texts.
pub(crate) struct Record {
    texts: Texts<TEXT_ROOM>,
    ignored: Texts<IGNORED_ROOM>,
    sources: [Option<(&'static str, usize)>; SOURCES],
    /// The names of the sources, separated by commas.
    names: Texts<256>,
}

impl Record {
    pub(super) const EMPTY: Record = Record {
        texts: Texts::EMPTY,
        ignored: Texts::EMPTY,
        sources: [None; SOURCES],
        names: Texts::EMPTY,
    };

    /// Notes a source and its text.
    pub(crate) fn add_source(&mut self, source: &'static str, text: &[u8]) {
        let Some(slot) = self.sources.iter_mut().find(|slot| slot.is_none()) else { return };
        *slot = Some((source, self.texts.used));
        self.texts.push(text);
        self.texts.end();
        if self.names.used > 0 {
            self.names.push(b",");
        }
        self.names.push(source.as_bytes());
    }

    /// Notes a message about an ignored option, given in pieces.
    pub(crate) fn add_ignored(&mut self, pieces: &[&[u8]]) {
        if self.ignored.used > 0 {
            self.ignored.push(b"; ");
        }
        for piece in pieces {
            self.ignored.push(piece);
        }
    }

    /// Returns the names of the sources in the order in which they were read, separated by commas.
    pub(crate) fn sources(&self) -> &CStr {
        self.names.at(0)
    }

    /// Returns the text of a source, or `None` if it was not there.
    pub(crate) fn text_of(&self, source: &str) -> Option<&CStr> {
        let mut noted = self.sources.iter().flatten();
        let (_, begin) = noted.find(|(name, _)| *name == source)?;
        Some(self.texts.at(*begin))
    }

    /// Returns the ignored options, each with the reason and the source, separated by semicolons.
    pub(crate) fn ignored(&self) -> &CStr {
        self.ignored.at(0)
    }
}

struct Frozen(UnsafeCell<Record>);

// SAFETY: written during the start only, before `READY` is set, and read only after.
unsafe impl Sync for Frozen {}

static NOTHING: Record = Record::EMPTY;
static RECORD: Frozen = Frozen(UnsafeCell::new(Record::EMPTY));
static READY: AtomicBool = AtomicBool::new(false);

/// Lets `write` fill the record, once.
///
/// # Safety
/// Called once, by the thread that runs the process's start.
pub(crate) unsafe fn keep<R>(write: impl FnOnce(&mut Record) -> R) -> R {
    // SAFETY: no thread reads before READY, and no other thread writes (the caller's promise).
    let written = write(unsafe { &mut *RECORD.0.get() });
    // Release: pairs with the Acquire in `current`.
    READY.store(true, Ordering::Release);
    written
}

/// Returns the record, which is empty before the start.
pub(crate) fn current() -> &'static Record {
    // Acquire: pairs with the Release in `keep`.
    if READY.load(Ordering::Acquire) {
        // SAFETY: no thread writes after READY.
        unsafe { &*RECORD.0.get() }
    } else {
        &NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_by_source_and_cut_where_the_room_ends() {
        let mut record = Box::new(Record::EMPTY);
        assert_eq!((record.sources(), record.text_of("a")), (c"", None));
        record.add_source("a", b"abort:true");
        record.add_source("b", b"");
        record.add_source("c", &vec![b'x'; 2 * TEXT_ROOM]);
        record.add_source("d", b"too late");
        assert_eq!(record.sources(), c"a,b,c,d");
        assert_eq!(record.text_of("a"), Some(c"abort:true"));
        assert_eq!(record.text_of("b"), Some(c""));
        let room = TEXT_ROOM - "abort:true".len() - 3;
        assert_eq!(record.text_of("c").map(CStr::count_bytes), Some(room));
        assert_eq!(record.text_of("d"), Some(c""));
    }

    #[test]
    fn what_was_ignored_is_a_list() {
        let mut record = Box::new(Record::EMPTY);
        record.add_ignored(&[b"Invalid", b" one"]);
        record.add_ignored(&[b"two"]);
        assert_eq!(record.ignored(), c"Invalid one; two");
        record.add_ignored(&[&vec![b'x'; 2 * IGNORED_ROOM]]);
        assert_eq!(record.ignored().count_bytes(), IGNORED_ROOM - 1);
    }
}
