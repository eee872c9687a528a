//! The class map: address → bin in one load, for what lies near the first reservation.
//!
//! ```text
//!   address   47 ………………… 12 │ 11 … 0
//!                   │
//!   WINDOW.bytes[page − WINDOW.first] ──▶ offset of the class's bin / 8
//! ```
//! A byte for each page of a window of addresses, beside the page map, for the fast path of free: a
//! load less on the way to the bin, and an eighth of the cache lines. It is a hint that is never
//! wrong: 0 sends a free the slow way, by the page map. So addresses outside of the window, pages
//! that are no slab's, and slabs made while the window was not yet open are all 0.

use super::page_words;
use super::table::{self, PIECE, Writable};
use crate::ground::os;
use crate::ground::size_class::OFFSET_UNIT;
use crate::ground::units::{LG_PAGE, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Pages of the window: 128 GiB of addresses, a table of 32 MiB of which only what is used is
/// touched.
const PAGES: usize = 1 << 25;
/// Of a limit on addresses the table takes at most this part.
const PART_OF_LIMIT: usize = 64;
/// Addresses above the first reservation that the window covers too; the system hands out lower
/// and lower ones.
const ABOVE: usize = 8 << 30;
/// Where the system hands out higher and higher addresses, it begins below this.
const UPWARDS_BELOW: usize = 1 << 46;

#[repr(align(64))]
struct Window {
    first: AtomicUsize,
    bytes: AtomicPtr<u8>,
    /// 0 until the rest is written.
    pages: AtomicUsize,
}

/// Which parts of the table are writable.
static OPEN: Writable<{ PAGES / PIECE / 64 }> = Writable::none();

static WINDOW: Window = Window {
    first: AtomicUsize::new(0),
    bytes: AtomicPtr::new(core::ptr::null_mut()),
    pages: AtomicUsize::new(0),
};

/// The byte of the page that an address lies in; `None` outside of the window.
#[inline(always)]
fn byte_of(address: usize) -> Option<*mut u8> {
    // Acquire: pairs with the Release in `open`.
    let pages = WINDOW.pages.load(Ordering::Acquire);
    let page = (address >> LG_PAGE).wrapping_sub(WINDOW.first.load(Ordering::Relaxed));
    if page >= pages { None } else { Some(WINDOW.bytes.load(Ordering::Relaxed).wrapping_add(page)) }
}

/// The offset of the bin for a block's page, in units of [`OFFSET_UNIT`]; `None` or the trap's, 0,
/// where the page map must be asked.
#[inline(always)]
pub(crate) fn bin_units(block: *mut u8) -> Option<usize> {
    let byte = byte_of(block as usize)?;
    // A plain load: the byte of a block in use was written before the block was handed out, and
    // stands still until the block has gone home.
    // SAFETY: the table has a byte for each page of the window, and is never unmapped.
    Some(usize::from(unsafe { byte.read() }))
}

/// As [`bin_units`], in bytes.
#[inline(always)]
pub(crate) fn bin_offset(block: *mut u8) -> Option<usize> {
    bin_units(block).map(|units| units * OFFSET_UNIT)
}

/// Notes the bin of all pages of a slab, or 0 when it is one no more. A slab that reaches out of
/// the window is not noted.
pub(crate) fn set(base: usize, pages: usize, bin_offset: usize) {
    debug_assert!(bin_offset.is_multiple_of(OFFSET_UNIT) && bin_offset / OFFSET_UNIT <= 255);
    let (Some(first), Some(_)) = (byte_of(base), byte_of(base + (pages - 1) * PAGE)) else {
        return;
    };
    let table = WINDOW.bytes.load(Ordering::Relaxed);
    let (from, size) = (first.addr() - table.addr(), WINDOW.pages.load(Ordering::Relaxed));
    let Some(table) = NonNull::new(table) else { return };
    // SAFETY: the table and its notes; first and last byte lie in the table.
    if !unsafe { OPEN.open(table, size, from, pages) } {
        // Where it cannot be written all bytes are 0, which sends each free by the page map.
        return;
    }
    // SAFETY: first and last byte lie in the table; who holds the run alone writes its bytes.
    unsafe { first.write_bytes((bin_offset / OFFSET_UNIT) as u8, pages) };
}

/// Opens the window around the first reservation. Without memory for the table there is none.
pub(crate) fn open(base: usize) {
    static OPENED: AtomicBool = AtomicBool::new(false);
    if OPENED.load(Ordering::Relaxed) || OPENED.swap(true, Ordering::Relaxed) {
        return;
    }
    let pages = PAGES.min(os::address_limit() / PART_OF_LIMIT / PAGE * PAGE);
    if pages == 0 {
        return;
    }
    let first = first_page(base, pages);
    let own = ((base >> LG_PAGE) - first).min(pages - 1);
    let Some(table) = table::reserve(pages, own, 1, &OPEN) else { return };
    page_words::MAPPED.add(pages as u64);
    WINDOW.bytes.store(table.as_ptr(), Ordering::Relaxed);
    WINDOW.first.store(first, Ordering::Relaxed);
    // Release: pairs with the Acquire in `byte_of`.
    WINDOW.pages.store(pages, Ordering::Release);
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
        let first = first_page(high, PAGES);
        assert!((high >> LG_PAGE) - first > PAGES - PAGES / 8 - 1);
        assert!((high >> LG_PAGE) + (4 << 30 >> LG_PAGE) < first + PAGES);
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
}
