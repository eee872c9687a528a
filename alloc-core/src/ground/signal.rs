//! The signal of a memory fault (`SIGSEGV`): setting a handler, calling the previous one, and
//! restoring it.

use super::os::keep_errno;
use core::ffi::{c_int, c_void};

/// A signal handler that gets the address of the fault.
pub(crate) type FaultHandler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A signal action that was in force before.
pub(crate) struct SignalAction(libc::sigaction);

impl SignalAction {
    /// Returns whether the action is to ignore the signal.
    pub(crate) fn is_to_ignore(&self) -> bool {
        self.0.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets the handler of memory faults. Returns the previous action, or `None` on failure.
pub(crate) fn set_fault_handler(handler: FaultHandler) -> Option<SignalAction> {
    // SAFETY: all zero is a valid action: the default.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: all zero is a valid action.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both actions are valid for the call, and the handler has the type that `SA_SIGINFO`
    // says.
    let status = keep_errno(|| unsafe {
        libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before)
    });
    if status == 0 { Some(SignalAction(before)) } else { None }
}

/// Restores a previous action, or the default action for `None`.
pub(crate) fn restore_fault_handler(before: Option<&SignalAction>) {
    // SAFETY: all zero is a valid action: the default.
    let default: libc::sigaction = unsafe { core::mem::zeroed() };
    let action = before.map_or(&default, |before| &before.0);
    let none = core::ptr::null_mut();
    // SAFETY: the action was in force before, or is the default.
    keep_errno(|| unsafe { libc::sigaction(libc::SIGSEGV, core::ptr::from_ref(action), none) });
}

/// Sends a signal to the calling thread.
pub(crate) fn send_to_itself(signal: c_int) {
    // SAFETY: the call takes only a number.
    keep_errno(|| unsafe { libc::raise(signal) });
}

/// Calls the handler of a previous action. Returns `false` if it has none.
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

/// The registers of a thread that lead to its callers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Registers {
    pub(crate) instruction: usize,
    pub(crate) stack: usize,
    pub(crate) frame: usize,
}

/// Returns the registers at the instruction that faulted.
pub(crate) fn faulting_registers(context: *mut c_void) -> Registers {
    // SAFETY: `context` is the kernel's context of the signal being handled.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    {
        let value = |number| machine.gregs.get(number as usize).map_or(0, |value| *value as usize);
        Registers {
            instruction: value(libc::REG_RIP),
            stack: value(libc::REG_RSP),
            frame: value(libc::REG_RBP),
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        Registers {
            instruction: machine.pc as usize,
            stack: machine.sp as usize,
            frame: machine.regs[29] as usize,
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = machine;
        Registers::default()
    }
}
