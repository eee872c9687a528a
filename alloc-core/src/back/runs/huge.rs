//! Huge pages under long blocks.
//!
//! A block for which huge pages were asked is a mapping of its own ([`Mapping::Huge`]). Once
//! purged, it is an ordinary mapping again. Small blocks that later lie there take small pages, and
//! the system puts no huge page into the hole. A block that is requested as zeros may be hardly
//! touched, so it takes small pages. What options and system allow is described in
//! [`crate::back::system::thp`].

use super::chunk_notes;
use crate::back::map::extent::Extent;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::PageProvider;
use crate::back::system::thp;
use core::ptr::NonNull;

/// Shorter blocks are not backed by huge pages unless all memory is.
pub(crate) const SHORTEST: usize = 4 << 20;

/// Asks for huge pages under the first `bytes` of a block that its caller is about to fill. The
/// caller owns the block, which has no memory yet or has just been lengthened.
pub(crate) fn back(provider: &dyn PageProvider, block: &'static Extent, bytes: usize) {
    let wanted = block.bytes() >= SHORTEST && !block.mapping().is_advised() && thp::backs_blocks();
    let Some(base) = NonNull::new(block.base_ptr()).filter(|_| wanted) else { return };
    // A block in pieces of chunks becomes one mapping, as long as nothing is in it.
    let is_empty = block.mapping() == Mapping::Chunks && block.zeroed.get();
    // SAFETY: the caller owns the block, and nothing has been written to it.
    if is_empty && unsafe { provider.renew(base, block.bytes()) } {
        chunk_notes::forget_chunks(block);
    }
    let has_room = bytes < block.bytes();
    if has_room {
        keep_one_mapping(block, bytes);
    }
    // SAFETY: the caller owns the block.
    if unsafe { provider.advise_huge(base, bytes, true) } && !block.mapping().is_own() {
        block.set_mapping(match block.mapping() {
            Mapping::Chunks => Mapping::Several,
            _ if has_room => Mapping::HugeButEnd,
            _ => Mapping::Huge,
        });
    }
}

/// Ensures that a block of which the first `bytes` are to be advised can be one mapping again. The
/// system makes one mapping of two only if they were one when their first page was brought in. So
/// this brings in the page in which the request ends, which its caller is about to write.
fn keep_one_mapping(block: &Extent, bytes: usize) {
    if block.zeroed.get() {
        // SAFETY: inside the block, which the caller owns and which reads zero.
        unsafe { block.base_ptr().wrapping_add(bytes).write_volatile(0) };
    }
}

/// Whether huge pages were asked for a long block, but not under the room at its end.
pub(crate) fn has_room(block: &Extent) -> bool {
    block.mapping() == Mapping::HugeButEnd && block.bytes() >= SHORTEST
}

/// Asks for huge pages under the room at a block's end too. The block is then one mapping.
pub(crate) fn back_room(provider: &dyn PageProvider, block: &'static Extent) {
    let Some(base) = NonNull::new(block.base_ptr()).filter(|_| has_room(block)) else { return };
    // SAFETY: the caller owns the run.
    if unsafe { provider.advise_huge(base, block.bytes(), true) } {
        block.set_mapping(Mapping::Huge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp::HUGE;
    use crate::back::system::thp::tests::has_huge_pages;
    use crate::ground::units::LG_PAGE;

    /// Maps addresses that cannot be one mapping with what lies beside them.
    fn lonely(bytes: usize) -> NonNull<u8> {
        let whole = bytes + 3 * HUGE;
        let anywhere = core::ptr::null_mut();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let all = unsafe { libc::mmap(anywhere, whole, libc::PROT_NONE, flags, -1, 0) };
        let inner = (all as usize).next_multiple_of(HUGE) + HUGE;
        let base = all.wrapping_byte_add(inner - all as usize);
        // SAFETY: inside what was just mapped.
        let status = unsafe { libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(status, 0);
        NonNull::new(base.cast()).unwrap()
    }

    #[test]
    fn a_block_that_was_written_past_its_huge_pages_can_be_one_mapping_again() {
        use crate::back::system::page_provider::Moved;
        if !has_huge_pages() {
            return;
        }
        let (bytes, begun) = (5 * HUGE, 4 * HUGE);
        let run: &'static Extent = Box::leak(Box::new(Extent::new(0)));
        run.set_range(lonely(bytes).as_ptr() as usize, bytes >> LG_PAGE);
        run.zeroed.set(true);
        back(&Mmap, run, begun);
        assert_eq!(run.mapping(), Mapping::HugeButEnd);
        let write = |at: usize| {
            // SAFETY: the test owns the memory.
            unsafe { run.base_ptr().wrapping_add(at).write(7) };
        };
        write(0);
        write(begun);
        back_room(&Mmap, run);
        let (from, to) = (NonNull::new(run.base_ptr()).unwrap(), lonely(bytes + HUGE));
        // SAFETY: the test owns both ranges, and no block lies in them.
        let moved = unsafe { Mmap.move_pages(from, bytes, to, bytes + HUGE) };
        // Another test may map something at the old place.
        assert!(matches!(moved, Moved::Here | Moved::Away), "{moved:?}");
        for at in [0, begun] {
            // SAFETY: the test owns the memory.
            assert_eq!(unsafe { to.as_ptr().wrapping_add(at).read() }, 7);
        }
        run.set_mapping(Mapping::Ordinary);
    }
}
