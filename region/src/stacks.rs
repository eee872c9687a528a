//! Stacks of return addresses, each noted once, for positions of programs whose source files record
//! none.

use crate::noted::note;
use lumalloc::observe;

/// How many return addresses a stack has at most.
pub(crate) const DEPTH: usize = 8;

/// Returns the stack of the calling thread outside of the allocator, followed by zeroes, as it was
/// noted. `None` if there is no memory to note it, or no caller is found.
#[cold]
pub(crate) fn here() -> Option<&'static [usize; DEPTH]> {
    noted(&observe::callers::<DEPTH>())
}

fn noted(stack: &[usize; DEPTH]) -> Option<&'static [usize; DEPTH]> {
    if stack[0] == 0 {
        return None;
    }
    // SAFETY: addresses are bytes.
    let bytes = unsafe { core::slice::from_raw_parts(stack.as_ptr().cast(), size_of_val(stack)) };
    let noted = note(bytes)?.as_ptr();
    // SAFETY: these are so many addresses, aligned for them, which never change.
    unsafe { noted.cast::<[usize; DEPTH]>().as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_noted_as_it_is() {
        let stack = core::array::from_fn(|place| 7 * (place + 1));
        assert_eq!(noted(&stack), Some(&stack));
        assert!(core::ptr::eq(noted(&stack).unwrap(), noted(&stack).unwrap()));
    }

    #[test]
    fn no_stack_is_not_noted() {
        assert!(noted(&[0; DEPTH]).is_none());
    }
}
