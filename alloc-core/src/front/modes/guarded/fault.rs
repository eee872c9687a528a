//! The fault handler: reports what a touch of a guard or of a freed sample was, then lets the
//! process die of the fault as it would have died without the handler.
//!
//! The handler is installed only where samples are taken, and it is chained. A fault elsewhere goes
//! to the previous handler. After a report the previous handler is restored, so that the fault
//! comes again and reaches that handler. A signal that a process has sent does not come again, so
//! it is sent once more.

use super::{FREED, LIVE, SLOTS, UNIT, UNUSED, holds, page_of, pages_before, slot};
use crate::ground::guarded_fatal;
use crate::ground::signal::{self, Registers, SignalAction};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

struct Before(UnsafeCell<Option<SignalAction>>);

// SAFETY: written once, at start, before the handler can run.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(None));

/// Installs the handler. Called once, at start.
pub(crate) fn watch() {
    let before = signal::set_fault_handler(on_fault);
    // SAFETY: at start, by one thread; no guard has been touched yet.
    unsafe { *BEFORE.0.get() = before };
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a valid record.
    let record = unsafe { &*info };
    // SAFETY: the record of a memory fault has an address.
    let address = unsafe { record.si_addr() } as usize;
    // SAFETY: written before the handler was in force.
    let before = unsafe { &*BEFORE.0.get() };
    let is_sent = record.si_code <= 0;
    if !is_sent && holds(address) {
        report(address, &signal::faulting_registers(context));
    } else if let Some(before) = before
        // SAFETY: what the kernel gave this handler, for the one before.
        && unsafe { signal::call_handler(before, signal, info, context) }
    {
        return;
    } else if is_sent && before.as_ref().is_some_and(SignalAction::is_to_ignore) {
        return;
    }
    // The fault comes again and reaches the previous handler.
    signal::restore_fault_handler(before.as_ref());
    if is_sent {
        signal::send_to_itself(signal);
    }
}

/// Reports the sample that was meant: the touched one, or the nearer one next to a guard.
fn report(address: usize, by: &Registers) {
    let unit = UNIT.load(Relaxed);
    let pages = pages_before(address);
    let (left, right) = ((pages / 2).wrapping_sub(1), pages / 2);
    if !pages.is_multiple_of(2) {
        let touched = slot(right);
        if touched.is(FREED) {
            guarded_fatal::use_after_free(address, &touched.sample(), by);
        }
        return;
    }
    let known = |index: usize| index < SLOTS && !slot(index).is(UNUSED);
    let live = |index: usize| index < SLOTS && slot(index).is(LIVE);
    let in_first_half = address & (unit - 1) < unit / 2;
    let is_left = match (live(left), live(right)) {
        (true, false) => true,
        (false, true) => false,
        _ => known(left) && (in_first_half || !known(right)),
    };
    if is_left {
        guarded_fatal::overflow(address, &slot(left).sample(), by);
    } else if known(right) {
        debug_assert!(address < page_of(right));
        guarded_fatal::underflow(address, &slot(right).sample(), by);
    }
}
