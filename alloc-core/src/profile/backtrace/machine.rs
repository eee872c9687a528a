//! The registers of a thread that lead to its callers.

/// What of a frame leads to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Registers {
    /// A return address: the call lies just before it.
    pub(super) back: usize,
    pub(super) stack: usize,
    pub(super) frame: usize,
}

#[cfg(target_arch = "x86_64")]
mod numbers {
    /// The numbers of the registers in unwind tables: rsp and rbp.
    pub(in super::super) const STACK_POINTER: u64 = 7;
    pub(in super::super) const FRAME_POINTER: u64 = 6;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    /// The numbers of the registers in unwind tables: sp and x29.
    pub(in super::super) const STACK_POINTER: u64 = 31;
    pub(in super::super) const FRAME_POINTER: u64 = 29;
}

pub(super) use numbers::{FRAME_POINTER, STACK_POINTER};

/// Where the system has put the registers of the code that a signal has interrupted, in bytes from
/// the stack pointer at the return from the handler: the frame pointer, the stack pointer and the
/// address of the instruction. `None`: they are not looked for. Source: `ucontext_t`.
#[cfg(target_arch = "x86_64")]
pub(super) const INTERRUPTED: Option<[usize; 3]> = Some([120, 160, 168]);
#[cfg(target_arch = "aarch64")]
pub(super) const INTERRUPTED: Option<[usize; 3]> = None;

/// Where a frame pointer points: to the caller's frame pointer, with the return address behind.
pub(super) const FRAME_WORDS: usize = 2;

impl Registers {
    /// Returns the registers at the place of the call. The function that calls this must not have
    /// returned when they are used.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn here() -> Registers {
        let (at, stack, frame): (usize, usize, usize);
        // SAFETY: three registers are read.
        unsafe {
            core::arch::asm!(
                "lea {at}, [rip]",
                "mov {stack}, rsp",
                "mov {frame}, rbp",
                at = out(reg) at,
                stack = out(reg) stack,
                frame = out(reg) frame,
                options(nomem, nostack, preserves_flags),
            );
        }
        // One further, as if a call stood here.
        Registers { back: at + 1, stack, frame }
    }

    /// As on x86-64.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(super) fn here() -> Registers {
        let (at, stack, frame): (usize, usize, usize);
        // SAFETY: three registers are read.
        unsafe {
            core::arch::asm!(
                "adr {at}, .",
                "mov {stack}, sp",
                "mov {frame}, x29",
                at = out(reg) at,
                stack = out(reg) stack,
                frame = out(reg) frame,
                options(nomem, nostack, preserves_flags),
            );
        }
        Registers { back: at + 1, stack, frame }
    }
}

/// Returns an address without the signature that AArch64 may put into its upper bits.
#[inline]
pub(super) fn stripped(back: usize) -> usize {
    if cfg!(target_arch = "aarch64") { back & ((1 << 48) - 1) } else { back }
}
