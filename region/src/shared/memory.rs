//! Addresses for regions that processes share.

use super::front::FRONT;
use crate::errno;
use crate::random::random;
use core::ffi::{c_int, c_void};
use core::ptr;

/// Where regions lie if the program does not say: far from programs, stacks and libraries, and at
/// random, so that two regions made by two processes have room in a third.
const LOWEST: usize = 1 << 44;
const CHOICES: u64 = 1 << 24;
const STEP: usize = 2 << 20;
const ATTEMPTS: usize = 32;

/// Addresses for a file that can grow, if the system allows so many.
const WINDOW: usize = 16 << 30;

/// Returns an address at which so many bytes can be mapped. Source: vmalloc(3), `vmmaddress`.
pub fn any_address(size: usize) -> Option<usize> {
    let size = size.max(1).checked_next_multiple_of(lumalloc::PAGE)?;
    let candidate = |_| LOWEST + (random(size) % CHOICES) as usize * STEP;
    (0..ATTEMPTS).map(candidate).find(|&address| is_unused(address, size))
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

/// Maps the addresses of a new region with so much room: [`WINDOW`], or fewer if the system does
/// not allow so many. Returns where they begin, and how many there are.
pub(super) fn map_window(
    descriptor: c_int,
    base: usize,
    room: usize,
) -> Result<(usize, usize), c_int> {
    let mut window = WINDOW.max(room.saturating_mul(2));
    loop {
        let base = if base == 0 { any_address(window).unwrap_or(0) } else { base };
        match map_shared(base, window, descriptor) {
            Ok(start) => return Ok((start, window)),
            Err(libc::ENOMEM) if window / 2 >= FRONT + room => {
                window = (window / 2).next_multiple_of(lumalloc::PAGE);
            }
            Err(code) => return Err(code),
        }
    }
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
