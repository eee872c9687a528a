//! Names of threads, each stored once for ever in a table that does not grow. Source: jemalloc(3),
//! `thread.prof.name`, `opt.prof_sys_thread_name`.

use crate::ground::checked;
use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The bytes of a name, with the zero byte behind it. Longer names are cut. Source: jemalloc,
/// `PROF_THREAD_NAME_MAX_LEN`.
const BYTES: usize = 16;
/// Places of the table. The first one is the empty name's.
const PLACES: usize = 4096;
/// The most names that are kept. Threads with other names have none.
const MOST: u32 = 3072;

/// The place of a name. 0: no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameIndex(u16);

struct Place {
    /// Whether the text is written, after which it does not change.
    is_used: AtomicBool,
    text: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the text is written once, by the holder of the lock, before `is_used` is set. It is read
// only after that.
unsafe impl Sync for Place {}

static TABLE: [Place; PLACES] =
    [const { Place { is_used: AtomicBool::new(false), text: UnsafeCell::new([0; BYTES]) } };
        PLACES];
/// The lock for new names, which fork takes too.
pub(crate) static ADDING: RankedMutex<()> = RankedMutex::new(LockRank::Sites, ());
static USED: AtomicU32 = AtomicU32::new(0);
/// Whether samples get the names that the system has for their threads.
static FROM_SYSTEM: AtomicBool = AtomicBool::new(false);

/// Sets whether samples get the names that the system has for their threads. Called at start.
pub(crate) fn set_from_system(from_system: bool) {
    FROM_SYSTEM.store(from_system, Ordering::Relaxed);
}

/// Returns whether samples get the names that the system has for their threads.
pub(crate) fn are_from_system() -> bool {
    FROM_SYSTEM.load(Ordering::Relaxed)
}

/// Returns the name of the calling thread: the system's if names are from there, and else `own`.
pub(crate) fn of_thread(own: NameIndex) -> NameIndex {
    if !are_from_system() {
        return own;
    }
    let mut name = [0; BYTES];
    os::thread_name(&mut name);
    index_of(name.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Returns the index of a name, which is stored if it is new. Of a name that is too long, the
/// beginning is used. 0 if the table is full.
pub(crate) fn index_of(name: &[u8]) -> NameIndex {
    let text = cut(name);
    if text == [0; BYTES] {
        return NameIndex(0);
    }
    find(&text).unwrap_or_else(|| {
        let _adding = ADDING.lock();
        find(&text).unwrap_or_else(|| add(&text))
    })
}

/// Cuts a name to UTF-8 text of less than [`BYTES`] bytes.
fn cut(name: &[u8]) -> [u8; BYTES] {
    let name = name.get(..BYTES - 1).unwrap_or(name);
    let valid = match core::str::from_utf8(name) {
        Ok(name) => name.len(),
        Err(error) => error.valid_up_to(),
    };
    let mut text = [0; BYTES];
    text.iter_mut().zip(name.iter().take(valid)).for_each(|(to, from)| *to = *from);
    text
}

/// Returns the places where a name may be, in order.
fn places(text: &[u8; BYTES]) -> impl Iterator<Item = u16> {
    let hash = u128::from_ne_bytes(*text) % 0xffff_fffb;
    (0..PLACES).map(move |step| (1 + (hash as usize + step) % (PLACES - 1)) as u16)
}

fn place(index: u16) -> &'static Place {
    // SAFETY: indices are below PLACES.
    unsafe { checked::at(&TABLE, usize::from(index)) }
}

fn find(text: &[u8; BYTES]) -> Option<NameIndex> {
    places(text)
        .map_while(|index| Some((index, place(index).text()?)))
        .find(|(_, known)| *known == text)
        .map(|(index, _)| NameIndex(index))
}

/// Stores a name. Called under the lock.
fn add(text: &[u8; BYTES]) -> NameIndex {
    if USED.load(Ordering::Relaxed) >= MOST {
        return NameIndex(0);
    }
    let Some(index) = places(text).find(|index| place(*index).text().is_none()) else {
        return NameIndex(0);
    };
    // SAFETY: the place is not used, and the lock is held.
    unsafe { place(index).text.get().write(*text) };
    // Release: pairs with the Acquire in `text`.
    place(index).is_used.store(true, Ordering::Release);
    USED.fetch_add(1, Ordering::Relaxed);
    NameIndex(index)
}

impl Place {
    fn text(&'static self) -> Option<&'static [u8; BYTES]> {
        // Acquire: pairs with the Release in `add`.
        let is_used = self.is_used.load(Ordering::Acquire);
        // SAFETY: the text does not change any more.
        is_used.then(|| unsafe { &*self.text.get() })
    }
}

impl NameIndex {
    /// Returns the name, which is empty if there is none.
    pub(crate) fn name(self) -> &'static CStr {
        let text = place(self.0).text().map(<[u8; BYTES]>::as_slice).unwrap_or_default();
        CStr::from_bytes_until_nul(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_stored_once_and_cut() {
        let index = index_of(b"worker");
        assert_eq!((index.name(), index_of(b"worker")), (c"worker", index));
        assert_eq!((index_of(b""), NameIndex(0).name()), (NameIndex(0), c""));
        assert_eq!(index_of(b"0123456789abcdefgh").name(), c"0123456789abcde");
        assert_eq!(index_of(b"0123456789abcdezz"), index_of(b"0123456789abcde"));
        // A character is not cut in two.
        assert_eq!(index_of("0123456789abcdé".as_bytes()).name(), c"0123456789abcd");
        assert_eq!(index_of(b"ab\xffcd").name(), c"ab");
        // The other tests of this file store few names, so these fill the table.
        let name = |n: u32| std::format!("filler {n}");
        for n in 0..MOST + 10 {
            let index = index_of(name(n).as_bytes());
            assert!(index == NameIndex(0) || index.name().to_bytes() == name(n).as_bytes());
        }
        assert_eq!(index_of(b"one more"), NameIndex(0));
        assert_eq!(
            (index_of(b"worker"), index_of(name(7).as_bytes()).name()),
            (index, c"filler 7")
        );
    }
}
