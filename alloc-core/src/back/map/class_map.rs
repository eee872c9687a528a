//! The class map: address → bin in one load, for addresses near the first reservation.
//!
//! ```text
//!   address   47 ………………… 12 │ 11 … 0
//!                   │
//!   WINDOW.bytes[page − WINDOW.first] ──▶ offset of the class's bin / 8
//! ```
//! It has a byte for each page of a window of addresses, beside the page map, for the fast path of
//! free: one load less on the way to the bin, and an eighth of the cache lines. It is a hint that
//! is never wrong, because 0 sends a free the slow way, by the page map. The byte is 0 for
//! addresses outside of the window, pages of no slab, and slabs made before the window was open.

use super::page_words;
use super::reach::Reach;
use super::table::{self, PIECE};
use super::writable::Writable;
use crate::ground::os;
use crate::ground::size_class::OFFSET_UNIT;
use crate::ground::units::{LG_PAGE, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

/// Pages of the window: 128 GiB of addresses. Only the used parts of its table of 32 MiB are
/// touched.
const PAGES: usize = 1 << 25;
/// The table takes at most this part of a limit on addresses.
const PART_OF_LIMIT: usize = 64;
/// Bytes above the first reservation that the window covers. The rest of the window is below,
/// because the system hands out lower and lower addresses.
const ABOVE: usize = 8 << 30;
/// A system that hands out higher and higher addresses begins below this.
const UPWARDS_BELOW: usize = 1 << 46;

/// The window around the first reservation.
#[repr(align(64))]
struct Window {
    reach: Reach,
    /// Whether the window was opened, or could not be.
    is_tried: AtomicBool,
    /// Which parts of the table are writable.
    writable: Writable<NOTES>,
}

/// Words that hold a bit for each piece of the table.
const NOTES: usize = PAGES / PIECE / 64;
const _: () = assert!(NOTES * 64 * PIECE == PAGES);

static WINDOW: Window = Window::closed();

impl Window {
    const fn closed() -> Window {
        Window {
            reach: Reach::nothing(),
            is_tried: AtomicBool::new(false),
            writable: Writable::none(),
        }
    }

    #[inline(always)]
    fn bin_units(&self, address: usize) -> Option<usize> {
        let byte = self.reach.byte_of(address)?;
        // A plain load suffices: the byte of a block in use was written before the block was handed
        // out, and does not change before the block has been freed and its slab emptied.
        // SAFETY: the table has a byte for each page of the window, and is never unmapped.
        Some(usize::from(unsafe { byte.read() }))
    }

    fn set(&self, base: usize, pages: usize, bin_offset: usize) {
        debug_assert!(bin_offset.is_multiple_of(OFFSET_UNIT) && bin_offset / OFFSET_UNIT <= 255);
        let last = base + (pages - 1) * PAGE;
        let reached = (self.reach.byte_of(base), self.reach.byte_of(last));
        let (Some(first), Some(_)) = reached else { return };
        let (table, size) = self.reach.table();
        let from = first.addr() - table.addr();
        let Some(table) = NonNull::new(table) else { return };
        // SAFETY: `writable` is of this table, and the first and the last byte lie in the table.
        if !unsafe { table::open(&self.writable, table, size, from, pages) } {
            // If the table cannot be written, all bytes stay 0, and each free uses the page map.
            return;
        }
        // SAFETY: both ends lie in the table, and only the holder of the run writes its bytes.
        unsafe { first.write_bytes((bin_offset / OFFSET_UNIT) as u8, pages) };
    }

    /// Opens the window around `base`, in a process that may have `limit` bytes of addresses.
    fn open(&self, base: usize, limit: usize) {
        let pages = PAGES.min(limit / PART_OF_LIMIT / PAGE * PAGE);
        if pages == 0 {
            return;
        }
        let first = first_page(base, pages);
        let own = (base >> LG_PAGE) - first;
        let Some(table) = table::reserve(pages, own, 1, &self.writable) else { return };
        page_words::MAPPED.add(pages as u64);
        self.reach.open(table.as_ptr(), first, pages);
    }
}

/// The offset of the bin for the page of `block`, in units of [`OFFSET_UNIT`]. If it is `None`, or
/// 0 for the trap bin, the page map must be used.
#[inline(always)]
pub(crate) fn bin_units(block: *mut u8) -> Option<usize> {
    WINDOW.bin_units(block as usize)
}

/// As [`bin_units`], but in bytes.
#[inline(always)]
pub(crate) fn bin_offset(block: *mut u8) -> Option<usize> {
    bin_units(block).map(|units| units * OFFSET_UNIT)
}

/// Notes the bin of all pages of a slab, or 0 when they are a slab no more. A slab that reaches out
/// of the window is not noted.
pub(crate) fn set(base: usize, pages: usize, bin_offset: usize) {
    WINDOW.set(base, pages, bin_offset);
}

/// Opens the window around the first reservation, if there is memory for its table.
pub(crate) fn open(base: usize) {
    let tried = &WINDOW.is_tried;
    if !tried.load(Ordering::Relaxed) && !tried.swap(true, Ordering::Relaxed) {
        WINDOW.open(base, os::address_limit());
    }
}

fn first_page(base: usize, pages: usize) -> usize {
    if base < UPWARDS_BELOW {
        return base >> LG_PAGE;
    }
    let above = (ABOVE >> LG_PAGE).min(pages / 8);
    (base >> LG_PAGE).saturating_add(above).saturating_sub(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reaches_below_the_first_reservation_or_above_a_low_one() {
        let high = 0x7f12_3456_7000;
        let above = (high >> LG_PAGE) + (ABOVE >> LG_PAGE);
        assert_eq!(first_page(high, PAGES), above - PAGES);
        assert_eq!(first_page(UPWARDS_BELOW, 4096), (UPWARDS_BELOW >> LG_PAGE) + 512 - 4096);
        assert_eq!(first_page(0x2aaa_0000_0000, PAGES), 0x2aaa_0000_0000 >> LG_PAGE);
        assert_eq!(first_page(high, 4096), (high >> LG_PAGE) + 512 - 4096);
    }

    #[test]
    fn unknown_addresses_have_no_bin() {
        for address in [0, 1, 0x1000, usize::MAX, 1 << 48, (1 << 48) - 1, 1 << 63] {
            let block = core::ptr::without_provenance_mut(address);
            assert_eq!(bin_offset(block).unwrap_or(0), 0);
        }
    }

    #[test]
    fn the_pages_of_a_slab_inside_a_window_have_its_bin() {
        const HIGH: usize = 0x7f12_3456_7000;
        let window = Window::closed();
        assert_eq!(window.bin_units(HIGH), None);
        window.open(HIGH, 0);
        assert_eq!(window.bin_units(HIGH), None);

        // The limit allows a little more, but the table has a whole number of pages.
        let pages = 4 * PIECE;
        window.open(HIGH, (pages + PAGE - 1) * PART_OF_LIMIT);
        // The last eighth is above the first reservation, whose piece is writable.
        assert_eq!([0, 1, 2, 3].map(|at| window.writable.is_set(at)), [false, false, false, true]);
        let begin = HIGH + ((pages / 8) << LG_PAGE) - (pages << LG_PAGE);
        let end = begin + (pages << LG_PAGE);
        let units = |address| window.bin_units(address);
        assert_eq!([begin - 1, begin, end - 1, end].map(units), [None, Some(0), Some(0), None]);
        window.set(end - 3 * PAGE, 3, 3 * OFFSET_UNIT);
        let ends = [end - 3 * PAGE - 1, end - 3 * PAGE, end - 1];
        assert_eq!(ends.map(units), [Some(0), Some(3), Some(3)]);
        // A slab that reaches out of the window is not noted.
        window.set(end - 2 * PAGE, 3, OFFSET_UNIT);
        window.set(begin - PAGE, 2, OFFSET_UNIT);
        assert_eq!([begin, end - 2 * PAGE].map(units), [Some(0), Some(3)]);
        window.set(begin, pages, 255 * OFFSET_UNIT);
        assert_eq!([begin, begin + ((pages / 2) << LG_PAGE), end - 1].map(units), [Some(255); 3]);
        window.set(begin, pages, 0);
        assert_eq!(ends.map(units), [Some(0); 3]);
    }

    #[test]
    fn the_longest_window_notes_each_piece() {
        let window = Window::closed();
        window.open(0x2aaa_0000_0000, usize::MAX);
        let last = 0x2aaa_0000_0000 + ((PAGES - 1) << LG_PAGE);
        assert!(window.writable.is_set(0) && !window.writable.is_set(PAGES / PIECE - 1));
        window.set(last, 1, OFFSET_UNIT);
        assert!(window.writable.is_set(PAGES / PIECE - 1));
        assert!((1..PAGES / PIECE - 1).all(|piece| !window.writable.is_set(piece)));
        assert_eq!((window.bin_units(last), window.bin_units(last + PAGE)), (Some(1), None));
    }

    #[test]
    fn the_process_has_one_window() {
        open(0x7f12_3456_7000);
        // Another thread may be opening it.
        while WINDOW.reach.pages().1 == 0 {
            std::thread::yield_now();
        }
        // The last page is far from all memory of the tests.
        let (first, pages) = WINDOW.reach.pages();
        let last = first + pages - 1;
        let block = core::ptr::without_provenance_mut(last << LG_PAGE);
        assert_eq!(bin_offset(block), Some(0));
        set(last << LG_PAGE, 1, 3 * OFFSET_UNIT);
        assert_eq!((bin_units(block), bin_offset(block)), (Some(3), Some(3 * OFFSET_UNIT)));
        set(last << LG_PAGE, 1, 0);
        assert_eq!(bin_units(block), Some(0));
    }
}
