//! The stretches of addresses that arenas have reserved from the system.
//!
//! Addresses that go back from between others leave a hole, and each hole is one more mapping. In a
//! process that gives addresses back there may be only so many.

use crate::back::map::page_map;
use crate::back::system::mapping;
use crate::back::system::stretches::Stretches;
use crate::ground::units::PAGE;

/// The stretches of all arenas, without the memory of extent hooks.
static STRETCHES: Stretches = Stretches::new();

/// Whether the pages before and behind a range are the heap's.
fn beside(base: usize, bytes: usize) -> [bool; 2] {
    let pages = [base.wrapping_sub(PAGE), base.wrapping_add(bytes)];
    pages.map(|page| page_map::lookup(page).is_of_run())
}

/// Notes that a range is reserved.
pub(in crate::back) fn note(base: usize, bytes: usize) {
    STRETCHES.add(beside(base, bytes));
}

/// Notes that a range is about to be given back. Returns `false`, and notes nothing, if it would
/// leave a hole and there are too many.
pub(in crate::back) fn may_release(base: usize, bytes: usize) -> bool {
    let beside = beside(base, bytes);
    let may = beside != [true, true] || mapping::may_have(STRETCHES.count());
    if may {
        STRETCHES.remove(beside);
    }
    may
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::fixed::Fixed;

    #[test]
    fn a_range_lies_between_pages_of_the_heap_in_runs_of_any_kind() {
        let mut pages = PageAllocator::for_test(Fixed::leak(8 << 20));
        let [one, two, three] =
            [4, 2, 8].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        assert_eq!((two.base(), three.base()), (one.end(), two.end()));
        let are_beside = || beside(two.base(), two.bytes());
        assert_eq!(are_beside(), [true, true]);
        pages.free(three);
        assert_eq!(are_beside(), [true, true], "what is free is mapped");
        page_map::clear_ends(one);
        assert_eq!(are_beside(), [false, true]);
        page_map::set_ends(one);
    }
}
