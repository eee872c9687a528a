//! The loaded file that an address of code lies in, by `/proc/self/maps`. For messages with which
//! the process ends: nothing here allocates or takes a lock, and little of the stack is used,
//! because it may be the small one of a signal handler.

use super::text::Line;
use super::{files, message, own_files};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// The longest line that is understood. Of longer ones the end of the path is cut off.
const LINE: usize = 400;
const PATH: usize = 320;
/// A file that lies below this address lies where it was linked to lie, so its symbols have
/// addresses, and not offsets.
const LINKED: usize = 1 << 32;

/// The place for a search, which only the thread that has set the flag uses.
struct OnePlace {
    is_taken: AtomicBool,
    search: UnsafeCell<Search>,
}

// SAFETY: the flag lets one thread at a time use the search.
unsafe impl Sync for OnePlace {}

static PLACE: OnePlace =
    OnePlace { is_taken: AtomicBool::new(false), search: UnsafeCell::new(Search::new(0)) };

/// Writes a line that says in which file an address lies, and where in it. Writes nothing if the
/// system does not tell, and while another thread writes such a line.
#[inline(never)]
pub(crate) fn tell(address: usize) {
    // Acquire: pairs with the Release below.
    if PLACE.is_taken.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: this thread has set the flag.
    let search = unsafe { &mut *PLACE.search.get() };
    for path in own_files::MAPS {
        search.begin_anew(address);
        let read = files::read_in_pieces(path, |piece| search.see(piece));
        if read.is_some() && search.is_found {
            break;
        }
    }
    if search.is_found {
        message::write(search.message());
    }
    // Release: pairs with the Acquire above.
    PLACE.is_taken.store(false, Ordering::Release);
}

/// The search for an address in the text of `/proc/self/maps`.
struct Search {
    address: usize,
    line: Line<LINE>,
    /// The path of the last file, and where it begins.
    path: Line<PATH>,
    begin: usize,
    is_found: bool,
}

impl Search {
    const fn new(address: usize) -> Search {
        let (line, path) = (Line::new(), Line::new());
        Search { address, line, path, begin: 0, is_found: false }
    }

    fn begin_anew(&mut self, address: usize) {
        self.line.clear();
        self.path.clear();
        (self.address, self.begin, self.is_found) = (address, 0, false);
    }

    /// Looks at a piece of the text. Returns `false` when the address is found.
    fn see(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            if *byte != b'\n' {
                self.line.bytes(&[*byte]);
                continue;
            }
            if self.sees_it_in_line() {
                return false;
            }
            self.line.clear();
        }
        true
    }

    fn sees_it_in_line(&mut self) -> bool {
        let Some(mapping) = Mapping::read(self.line.as_bytes()) else { return false };
        if self.path.as_bytes() != mapping.path.get(..PATH).unwrap_or(mapping.path) {
            self.path.clear();
            self.path.bytes(mapping.path);
            self.begin = mapping.begin.saturating_sub(mapping.offset);
        }
        self.is_found = (mapping.begin..mapping.end).contains(&self.address);
        self.is_found
    }

    /// The line about the address, after it was found.
    fn message(&mut self) -> &[u8] {
        let begin = if self.begin < LINKED { 0 } else { self.begin };
        self.line.clear();
        self.line.text("<lumalloc>: ").address(self.address).text(" is ");
        self.line.bytes(self.path.as_bytes()).text("+");
        self.line.address(self.address.saturating_sub(begin)).text("\n");
        self.line.as_bytes()
    }
}

/// A mapping of a file.
struct Mapping<'a> {
    begin: usize,
    end: usize,
    offset: usize,
    path: &'a [u8],
}

impl Mapping<'_> {
    /// Reads a line such as `7f00-7f10 r-xp 00002000 08:01 77  /usr/lib/libc.so.6`. Returns `None`
    /// if it is about no file.
    fn read(line: &[u8]) -> Option<Mapping<'_>> {
        let path = line.iter().position(|c| *c == b'/').and_then(|at| line.get(at..))?;
        let mut words = line.split(|c| *c == b' ');
        let mut range = words.next()?.split(|c| *c == b'-');
        let (begin, end) = (number(range.next()?)?, number(range.next()?)?);
        let offset = number(words.nth(1)?)?;
        Some(Mapping { begin, end, offset, path })
    }
}

/// Reads a hexadecimal number.
fn number(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00401000 r--p 00000000 08:01 11                         /usr/bin/linked
00401000-00402000 r-xp 00001000 08:01 11                         /usr/bin/linked
55d000000000-55d000001000 r--p 00000000 08:01 12                 /opt/a program
55d000001000-55d000003000 r-xp 00001000 08:01 12                 /opt/a program
55d000003000-55d000004000 rw-p 00000000 00:00 0
55d000100000-55d000200000 rw-p 00000000 00:00 0                  [heap]
7f0000000000-7f0000002000 r-xp 00003000 08:01 13                 /usr/lib/libx.so (deleted)
";

    fn in_maps(address: usize, piece: usize) -> Option<String> {
        let mut search = Search::new(address);
        let _found = MAPS.as_bytes().chunks(piece).all(|piece| search.see(piece));
        search.is_found.then(|| String::from_utf8_lossy(search.message()).into_owned())
    }

    #[test]
    fn an_address_is_told_as_the_symbols_of_its_file_have_it() {
        for piece in [1, 7, 100, 10_000] {
            let is = |address: usize, place: &str| {
                let expected = format!("<lumalloc>: {address:#x} is {place}\n");
                assert_eq!(in_maps(address, piece), Some(expected));
            };
            is(0x40_1234, "/usr/bin/linked+0x401234");
            is(0x55d0_0000_1234, "/opt/a program+0x1234");
            is(0x7f00_0000_0010, "/usr/lib/libx.so (deleted)+0x3010");
            for nowhere in [0, 0x40_2000, 0x55d0_0000_3000, 0x55d0_0010_0000, usize::MAX] {
                assert_eq!(in_maps(nowhere, piece), None, "{nowhere:#x}");
            }
        }
    }

    #[test]
    fn strange_lines_are_passed_over() {
        let read = |line: &str| Mapping::read(line.as_bytes()).map(|mapping| mapping.begin);
        assert_eq!(read("10-20 r-xp 0 08:01 1 /x"), Some(16));
        let strange = ["", "/", "10 r-xp 0 08:01 1 /x", "10-2g r-xp 0 08:01 1 /x", "10-20 /x"];
        strange.into_iter().for_each(|line| assert_eq!(read(line), None, "{line}"));
    }
}
