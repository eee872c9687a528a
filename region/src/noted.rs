//! Bytes that are noted once, and stay: the names of source files and functions, which go when a
//! plug-in is closed, and stacks of return addresses.
//!
//! Lists by hash, which grow at their heads without a lock.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use lumalloc::control::diversion::past;
use lumalloc::raw;

const LISTS: usize = 4096;

/// What was noted. The bytes follow.
struct Noted {
    /// Never changes once the entry is in its list.
    next: *const Noted,
    length: usize,
}

static HEADS: [AtomicPtr<Noted>; LISTS] = [const { AtomicPtr::new(ptr::null_mut()) }; LISTS];

/// Returns bytes as they were noted, at an address for a `usize`. `None` if there is no memory to
/// note them.
pub(crate) fn note(bytes: &[u8]) -> Option<&'static [u8]> {
    let head = HEADS.get(hash(bytes) % LISTS)?;
    // Acquire: pairs with the Release of who noted the bytes.
    let mut first = head.load(Ordering::Acquire);
    if let Some(found) = find(first, ptr::null(), bytes) {
        return Some(found);
    }
    let new = make(bytes)?;
    loop {
        // SAFETY: the entry is new, and no other thread has seen it.
        unsafe { new.write(Noted { next: first, length: bytes.len() }) };
        // Release: pairs with the Acquire of who reads the list.
        match head.compare_exchange(first, new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: the entry stays.
            Ok(_) => return unsafe { new.as_ref() }.map(Noted::bytes),
            Err(now) => {
                if let Some(found) = find(now, first, bytes) {
                    // SAFETY: no other thread has seen the entry.
                    past(|| unsafe { raw::free(new.cast()) });
                    return Some(found);
                }
                first = now;
            }
        }
    }
}

/// Returns whether bytes that were noted begin at an address. This takes time with all of them.
pub(crate) fn is_noted(start: usize) -> bool {
    HEADS.iter().any(|head| {
        // Acquire: pairs with the Release of who noted the bytes.
        let mut next: *const Noted = head.load(Ordering::Acquire);
        // SAFETY: entries stay, and were written before they came into the list.
        while let Some(noted) = unsafe { next.as_ref() } {
            if noted.bytes().as_ptr().addr() == start {
                return true;
            }
            next = noted.next;
        }
        false
    })
}

impl Noted {
    /// The bytes behind an entry of a list.
    fn bytes(&'static self) -> &'static [u8] {
        // The provenance of the whole block, which was exposed when it was made.
        let start = ptr::from_ref(self).addr() + size_of::<Noted>();
        // SAFETY: an entry has so many bytes behind it, which never change.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(start), self.length) }
    }
}

/// Makes a place for an entry, with the bytes behind it.
fn make(bytes: &[u8]) -> Option<*mut Noted> {
    let size = bytes.len().checked_add(size_of::<Noted>())?;
    let new = past(|| raw::malloc(size));
    if new.is_null() {
        return None;
    }
    let start = new.expose_provenance() + size_of::<Noted>();
    let behind = ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the block is new, and has room for the bytes.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), behind, bytes.len()) };
    Some(new.cast())
}

/// Looks for bytes from one entry of a list up to another one.
fn find(first: *const Noted, end: *const Noted, bytes: &[u8]) -> Option<&'static [u8]> {
    let mut next = first;
    while next != end {
        // SAFETY: entries stay, and were written before they came into the list.
        let noted: &'static Noted = unsafe { next.as_ref() }?;
        if noted.bytes() == bytes {
            return Some(noted.bytes());
        }
        next = noted.next;
    }
    None
}

fn hash(bytes: &[u8]) -> usize {
    /// An odd number without structure: the golden ratio.
    const FACTOR: usize = 0x9e37_79b9_7f4a_7c15;
    let words = bytes.chunks(size_of::<usize>()).map(|chunk| {
        let mut word = [0; size_of::<usize>()];
        word.iter_mut().zip(chunk).for_each(|(place, byte)| *place = *byte);
        usize::from_ne_bytes(word)
    });
    let sum = words.fold(0usize, |sum, word| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29));
    sum >> 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn all_bytes_are_noted_once() {
        let names: Vec<String> = (1..2000).map(|number| std::format!("{number}.c")).collect();
        let note = |name: &String| note(name.as_bytes()).expect("memory");
        let noted = || names.iter().map(note).collect::<Vec<_>>();
        let all = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(noted)).collect();
            threads.into_iter().map(|thread| thread.join().expect("noted")).collect::<Vec<_>>()
        });
        for found in &all {
            assert!(found.iter().zip(&all[0]).all(|(one, other)| ptr::eq(*one, *other)));
            assert!(found.iter().zip(&names).all(|(noted, name)| *noted == name.as_bytes()));
        }
        let start = all[0][7].as_ptr().addr();
        assert_eq!([is_noted(start), is_noted(start + 1), is_noted(0)], [true, false, false]);
    }
}
