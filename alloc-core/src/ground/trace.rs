//! The return addresses that messages name: where a block was freed wrongly, and where a guarded
//! sample was allocated, freed and touched.
//!
//! Messages are written in this tier, and stacks are walked in another, which supplies the
//! functions when the process starts.

use super::signal::Registers;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The most return addresses of a trace.
pub(crate) const TRACE: usize = 8;

/// Return addresses, the innermost first, followed by zeroes.
pub(crate) type Trace = [usize; TRACE];

/// How the callers are found. The functions take no lock and do not allocate.
pub(crate) struct Walk {
    /// Finds the callers of the allocator's function that is running.
    pub(crate) here: fn(&mut Trace),
    /// Finds the callers of the function that ran with these registers.
    pub(crate) at: fn(&Registers, &mut Trace),
}

static WALK: AtomicPtr<Walk> = AtomicPtr::new(core::ptr::null_mut());

/// Sets how the callers are found, when the process starts.
pub(crate) fn set_walk(walk: &'static Walk) {
    // Release: pairs with the Acquire in `walk`.
    WALK.store(core::ptr::from_ref(walk).cast_mut(), Ordering::Release);
}

fn walk() -> Option<&'static Walk> {
    // Acquire: pairs with the Release in `set_walk`.
    // SAFETY: only `'static` walks are stored.
    unsafe { WALK.load(Ordering::Acquire).as_ref() }
}

/// Returns the callers of the allocator's function that is running.
pub(crate) fn here() -> Trace {
    let mut trace = [0; TRACE];
    if let Some(walk) = walk() {
        (walk.here)(&mut trace);
    }
    trace
}

/// Returns the callers of the function that ran with these registers.
pub(crate) fn at(registers: &Registers) -> Trace {
    let mut trace = [0; TRACE];
    if let Some(walk) = walk() {
        (walk.at)(registers, &mut trace);
    }
    trace
}
