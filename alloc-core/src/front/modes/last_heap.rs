//! The heap of a process that a fatal error ends.
//!
//! The program may have a handler of SIGABRT that allocates, as those that print a backtrace do.
//! The thread that found the error may hold any lock and may have changed half of what the lock
//! guards. So from then on all calls that the caches do not serve are diverted to this heap, and
//! that thread has no cache and waits for no lock. The heap has no lock: blocks are cut from one
//! mapping, and freed ones wait on a stack of their size for their reuse.

use super::block_size;
use super::diversion::{self, Diversion};
use crate::front::bins::thread_cache::UNCACHED;
use crate::front::bins::tls;
use crate::ground::sync::exempt_thread;
use crate::ground::sync::number_stack::NumberStack;
use crate::ground::untouchable;
use crate::middle::blocks::empty_blocks;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The addresses of the heap, of which there may be fewer.
const SIZES: [usize; 3] = [1 << 30, 64 << 20, 1 << 20];
/// The bytes before a block, and the unit of what is cut off.
const HEADER: usize = size_of::<Header>();

/// What lies before a block.
#[repr(C, align(16))]
struct Header {
    /// [`IN_USE`], or the block below this one on a stack.
    link: AtomicU32,
    /// The binary logarithm of the bytes that the block has at least.
    log: AtomicU32,
    /// The bytes that were requested.
    size: AtomicUsize,
}

/// No block has this number.
const IN_USE: u32 = u32::MAX;

static TABLE: Diversion = Diversion {
    is_wanted: || true,
    allocate: |size, align| Some(take(size, align)),
    free: |block, is_own| {
        if !is_own {
            give(block);
        }
        true
    },
    resize: |block, is_own, size, align| Some(resize(block, is_own, size, align)),
    size: |block| Some(size_of_block(block).unwrap_or(0)),
};

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// The first address of the heap, that of the next block's header, and the end. All are 0 if the
/// system gave no memory. Relaxed: the numbers alone are shared, and a block belongs to its caller.
static BASE: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// The freed blocks of each logarithm. A block's number is the distance of its header from
/// [`BASE`], in headers, and one.
type Freed = [NumberStack; 31];

/// Those that lie at a multiple of their bytes, so that they serve each alignment up to these.
static ALIGNED: Freed = [const { NumberStack::new() }; 31];
/// The others, which serve no alignment above [`HEADER`].
static OTHERS: Freed = [const { NumberStack::new() }; 31];

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

/// Returns a block, or null if the heap is used up.
fn take(size: usize, align: usize) -> *mut u8 {
    let is_aligned = align > HEADER;
    let Some(bytes) = size.max(align).max(HEADER).checked_next_power_of_two() else {
        return core::ptr::null_mut();
    };
    let log = bytes.trailing_zeros() as usize;
    let freed = |log: usize| {
        let other = if is_aligned { None } else { OTHERS.get(log).and_then(reuse) };
        other.or_else(|| ALIGNED.get(log).and_then(reuse))
    };
    let block = freed(log).or_else(|| cut(bytes, if is_aligned { bytes } else { HEADER }));
    // Near the end a block gets no more than was requested, or one that is longer is used.
    let block = block.or_else(|| cut(size.max(HEADER), align));
    let longer = || (log + 1..ALIGNED.len()).find_map(freed);
    let Some(header) = block.or_else(longer) else { return core::ptr::null_mut() };
    header.size.store(size, Relaxed);
    block_of(header)
}

/// Returns a freed block of a stack.
fn reuse(freed: &NumberStack) -> Option<&'static Header> {
    let header = header_of_number(freed.pop(|number| &header_of_number(number).link)?);
    header.link.store(IN_USE, Relaxed);
    Some(header)
}

/// Cuts a block of at least so many bytes off the rest of the heap.
fn cut(bytes: usize, align: usize) -> Option<&'static Header> {
    let end = END.load(Relaxed);
    let place = |next: usize| {
        let block = next.checked_add(HEADER)?.checked_next_multiple_of(align.max(HEADER))?;
        let after = block.checked_add(bytes)?.checked_next_multiple_of(HEADER)?;
        (next != 0 && after <= end).then_some((block, after))
    };
    let taken = NEXT.fetch_update(Relaxed, Relaxed, |next| place(next).map(|(_, after)| after));
    let (block, _) = place(taken.ok()?)?;
    let header = header_before(block);
    header.link.store(IN_USE, Relaxed);
    header.log.store(bytes.checked_ilog2()?, Relaxed);
    Some(header)
}

/// Frees a block of this heap. Does nothing with one that is free already, or of another heap.
fn give(block: *mut u8) {
    let Some(header) = header(block) else { return };
    if header.link.compare_exchange(IN_USE, 0, Relaxed, Relaxed).is_err() {
        return;
    }
    let log = header.log.load(Relaxed);
    let is_aligned = block.addr().trailing_zeros() >= log;
    let stacks = if is_aligned { &ALIGNED } else { &OTHERS };
    if let Some(freed) = stacks.get(log as usize) {
        let number = (core::ptr::from_ref(header).addr() - BASE.load(Relaxed)) / HEADER + 1;
        freed.push(number as u32, &header.link);
    }
}

fn header_of_number(number: u32) -> &'static Header {
    header_before(BASE.load(Relaxed) + number as usize * HEADER)
}

/// Returns the header of the block of this heap at an address.
fn header_before(block: usize) -> &'static Header {
    // SAFETY: the header lies before the block, in the mapping, which stays, and is aligned because
    // blocks are. All of it is atomic.
    unsafe { &*core::ptr::with_exposed_provenance(block - HEADER) }
}

fn block_of(header: &'static Header) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(core::ptr::from_ref(header).addr() + HEADER)
}

/// Returns the header of a block. Returns `None` for a block of another heap.
fn header(block: *mut u8) -> Option<&'static Header> {
    let (base, next) = (BASE.load(Relaxed), NEXT.load(Relaxed));
    let is_ours = block.addr() > base && block.addr() < next;
    (is_ours && block.addr().is_multiple_of(HEADER)).then(|| header_before(block.addr()))
}

/// Returns the size of a block of this heap or of no bytes. Returns `None` for a block of a heap to
/// which calls were diverted before.
fn size_of_block(block: *mut u8) -> Option<usize> {
    match header(block) {
        Some(header) => Some(header.size.load(Relaxed)),
        None => empty_blocks::is_block_at(block.addr()).then_some(0),
    }
}

/// Resizes a block, where it is or by moving it. Returns null, and the old block stays, if the heap
/// is used up, or the size of the old block is not known.
fn resize(block: *mut u8, is_own: bool, size: usize, align: usize) -> *mut u8 {
    let own = if is_own { None } else { header(block) };
    if let Some(header) = own
        && size >> header.log.load(Relaxed) == 0
        && block.addr().is_multiple_of(align)
    {
        header.size.store(size, Relaxed);
        return block;
    }
    let old = if is_own { block_size::of_block(block) } else { size_of_block(block) };
    let Some(old) = old else { return core::ptr::null_mut() };
    let new = take(size, align);
    if !new.is_null() {
        // SAFETY: both blocks have at least so many bytes, and the new one is the caller's.
        unsafe { new.copy_from_nonoverlapping(block, old.min(size)) };
        if !is_own {
            give(block);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_and_used_again_until_the_heap_is_used_up() {
        assert!(take(1, 1).is_null(), "there is no heap yet");
        let mut memory = vec![0_u128; 1 << 11];
        let base = memory.as_mut_ptr().expose_provenance();
        BASE.store(base, Relaxed);
        END.store(base + 32768, Relaxed);
        NEXT.store(base, Relaxed);
        blocks_are_cut(base);
        blocks_are_resized();
        freed_blocks_are_used_again();
        aligned_blocks_are_used_again();
        nothing_is_given_where_nothing_is_left();
        let elsewhere = core::ptr::without_provenance_mut(64);
        assert_eq!(size_of_block(elsewhere), None);
        assert!(resize(elsewhere, false, 8, 1).is_null());
        for place in [&BASE, &END, &NEXT] {
            place.store(0, Relaxed);
        }
    }

    fn blocks_are_cut(base: usize) {
        let one = take(100, 1);
        assert_eq!((one.addr(), size_of_block(one)), (base + HEADER, Some(100)));
        let aligned = take(1, 1024);
        assert!(aligned.addr().is_multiple_of(1024) && size_of_block(aligned) == Some(1));
        let empty = take(0, 1);
        assert_eq!(size_of_block(empty), Some(0));
        assert_eq!(size_of_block(resize(empty, false, 8, 1)), Some(8));
        let empty = empty_blocks::allocate().expect("addresses");
        assert_eq!(size_of_block(resize(empty, false, 8, 1)), Some(8));
        empty_blocks::free(empty.addr());
    }

    fn blocks_are_resized() {
        let one = take(100, 1);
        // SAFETY: a block of 100 bytes.
        unsafe { one.write_bytes(7, 100) };
        assert_eq!((resize(one, false, 127, 1), size_of_block(one)), (one, Some(127)), "in place");
        let longer = resize(one, false, 200, 1);
        // SAFETY: a block of 200 bytes, of which 100 were copied.
        assert_eq!(unsafe { longer.wrapping_add(99).read() }, 7);
        assert!(longer != one && size_of_block(longer) == Some(200));
        let aligned = resize(longer, false, 50, 4096);
        // SAFETY: a block of 50 bytes.
        assert_eq!(unsafe { aligned.wrapping_add(49).read() }, 7);
        assert!(aligned.addr().is_multiple_of(4096));
        assert_eq!(take(129, 1), longer, "the old block was freed");
    }

    fn freed_blocks_are_used_again() {
        let blocks = [take(600, 1), take(600, 1), take(600, 1)];
        let is_aligned = |block: &*mut u8| block.addr().is_multiple_of(1024);
        let mut others: Vec<*mut u8> = blocks.into_iter().filter(|b| !is_aligned(b)).collect();
        others.iter().for_each(|block| give(*block));
        let (last, first) = (others.pop().expect("a block"), others.pop().expect("a block"));
        give(last);
        assert_eq!([take(513, 16), take(1024, 1)], [last, first], "freed once only");
    }

    /// In whatever order aligned and other blocks are freed, no more are cut than live at a time.
    fn aligned_blocks_are_used_again() {
        let cut = || {
            let blocks = [take(200, 64), take(256, 1), take(256, 1), take(130, 256)];
            assert!(blocks[0].addr().is_multiple_of(64) && blocks[3].addr().is_multiple_of(256));
            [0, 3, 1, 2].iter().for_each(|n| give(blocks[*n]));
            NEXT.load(Relaxed)
        };
        cut();
        let next = cut();
        assert_eq!([(); 100].map(|()| cut()), [next; 100]);
    }

    fn nothing_is_given_where_nothing_is_left() {
        let rest = END.load(Relaxed) - NEXT.load(Relaxed) - HEADER;
        assert!(take(rest + 1, 1).is_null() && take(usize::MAX, 1).is_null());
        let all = take(rest, 1);
        assert_eq!((size_of_block(all), rest.is_power_of_two()), (Some(rest), false));
        assert!(take(3000, 1).is_null());
        give(all);
        let shorter = take(1500, 1);
        assert_eq!(shorter, all, "a longer one than requested");
        assert!(resize(shorter, false, 32768, 1).is_null());
        assert_eq!(size_of_block(shorter), Some(1500), "the old block stays");
    }
}
