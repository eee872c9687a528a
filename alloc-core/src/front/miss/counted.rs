//! malloc and free of a thread whose cells move with every operation (`thread.allocatedp`), where
//! no mode is on: straight from the façade to the real bin and back, and to the thread's cell.
//!
//! The façade says whether this way is open, in a flag beside its bins. Bins that miss or are full,
//! and blocks that are not in the class map, take the way of all modes, which counts them itself.

use crate::front::bins::thread_cache::{Cells, ThreadCache};
use crate::front::cache::facade::Facade;
use crate::front::cache::thread::move_by;
use crate::ground::checked::at;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_OF_SIZE, OFFSET_UNIT, ROWS};

/// Returns the front of the real cache behind `cache`, and the cells of its thread, if that is a
/// façade that does no more than count.
#[inline(always)]
fn behind(cache: &'static ThreadCache) -> Option<(&'static ThreadCache, &'static Cells)> {
    let cells = cache.cells()?;
    // SAFETY: only façades have cells.
    Some((unsafe { Facade::of_mode(cache) }.behind(), cells))
}

/// Returns the bytes of a block of the bin at `units`, which is not the trap.
#[inline(always)]
fn bytes(units: usize) -> usize {
    // SAFETY: a bin behind the trap has a class.
    unsafe { at(&ROWS, units / (BIN_BYTES / OFFSET_UNIT) - 1) }.size as usize
}

/// Returns the place of the bin that serves a request that rounds to at most [`MAX_CACHED`], in
/// [`OFFSET_UNIT`]s: that of the trap for a request of 0 bytes.
#[inline(always)]
fn units_of(size: usize, align: usize) -> usize {
    let rounded = size.wrapping_add(align - 1) & align.wrapping_neg();
    debug_assert!(rounded <= MAX_CACHED);
    // SAFETY: the table has an entry for each size up to MAX_CACHED.
    usize::from(*unsafe { at(&OFFSET_OF_SIZE, (rounded + 7) >> 3) })
}

/// Returns the bytes of the block that [`malloc`] has returned for a request.
#[inline(always)]
pub(crate) fn length(size: usize, align: usize) -> usize {
    bytes(units_of(size, align))
}

/// Allocates a block for a request that rounds to at most [`MAX_CACHED`]. Returns null if the cache
/// is no such façade, or its real bin misses.
#[inline(always)]
pub(crate) fn malloc(cache: &'static ThreadCache, size: usize, align: usize) -> *mut u8 {
    let Some((real, [allocated, _])) = behind(cache) else { return core::ptr::null_mut() };
    // The trap has no blocks.
    let units = units_of(size, align);
    let count = |_| move_by(allocated, bytes(units));
    real.pop_or(units * OFFSET_UNIT, count, core::ptr::null_mut)
}

/// Frees a block whose bin stands at `units` by the class map. Returns `false`, and does nothing,
/// if the cache is no such façade, `units` is 0, or the bin is full.
#[inline(always)]
pub(super) fn free(cache: &'static ThreadCache, block: *mut u8, units: usize) -> bool {
    let Some((real, [_, freed])) = behind(cache) else { return false };
    let bin = real.bin_at(units * OFFSET_UNIT);
    // The bin may be screened. The trap takes nothing.
    let is_done = bin.push(block) || bin.put(block);
    if is_done {
        move_by(freed, bytes(units));
    }
    is_done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::thread as own;
    use crate::front::bins::tls;
    use crate::front::calls::free::free as free_any;
    use crate::front::calls::malloc::malloc as malloc_any;
    use crate::ground::size_class::SizeClass;
    use core::sync::atomic::Ordering::Relaxed;

    fn cells(cache: &ThreadCache) -> [u64; 2] {
        cache.cells().expect("cells").each_ref().map(|cell| cell.load(Relaxed))
    }

    /// Runs `test` with the façade of a thread whose cells are asked for.
    fn run(test: fn(&'static ThreadCache)) {
        let counted = move || {
            let block = malloc_any(1);
            // SAFETY: freed once.
            unsafe { free_any(block) };
            assert!(tls::current().cells().is_none(), "not yet");
            let place = own::allocatedp().expect("a thread");
            let front = tls::current();
            assert!(core::ptr::eq(front.cells().expect("cells").as_ptr().cast(), place.as_ptr()));
            test(front);
        };
        std::thread::spawn(counted).join().expect("no panic");
    }

    /// Leaves some blocks of a class in the bin.
    fn warm(size: usize) {
        let blocks = [(); 8].map(|()| malloc_any(size));
        // SAFETY: freed once.
        blocks.into_iter().for_each(|block| unsafe { free_any(block) });
    }

    #[test]
    fn a_hit_moves_a_cell_by_the_bytes_of_its_class() {
        run(|front| {
            for class in SizeClass::all() {
                warm(class.size());
                let align = if class.size().is_multiple_of(64) { 64 } else { 1 };
                let [allocated, freed] = cells(front);
                let block = malloc(front, class.size() - 3, align);
                assert!(!block.is_null() && block.addr().is_multiple_of(align));
                let bytes = class.size() as u64;
                assert_eq!(cells(front), [allocated + bytes, freed]);
                assert!(free(front, block, class.bin() * BIN_BYTES / OFFSET_UNIT));
                assert_eq!(cells(front), [allocated + bytes, freed + bytes]);
            }
        });
    }

    #[test]
    fn a_miss_does_nothing() {
        run(|front| {
            warm(64);
            let before = cells(front);
            let bin = SizeClass::of(64).bin();
            let real = behind(front).expect("a façade").0.bin(bin);
            assert!(malloc(front, 0, 1).is_null());
            assert!(!free(front, core::ptr::without_provenance_mut(8), 0), "the trap");
            assert_eq!(cells(front), before);
            let left = real.countdown();
            real.set_countdown(0);
            assert!(malloc(front, 64, 1).is_null(), "the countdown has run out");
            real.set_countdown(left);
            assert_eq!(cells(front), before);
            let mut blocks = Vec::new();
            blocks.extend(core::iter::from_fn(|| {
                Some(malloc(front, 64, 1)).filter(|block| !block.is_null())
            }));
            assert_eq!(cells(front)[0] - before[0], 64 * blocks.len() as u64);
            // A real cache has none.
            assert!(cache_behind(front).cells().is_none());
            assert!(!free(cache_behind(front), blocks[0], bin * BIN_BYTES / OFFSET_UNIT));
            // SAFETY: freed once.
            blocks.into_iter().for_each(|block| unsafe { free_any(block) });
        });
    }

    fn cache_behind(front: &'static ThreadCache) -> &'static ThreadCache {
        behind(front).expect("a façade").0
    }

    #[test]
    fn a_screened_bin_takes_blocks_too_until_it_is_full() {
        run(|front| {
            let (class, units) = (SizeClass::of(320), SizeClass::of(320).bin() * 4);
            let blocks = [(); 2048].map(|()| malloc_any(320));
            let [allocated, freed] = cells(front);
            cache_behind(front).bin(class.bin()).screen();
            let taken = blocks.iter().take_while(|block| free(front, **block, units)).count();
            assert!(taken > 0 && taken < blocks.len());
            assert_eq!(cells(front), [allocated, freed + 320 * taken as u64]);
            // SAFETY: freed once.
            blocks.into_iter().skip(taken).for_each(|block| unsafe { free_any(block) });
            assert_eq!(cells(front), [allocated, freed + 320 * 2048]);
        });
    }
}
