//! Finds what the unwind tables of a module say of an address (`.eh_frame_hdr` and `.eh_frame`).
//!
//! The header is a sorted list of functions, in which an address is found by halving. Source: the
//! Linux Standard Base, `.eh_frame_hdr`.

use super::cursor::Cursor;
use super::frame_program::{self, Common};
use super::machine;
use super::rule::Rule;
use crate::ground::os;

/// The only encoding of the sorted list that linkers write: four bytes, relative to the header.
const SORTED: u8 = 0x3b;
/// Bytes of a row of the sorted list: where the function begins, and where its record is.
const ROW: usize = 8;
/// The longest header before the list.
const HEADER: usize = 32;

/// What the tables say of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where the function begins.
    pub(super) function: usize,
    pub(super) rule: Rule,
}

/// Returns what the tables whose header is at `header` say of `address`. `None`: nothing.
///
/// # Safety
/// The tables must be those of a module that stays loaded meanwhile.
pub(super) unsafe fn find(header: usize, address: usize) -> Option<Found> {
    // SAFETY: the caller's promise.
    let record = unsafe { search(header, address) }?;
    // SAFETY: the list leads to a record of the same module.
    unsafe { read_function(record, address) }
}

/// Returns the record of the last function that begins at or before `address`.
unsafe fn search(header: usize, address: usize) -> Option<usize> {
    // SAFETY: the caller's promise; the list is longer than what is read here.
    let mut cursor = unsafe { Cursor::new(header, header + HEADER) };
    let (version, of_frames, of_count, of_list) =
        (cursor.u8()?, cursor.u8()?, cursor.u8()?, cursor.u8()?);
    if version != 1 || of_list != SORTED {
        return None;
    }
    cursor.pointer(of_frames, header)?;
    let count = cursor.pointer(of_count, header)?;
    let list = cursor.at();
    let row = |n: usize| {
        let at = list + n * ROW;
        // SAFETY: a row of the list, which has `count` rows.
        let mut row = unsafe { Cursor::new(at, at + ROW) };
        Some((row.pointer(SORTED, header)?, row.pointer(SORTED, header)?))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if row(middle)?.0 <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(row(low.checked_sub(1)?)?.1)
}

/// Returns the contents of the record at `at`, and where its second field begins.
unsafe fn open(at: usize) -> Option<Cursor> {
    // SAFETY: a record begins with its length in four bytes.
    let length = unsafe { Cursor::new(at, at + 4) }.u32()? as usize;
    // Longer records than 4 GiB, and the mark of the end.
    if length == 0 || length == u32::MAX as usize {
        return None;
    }
    // SAFETY: the record is as long as it says.
    Some(unsafe { Cursor::new(at + 4, at + 4 + length) })
}

/// Reads the record of a function and runs its instructions up to `address`. `None`: the function
/// ends before.
unsafe fn read_function(record: usize, address: usize) -> Option<Found> {
    // SAFETY: the caller's promise.
    let mut cursor = unsafe { open(record) }?;
    let here = cursor.at();
    let distance = cursor.u32()? as usize;
    // SAFETY: the record names the part of the table that its function shares with others.
    let common = unsafe { read_common(here.checked_sub(distance)?) }?;
    let begin = cursor.pointer(common.pointers, 0)?;
    let length = cursor.pointer(common.pointers & 0x0f, 0)?;
    if address.wrapping_sub(begin) >= length {
        return None;
    }
    if common.is_augmented {
        let bytes = cursor.uleb()? as usize;
        cursor.advance(bytes)?;
    }
    // SAFETY: the function has this code.
    let rule = if common.is_signal && unsafe { is_signal_return(address + 1, begin + length) } {
        // Where the values of the interrupted code lie, the system has settled.
        Rule::Signal
    } else {
        frame_program::rule(&common, cursor, begin, address)?
    };
    Some(Found { function: begin, rule })
}

/// Returns whether the code at `at`, in a function that ends at `end`, returns from a handler of a
/// signal. Other functions may have the mark of such code in their records, but not the system's
/// values above their stack pointer.
unsafe fn is_signal_return(at: usize, end: usize) -> bool {
    const BYTES: usize = machine::SIGNAL_RETURN.len();
    let place = core::ptr::with_exposed_provenance::<[u8; BYTES]>(at);
    end.checked_sub(at).is_some_and(|left| left >= BYTES)
        && os::is_readable(at)
        // SAFETY: the caller's promise, and the system can read it.
        && unsafe { place.read_unaligned() } == machine::SIGNAL_RETURN
}

unsafe fn read_common(record: usize) -> Option<Common> {
    // SAFETY: the caller's promise.
    let mut cursor = unsafe { open(record) }?;
    let (id, version) = (cursor.u32()?, cursor.u8()?);
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let (text, letters) = cursor.text()?;
    let code_unit = cursor.uleb()?;
    let data_unit = cursor.sleb()?;
    let back = if version == 1 { u64::from(cursor.u8()?) } else { cursor.uleb()? };
    let mut common = Common {
        code_unit,
        data_unit,
        pointers: 0,
        back,
        is_augmented: false,
        is_signal: false,
        first: cursor,
    };
    // SAFETY: the letters were just read.
    let mut letters = unsafe { Cursor::new(text, text + letters) };
    while let Some(letter) = letters.u8() {
        match letter {
            b'z' => {
                common.is_augmented = true;
                cursor.uleb()?;
            }
            b'R' => common.pointers = cursor.u8()?,
            b'P' => {
                let how = cursor.u8()?;
                cursor.pointer(how, 0)?;
            }
            b'L' => drop(cursor.u8()?),
            b'S' => common.is_signal = true,
            // The key of AArch64's signatures.
            b'B' => {}
            _ => return None,
        }
    }
    common.first = cursor;
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::backtrace::modules;

    #[test]
    fn each_function_is_found_by_each_address_inside_it() {
        let function = search as *const () as usize;
        let module = modules::find(function).expect("a module");
        for address in [function, function + 1, function + 20] {
            // SAFETY: the program stays loaded.
            let found = unsafe { find(module.tables, address) }.expect("a function");
            assert_eq!(found.function, function);
            assert!(matches!(found.rule, Rule::Step(_)), "{:?}", found.rule);
        }
        // SAFETY: the program stays loaded.
        assert!(unsafe { find(module.tables, module.tables) }.is_none(), "in no function");
    }

    #[test]
    fn a_header_of_another_kind_has_no_functions() {
        let header = [2u8; HEADER];
        // SAFETY: the bytes are there.
        assert!(unsafe { find(header.as_ptr().expose_provenance(), 1) }.is_none());
    }

    /// What all functions share: with the mark of a signal, addresses in eight bytes, the CFA at
    /// the stack pointer + 8 and the return address below it.
    #[cfg(target_arch = "x86_64")]
    const COMMON: [u8; 24] = [
        20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', b'S', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0,
    ];

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_function_with_the_mark_of_a_signal_has_to_return_from_one() {
        let rule_of = |code: &[u8; 16]| {
            // The call lies before the return address.
            let begin = code.as_ptr().expose_provenance() - 1;
            let mut tables = COMMON.to_vec();
            let here = COMMON.len() + 4;
            tables.extend(25_u32.to_ne_bytes().into_iter().chain((here as u32).to_ne_bytes()));
            tables.extend(begin.to_ne_bytes().into_iter().chain(17_usize.to_ne_bytes()));
            tables.extend([0; 5]);
            let record = tables.as_ptr().expose_provenance() + COMMON.len();
            // SAFETY: the record and its code are there.
            unsafe { read_function(record, begin) }.expect("a function").rule
        };
        let mut code = [0x90; 16];
        assert!(matches!(rule_of(&code), Rule::Step(_)));
        code[..machine::SIGNAL_RETURN.len()].copy_from_slice(&machine::SIGNAL_RETURN);
        assert_eq!(rule_of(&code), Rule::Signal);
        code.rotate_right(8);
        assert!(matches!(rule_of(&code), Rule::Step(_)), "not there");
    }
}
