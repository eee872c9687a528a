//! The program's function that is asked for memory when a hard bound is reached.

use crate::back::aging::refusals::Refusal;
use crate::back::aging::{held, limit};
use crate::back::metadata;
use crate::ground::callback;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Takes the argument, bytes held, the bound, bytes wanted, and the arena whose own bound it is, or
/// `ARENAS_ALL`. Returns whether something was freed, so that another attempt is worth it.
pub type LimitCallback = unsafe extern "C" fn(*mut c_void, usize, usize, usize, u32) -> bool;

/// A function and its argument. A new record is made for each change, and never changed.
struct Callback {
    function: LimitCallback,
    argument: *mut c_void,
}

static CALLBACK: AtomicPtr<Callback> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function, or none. Returns `false` if there is no memory for its record.
pub(crate) fn set(function: Option<LimitCallback>, argument: *mut c_void) -> bool {
    let mut place = core::ptr::null_mut();
    if let Some(function) = function {
        let Some(memory) = metadata::allocate(size_of::<Callback>(), align_of::<Callback>()) else {
            return false;
        };
        place = memory.cast::<Callback>().as_ptr();
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { place.write(Callback { function, argument }) };
    }
    // Release: pairs with the Acquire in `get`.
    CALLBACK.store(place, Ordering::Release);
    true
}

/// Returns the function and its argument, if one was set.
pub(crate) fn get() -> Option<(LimitCallback, *mut c_void)> {
    // Acquire: pairs with the Release in `set`.
    // SAFETY: records live for ever.
    let callback = unsafe { CALLBACK.load(Ordering::Acquire).as_ref() }?;
    Some((callback.function, callback.argument))
}

/// Asks the program for memory, because a bound refused it. Called under no lock. Returns `false`
/// if nothing was freed or no function is set.
pub(super) fn ask(all: u32, refusal: Refusal, bound_of: impl Fn(u32) -> (usize, usize)) -> bool {
    let Some((function, argument)) = get() else { return false };
    let Refusal { wanted, place } = refusal;
    let arena = u32::try_from(place).unwrap_or(all);
    let (held, bound) = if arena == all { (held::bytes(), limit::hard()) } else { bound_of(arena) };
    // SAFETY: the caller of `set` vouches for the function.
    let call = || unsafe { function(argument, held, bound, wanted, arena) };
    callback::run(callback::Callback::Limit, call)
}
