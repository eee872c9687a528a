//! The signal of a memory fault: taking it, handing it on, giving it back.

use super::os::keep_errno;
use core::ffi::{c_int, c_void};

/// A handler that is told where the fault was.
pub(crate) type FaultHandler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What was to happen at a fault.
pub(crate) struct SignalAction(libc::sigaction);

/// Takes the signal of memory faults; answers what was to happen before.
pub(crate) fn set_fault_handler(handler: FaultHandler) -> Option<SignalAction> {
    // SAFETY: all zero is a valid action: the default.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both are valid for the call; the handler has the shape that the flag promises.
    let status = keep_errno(|| unsafe {
        libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before)
    });
    if status == 0 { Some(SignalAction(before)) } else { None }
}

/// Puts an action back; the default where none is known.
pub(crate) fn restore_fault_handler(before: Option<&SignalAction>) {
    // SAFETY: all zero is a valid action: the default.
    let default: libc::sigaction = unsafe { core::mem::zeroed() };
    let action = before.map_or(&default, |before| &before.0);
    let none = core::ptr::null_mut();
    // SAFETY: an action that was in force before.
    keep_errno(|| unsafe { libc::sigaction(libc::SIGSEGV, core::ptr::from_ref(action), none) });
}

/// Calls the handler of before. `false`: there is none.
///
/// # Safety
/// The arguments are those of a handler of this signal that runs now.
pub(crate) unsafe fn call_handler(
    before: &SignalAction,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) -> bool {
    let handler = before.0.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return false;
    }
    if before.0.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the flag says that the handler has this shape.
        let handler: FaultHandler = unsafe { core::mem::transmute(handler) };
        // SAFETY: the caller's promise.
        unsafe { handler(signal, info, context) };
    } else {
        // SAFETY: without the flag a handler has this shape.
        let handler: unsafe extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
        // SAFETY: the caller's promise.
        unsafe { handler(signal) };
    }
    true
}

/// The address of the instruction that faulted; 0 where that is not known.
pub(crate) fn faulting_instruction(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the kernel's context of the signal being handled.
        let registers = unsafe { &(*context).uc_mcontext.gregs };
        registers.get(libc::REG_RIP as usize).map_or(0, |at| *at as usize)
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: the kernel's context of the signal being handled.
        unsafe { (*context).uc_mcontext.pc as usize }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}
