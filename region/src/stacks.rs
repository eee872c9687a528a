//! Stacks of return addresses, each noted once, for positions of programs whose source files record
//! none.
//!
//! Lists by hash, which grow at their heads without a lock. What was noted stays.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use lumalloc::control::diversion::past;
use lumalloc::{observe, raw};

/// How many return addresses a stack has at most.
pub(crate) const DEPTH: usize = 8;

const LISTS: usize = 4096;

/// A stack that was noted.
struct Noted {
    stack: [usize; DEPTH],
    /// Never changes once the entry is in its list.
    next: *const Noted,
}

static HEADS: [AtomicPtr<Noted>; LISTS] = [const { AtomicPtr::new(ptr::null_mut()) }; LISTS];

/// Returns the stack of the calling thread outside of the allocator, followed by zeroes, as it was
/// noted. `None` if there is no memory to note it, or no caller is found.
#[cold]
pub(crate) fn here() -> Option<&'static [usize; DEPTH]> {
    note(&observe::callers::<DEPTH>())
}

fn note(stack: &[usize; DEPTH]) -> Option<&'static [usize; DEPTH]> {
    if stack[0] == 0 {
        return None;
    }
    let head = HEADS.get(hash(stack) % LISTS)?;
    // Acquire: pairs with the Release of who noted the stack.
    let mut first = head.load(Ordering::Acquire);
    if let Some(found) = find(first, ptr::null(), stack) {
        return Some(found);
    }
    let new = past(|| raw::malloc(size_of::<Noted>())).cast::<Noted>();
    if new.is_null() {
        return None;
    }
    loop {
        // SAFETY: the entry is new, and long enough.
        unsafe { new.write(Noted { stack: *stack, next: first }) };
        // Release: pairs with the Acquire of who reads the list.
        match head.compare_exchange(first, new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: the entry stays.
            Ok(_) => return unsafe { new.as_ref() }.map(|noted| &noted.stack),
            Err(now) => {
                if let Some(found) = find(now, first, stack) {
                    // SAFETY: no other thread has seen the entry.
                    past(|| unsafe { raw::free(new.cast()) });
                    return Some(found);
                }
                first = now;
            }
        }
    }
}

/// Looks for a stack from one entry of a list up to another one.
fn find(
    first: *const Noted,
    end: *const Noted,
    stack: &[usize; DEPTH],
) -> Option<&'static [usize; DEPTH]> {
    let mut next = first;
    while next != end {
        // SAFETY: entries stay, and were written before they came into the list.
        let noted: &'static Noted = unsafe { next.as_ref() }?;
        if noted.stack == *stack {
            return Some(&noted.stack);
        }
        next = noted.next;
    }
    None
}

fn hash(stack: &[usize; DEPTH]) -> usize {
    /// An odd number without structure: the golden ratio.
    const FACTOR: usize = 0x9e37_79b9_7f4a_7c15;
    let sum = stack
        .iter()
        .fold(0usize, |sum, address| (sum ^ address).wrapping_mul(FACTOR).rotate_left(29));
    sum >> 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn each_stack_is_noted_once() {
        let stacks: Vec<[usize; DEPTH]> =
            (1..2000).map(|number| core::array::from_fn(|place| number * (place + 1))).collect();
        let noted = || stacks.iter().map(|stack| note(stack).expect("memory")).collect::<Vec<_>>();
        let all = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(noted)).collect();
            threads.into_iter().map(|thread| thread.join().expect("noted")).collect::<Vec<_>>()
        });
        for found in &all {
            assert!(found.iter().zip(&all[0]).all(|(one, other)| ptr::eq(*one, *other)));
            assert!(found.iter().zip(&stacks).all(|(noted, stack)| *noted == stack));
        }
    }

    #[test]
    fn no_stack_is_not_noted() {
        assert!(note(&[0; DEPTH]).is_none());
    }
}
