//! The heap of a process that a fatal error ends.
//!
//! The program may have a handler of SIGABRT that allocates, as those that print a backtrace do.
//! The thread that found the error may hold any lock and may have changed half of what the lock
//! guards. So from then on all calls that the caches do not serve are diverted to this heap, and
//! that thread has no cache and waits for no lock. The heap has no lock: blocks are cut from one
//! mapping, and none returns to it.

use super::block_size;
use super::diversion::{self, Diversion};
use crate::front::bins::thread_cache::UNCACHED;
use crate::front::bins::tls;
use crate::ground::sync::exempt_thread;
use crate::ground::untouchable;
use crate::middle::blocks::empty_blocks;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The addresses of the heap, of which there may be fewer.
const SIZES: [usize; 3] = [1 << 30, 64 << 20, 1 << 20];
/// The bytes before a block, which hold its size.
const HEADER: usize = 16;

static TABLE: Diversion = Diversion {
    is_wanted: || true,
    allocate: |size, align| Some(cut(size, align)),
    free: |_, _| true,
    resize: |block, is_own, size, align| Some(copy(block, is_own, size, align)),
    size: |block| Some(size_of_block(block).unwrap_or(0)),
};

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// The first address of the heap, that of the next block's header, and the end. All are 0 if the
/// system gave no memory. Relaxed: the numbers alone are shared, and a block belongs to its caller.
static BASE: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Diverts the calls of all threads to this heap. The calling thread, which ends the process, loses
/// its cache and waits for no lock any more.
pub(crate) fn begin() {
    exempt_thread::begin();
    tls::set_current(&UNCACHED);
    if HAS_BEGUN.swap(true, Relaxed) {
        return;
    }
    let mapped = SIZES.iter().find_map(|size| {
        let base = untouchable::reserve(*size)?;
        // Under mlockall(MCL_FUTURE) the system would give all of it memory.
        untouchable::unlock(base, *size);
        untouchable::open_page(base, *size).then_some((base, *size))
    });
    if let Some((base, size)) = mapped {
        BASE.store(base, Relaxed);
        END.store(base + size, Relaxed);
        NEXT.store(base, Relaxed);
    }
    diversion::turn_to(&TABLE);
}

/// Returns a new block, or null if the heap is used up.
fn cut(size: usize, align: usize) -> *mut u8 {
    let end = END.load(Relaxed);
    let place = |next: usize| {
        let block = next.checked_add(HEADER)?.checked_next_multiple_of(align.max(HEADER))?;
        let after = block.checked_add(size)?.checked_next_multiple_of(HEADER)?;
        (next != 0 && after <= end).then_some((block, after))
    };
    let taken = NEXT.fetch_update(Relaxed, Relaxed, |next| place(next).map(|(_, after)| after));
    let Some((block, _)) = taken.ok().and_then(place) else { return core::ptr::null_mut() };
    let block = core::ptr::with_exposed_provenance_mut::<u8>(block);
    // SAFETY: the header lies before the block, both in the part of the mapping that was just cut
    // off, and it is aligned because blocks are.
    unsafe { block.cast::<usize>().wrapping_sub(1).write(size) };
    block
}

/// Returns the size of a block of this heap or of no bytes. Returns `None` for a block of a heap to
/// which calls were diverted before.
fn size_of_block(block: *mut u8) -> Option<usize> {
    // A block of no bytes may end where the next one's header begins.
    let is_ours = (BASE.load(Relaxed) + 1..=NEXT.load(Relaxed)).contains(&block.addr());
    if !is_ours {
        return empty_blocks::is_block_at(block.addr()).then_some(0);
    }
    // SAFETY: a block of this heap, behind its header.
    Some(unsafe { block.cast::<usize>().wrapping_sub(1).read() })
}

/// Returns a new block with the contents of an old one, which stays. Returns null if the heap is
/// used up, or the size of the old block is not known.
fn copy(block: *mut u8, is_own: bool, size: usize, align: usize) -> *mut u8 {
    let old = if is_own { block_size::of_block(block) } else { size_of_block(block) };
    let Some(old) = old else { return core::ptr::null_mut() };
    let new = cut(size, align);
    if !new.is_null() {
        // SAFETY: both blocks have at least so many bytes, and the new one is fresh.
        unsafe { new.copy_from_nonoverlapping(block, old.min(size)) };
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_one_after_another_until_the_heap_is_used_up() {
        assert!(cut(1, 1).is_null(), "there is no heap yet");
        let mut memory = vec![0_u128; 1 << 10];
        let base = memory.as_mut_ptr().expose_provenance();
        BASE.store(base, Relaxed);
        END.store(base + 16384, Relaxed);
        NEXT.store(base, Relaxed);
        let one = cut(100, 1);
        assert_eq!((one.addr(), size_of_block(one)), (base + HEADER, Some(100)));
        // SAFETY: a block of 100 bytes.
        unsafe { one.write_bytes(7, 100) };
        let aligned = cut(1, 1024);
        assert!(aligned.addr().is_multiple_of(1024) && size_of_block(aligned) == Some(1));
        let longer = copy(one, false, 200, 1);
        // SAFETY: a block of 200 bytes, of which 100 were copied.
        assert_eq!(unsafe { longer.wrapping_add(99).read() }, 7);
        assert_eq!(size_of_block(longer), Some(200));
        let shorter = copy(longer, false, 50, 64);
        // SAFETY: a block of 50 bytes.
        assert_eq!(unsafe { shorter.wrapping_add(49).read() }, 7);
        assert!(shorter.addr().is_multiple_of(64));
        let empty = cut(0, 1);
        assert_eq!(size_of_block(empty), Some(0));
        assert_eq!(size_of_block(copy(empty, false, 8, 1)), Some(8));
        let empty = empty_blocks::allocate().expect("addresses");
        assert_eq!(size_of_block(copy(empty, false, 8, 1)), Some(8));
        empty_blocks::free(empty.addr());
        assert!(cut(16384, 1).is_null() && cut(usize::MAX, 1).is_null());
        assert!(copy(one, false, 16384, 1).is_null(), "the old block stays");
        assert_eq!(size_of_block(one), Some(100));
        let elsewhere = core::ptr::without_provenance_mut(64);
        assert_eq!(size_of_block(elsewhere), None);
        assert!(copy(elsewhere, false, 8, 1).is_null());
        for place in [&BASE, &END, &NEXT] {
            place.store(0, Relaxed);
        }
    }
}
