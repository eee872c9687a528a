//! Addresses for regions that processes share.

use super::FileForm;
use super::file::File;
use super::front::{FRONT, MOST};
use crate::errno;
use crate::limits;
use crate::random::random;
use core::ffi::{c_int, c_void};
use core::ptr;

/// Where regions lie if the program does not say: far from programs, stacks and libraries.
const LOWEST: usize = 1 << 44;
const SPAN_BITS: u32 = 46;
const STEP: usize = 2 << 20;
const ATTEMPTS: usize = 32;

/// Bytes for the region of a file that can grow as far as there are addresses.
const LARGE: usize = 16 << 30;

/// Bytes for the region of a file with a given room: so many times the room, and so many at least.
/// Small windows of many files have room in one process.
const ROOMS: usize = 16;
const SMALL: usize = 64 << 20;

/// A process with a limit of addresses gives one window no more than this part of it.
const PART_OF_LIMIT: usize = 16;

/// Returns an address at which so many bytes can be mapped. Source: vmalloc(3), `vmmaddress`.
pub fn any_address(size: usize) -> Option<usize> {
    let size = size.max(1).checked_next_multiple_of(lumalloc::PAGE)?;
    let candidate = |_| address_of(random(size), size);
    (0..ATTEMPTS).map(candidate).find(|&address| is_unused(address, size))
}

/// Returns the address that belongs to a number. Addresses of consecutive numbers are far apart:
/// those of `n` numbers are all at least a third of `1 / n` of the span apart, up to the size,
/// because they are multiples of it, rounded up, as far as there are.
fn address_of(number: u64, size: usize) -> usize {
    /// 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let offset = (number.wrapping_mul(FACTOR) >> (u64::BITS - SPAN_BITS)) as usize;
    let unit = size.max(1).checked_next_multiple_of(STEP).unwrap_or(1 << SPAN_BITS);
    LOWEST + offset / unit * unit
}

fn is_unused(address: usize, size: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let is_unused = map(address, size, libc::PROT_NONE, flags, -1).is_ok();
    if is_unused {
        unmap(address, size);
    }
    is_unused
}

/// Maps a file for all who map it, at an address that nothing else has, or for 0 anywhere.
pub(super) fn map_shared(address: usize, size: usize, descriptor: c_int) -> Result<usize, c_int> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    map(address, size, protection, libc::MAP_SHARED | libc::MAP_NORESERVE, descriptor)
}

/// Returns how many addresses a file of a form is to have, with so much room: those of the front
/// and of the region.
pub(super) fn window_for(form: FileForm, room: usize) -> usize {
    let large = LARGE.max(room.saturating_mul(2));
    let small = SMALL.max(room.saturating_mul(ROOMS)).min(large);
    let wanted = FRONT + if form.grows { large } else { small };
    let most = limits::addresses().map_or(MOST, |limit| MOST.min(limit / PART_OF_LIMIT));
    wanted.min(most).max(FRONT + room).next_multiple_of(lumalloc::PAGE)
}

/// Maps the addresses of a new region with so much room: as many as it is to have, or fewer if the
/// system does not allow so many. Returns where they begin, and how many there are.
pub(super) fn map_window(
    file: &File,
    form: FileForm,
    room: usize,
) -> Result<(usize, usize), c_int> {
    let mut window = window_for(form, room);
    loop {
        match map_new(file, form.base, window) {
            Ok(start) => return Ok((start, window)),
            // EAGAIN: what is mapped is to be locked, and there is a limit on that.
            Err(libc::ENOMEM | libc::EAGAIN) if window > FRONT + room => {
                window = (window / 2).max(FRONT + room).next_multiple_of(lumalloc::PAGE);
            }
            Err(code) => return Err(code),
        }
    }
}

/// Maps a file at `base`, or for 0 where a process will have room that has others too: the files of
/// a file system have consecutive numbers.
fn map_new(file: &File, base: usize, window: usize) -> Result<usize, c_int> {
    let descriptor = file.descriptor();
    if base != 0 {
        return map_shared(base, window, descriptor);
    }
    let (device, inode) = file.identity();
    let own = address_of(inode.wrapping_add(device.rotate_left(32)), window);
    map_shared(own, window, descriptor)
        .or_else(|_| map_shared(any_address(window).unwrap_or(0), window, descriptor))
}

fn map(
    address: usize,
    size: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
) -> Result<usize, c_int> {
    let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let hint = ptr::without_provenance_mut::<c_void>(address);
    // SAFETY: the mapping is new and replaces none.
    let start = unsafe { libc::mmap(hint, size, protection, flags | fixed, descriptor, 0) };
    if start == libc::MAP_FAILED {
        return Err(in_use(errno::get()));
    }
    let start = start.expose_provenance();
    if address != 0 && start != address {
        // A kernel before 4.17 takes the address as a hint.
        unmap(start, size);
        return Err(libc::EADDRINUSE);
    }
    Ok(start)
}

fn in_use(code: c_int) -> c_int {
    if code == libc::EEXIST { libc::EADDRINUSE } else { code }
}

pub(super) fn unmap(start: usize, size: usize) {
    // SAFETY: callers pass a mapping of their own that nothing uses any more.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(start), size) };
}

/// Gives the memory of whole pages back, so that they hold zeros. Returns whether the system did.
pub(super) fn discard(start: usize, end: usize) -> bool {
    let start = start.next_multiple_of(lumalloc::PAGE);
    let memory = ptr::with_exposed_provenance_mut(start);
    // SAFETY: callers pass pages of their own mapping, whose contents nobody wants any more.
    start >= end || unsafe { libc::madvise(memory, end - start, libc::MADV_REMOVE) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn windows_of_consecutive_numbers_do_not_overlap() {
        for (window, count) in [(SMALL, 5000), (FRONT + SMALL, 5000), (FRONT + LARGE, 900)] {
            for first in [1, 0x1_0000_0000, u64::MAX - 400] {
                let numbers = (0..count).map(|more| first.wrapping_add(more));
                let mut starts: Vec<usize> =
                    numbers.map(|number| address_of(number, window)).collect();
                starts.sort_unstable();
                assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= window), "{window}");
                assert!(starts[0] >= LOWEST && starts.iter().all(|start| *start < 0x5555 << 32));
            }
        }
        assert_eq!(address_of(7, usize::MAX), LOWEST);
    }

    #[test]
    fn a_region_has_addresses_for_more_than_its_room() {
        let window = |grows, room| window_for(FileForm { grows, ..FileForm::default() }, room);
        if limits::addresses().is_some() {
            std::eprintln!("not tried: the process has a limit of addresses");
            return;
        }
        let with_front = |sizes: [usize; 2]| sizes.map(|size| FRONT + size);
        let windows = [window(false, 1 << 18), window(true, 1 << 18)];
        assert_eq!(windows, with_front([64 << 20, 16 << 30]));
        let windows = [window(false, 8 << 20), window(false, 2 << 30)];
        assert_eq!(windows, with_front([128 << 20, 16 << 30]));
        assert_eq!([window(false, 1 << 45), window(true, 1 << 45)], [1 << 46, 1 << 46]);
    }

    #[test]
    fn addresses_are_free_and_differ() {
        let [one, two] = [(); 2].map(|()| any_address(1 << 30).unwrap());
        assert_ne!(one, two);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        assert_eq!(map(one, 4096, libc::PROT_READ, flags, -1), Ok(one));
        assert_eq!(map(one, 4096, libc::PROT_READ, flags, -1), Err(libc::EADDRINUSE));
        unmap(one, 4096);
        assert_eq!(any_address(usize::MAX), None);
    }
}
