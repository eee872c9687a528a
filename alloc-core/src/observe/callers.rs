//! Who calls the allocator, and where code lies.

pub use crate::profile::backtrace::CodePlace;
use crate::profile::backtrace::{self, MOST_OWN};

/// Returns the return addresses of those who called the allocator in the calling thread, the
/// innermost first, followed by zeroes. All are zero if the allocator was not called, or its frames
/// are not found: a static program needs `-Wl,--eh-frame-hdr`. Takes no lock and allocates nothing.
///
/// ```
/// assert_eq!(lumalloc::observe::callers::<8>(), [0; 8], "no function of the allocator is active");
/// ```
#[must_use]
#[inline(never)]
pub fn callers<const N: usize>() -> [usize; N] {
    const ROOM: usize = 32;
    let mut stack = backtrace::room::<{ MOST_OWN + ROOM }>();
    let found = backtrace::take_of_calls(&mut stack, N.min(ROOM));
    let mut nearest = [0; N];
    nearest.iter_mut().zip(found).for_each(|(place, address)| *place = *address);
    nearest
}

/// Returns the file that the code at an address was loaded from, and where in it the code lies.
/// `None` for an address outside of all loaded files. Takes no lock and allocates nothing.
///
/// ```
/// use lumalloc::observe::code_place;
/// let place = code_place(code_place as *const () as usize).unwrap();
/// assert!(!place.name().is_empty() && place.offset != 0);
/// assert!(code_place(0).is_none());
/// ```
#[must_use]
pub fn code_place(address: usize) -> Option<CodePlace> {
    backtrace::code_place(address)
}
