//! Pages at low addresses, for samples: see [`crate::ground::low`].

use super::system::system;
use crate::back::system::page_provider::{PageProvider, Purged, Reserved};
use core::ptr::NonNull;

/// The provider of low addresses.
pub(crate) struct LowPages;

/// The one [`LowPages`].
pub(crate) static LOW_PAGES: LowPages = LowPages;

// SAFETY: the system's provider returns fresh memory, and the rest is handed on to it.
unsafe impl PageProvider for LowPages {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        let got = system().reserve_low(size, align)?;
        // Few pages are touched: where huge pages are worth it, they are asked for chunk by chunk.
        // SAFETY: just reserved.
        unsafe { system().advise_huge(got.base, size, false) };
        Some(got)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { system().release(base, size) }
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        // SAFETY: the caller's promise, handed on.
        unsafe { system().purge(base, size) }
    }

    unsafe fn advise_huge(&self, base: NonNull<u8>, size: usize, huge: bool) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { system().advise_huge(base, size, huge) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::low;
    use crate::ground::units::PAGE;

    #[test]
    fn each_reservation_is_low_and_aligned_and_readable() {
        let zone = low::tests::open();
        for align in [PAGE, 2 << 20] {
            let got = LOW_PAGES.reserve(4 * PAGE, align).expect("low addresses");
            let base = got.base.as_ptr().expose_provenance();
            assert!(
                base.is_multiple_of(align) && zone.contains(&base) && base + 4 * PAGE <= zone.end
            );
            assert!(low::is_low_or_null(got.base.as_ptr()));
            // SAFETY: just reserved.
            assert_eq!(unsafe { got.base.read() }, 0);
            // SAFETY: just reserved, and used by this test alone.
            assert_eq!(unsafe { LOW_PAGES.purge(got.base, 4 * PAGE) }, Purged::Zeroed);
            // SAFETY: as above.
            assert!(unsafe { LOW_PAGES.release(got.base, 4 * PAGE) });
        }
        assert!(LOW_PAGES.reserve(1 << 40, PAGE).is_none());
    }
}
