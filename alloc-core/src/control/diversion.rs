//! malloc over another heap. Source: vmalloc(3), `Vmregion`.
//!
//! lumalloc's C library has a table of functions, a [`Diversion`], which can take the place of
//! malloc and free while the process runs. Rust programs have none.

pub use crate::front::modes::diversion::Diversion;

use crate::front::modes::diversion;
use crate::ground::callback::{self, Callback};

/// Calls a function whose allocations and frees are the allocator's own, whether calls are diverted
/// or not. While they are, it bypasses all caches.
///
/// ```
/// use lumalloc::control::diversion;
/// use lumalloc::raw;
/// let block = diversion::past(|| raw::malloc(100));
/// assert_eq!(raw::block_size(block), Some(112));
/// // SAFETY: a block of the allocator, freed once.
/// diversion::past(|| unsafe { raw::free(block) });
/// ```
#[inline]
pub fn past<T>(function: impl FnOnce() -> T) -> T {
    if diversion::is_on() { callback::run(Callback::Diversion, function) } else { function() }
}
