//! The arenas that threads open for themselves, which are the further regions of malloc in
//! vmalloc(3).

use alloc_core::{control, observe};
use core::ffi::c_int;

/// The most further regions, and their number at first.
const MOST: u32 = 64;

/// `setregmax`: sets how many further regions malloc may open, and returns the previous number. A
/// negative number, one above 64, and one below what is open change nothing. Source: vmalloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn setregmax(regmax: c_int) -> c_int {
    let open = observe::totals().arenas_open.saturating_sub(1);
    let wanted = u32::try_from(regmax).ok().filter(|wanted| (open..=MOST).contains(wanted));
    let before = match wanted {
        Some(wanted) => control::set_regmax(wanted),
        None => control::regmax(),
    };
    c_int::try_from(before).unwrap_or(c_int::MAX)
}
