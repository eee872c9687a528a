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

/// The code to which handlers of signals return: it sets the number of the system call
/// `rt_sigreturn`, and calls the system. It is known by its bytes, as in libgcc.
#[cfg(target_arch = "x86_64")]
pub(super) const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
pub(super) const SIGNAL_RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];

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

/// Returns an address without the signature that AArch64 may put into its upper bits. Which bits
/// these are, the processor knows.
#[inline(always)]
pub(super) fn stripped(back: usize) -> usize {
    #[cfg(target_arch = "aarch64")]
    {
        let plain;
        // SAFETY: XPACLRI changes this register only. Processors without signatures do nothing.
        unsafe {
            core::arch::asm!("hint #7", inout("x30") back => plain,
                options(pure, nomem, nostack, preserves_flags));
        }
        plain
    }
    #[cfg(not(target_arch = "aarch64"))]
    back
}

/// The longest instruction that calls a function.
#[cfg(target_arch = "x86_64")]
pub(super) const LONGEST_CALL: usize = 7;
#[cfg(target_arch = "aarch64")]
pub(super) const LONGEST_CALL: usize = 4;

/// Returns whether these bytes may end in an instruction that calls a function.
#[cfg(target_arch = "x86_64")]
pub(super) fn ends_in_call(code: [u8; LONGEST_CALL]) -> bool {
    const NEAR: u8 = 0xe8;
    const BY_OPERAND: u8 = 0xff;
    // By an operand: the bits of the second byte that tell a call from a jump and others.
    let is_call = |pair: &[u8]| matches!(*pair, [BY_OPERAND, which] if which & 0o070 == 0o020);
    code.get(2) == Some(&NEAR) || code.windows(2).any(is_call)
}

/// As on x86-64: `bl` and `blr`, also those that check a signature.
#[cfg(target_arch = "aarch64")]
pub(super) fn ends_in_call(code: [u8; LONGEST_CALL]) -> bool {
    let word = u32::from_le_bytes(code);
    word >> 26 == 0b10_0101 || word & 0xfeff_f000 == 0xd63f_0000
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_from_other_code() {
        let calls: [&[u8]; 6] = [
            &[0x90, 0x90, 0xe8, 1, 2, 3, 4],
            // call rax; call [rbx]; call [rsp + 8]; call [rip + …]; call [rax + 4 * rbx + …]
            &[0, 0, 0, 0, 0, 0xff, 0xd0],
            &[0, 0, 0, 0, 0, 0xff, 0x13],
            &[0, 0, 0, 0xff, 0x54, 0x24, 8],
            &[0, 0xff, 0x15, 0, 0, 0, 0],
            &[0xff, 0x94, 0x98, 0, 1, 0, 0],
        ];
        for code in calls {
            assert!(ends_in_call(code.try_into().expect("seven bytes")), "{code:x?}");
        }
        // nop word ptr [rax + rax + 0]; jmp rax; jmp to a near place
        let others: [&[u8]; 3] = [
            &[0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x90, 0x66, 0x90, 0x90, 0xff, 0xe0],
            &[0x66, 0x90, 0xe9, 1, 2, 3, 4],
        ];
        for code in others {
            assert!(!ends_in_call(code.try_into().expect("seven bytes")), "{code:x?}");
        }
    }
}

#[cfg(all(test, target_arch = "aarch64"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_without_its_signature() {
        let address = an_address_is_found_without_its_signature as fn() as usize;
        let signed: usize;
        // SAFETY: PACIASP changes this register only.
        unsafe {
            core::arch::asm!("hint #25", inout("x30") address => signed, options(nomem, nostack));
        }
        assert_eq!((stripped(signed), stripped(address)), (address, address), "{signed:x}");
    }

    #[test]
    fn a_call_is_told_from_other_code() {
        // bl, blr, blraa and blraaz; nop, br, ret and b
        for word in [0x9400_0001_u32, 0x97ff_ffff, 0xd63f_0020, 0xd73f_0822, 0xd63f_083f] {
            assert!(ends_in_call(word.to_le_bytes()), "{word:x}");
        }
        for word in [0xd503_201f_u32, 0xd61f_0020, 0xd65f_03c0, 0x1400_0001] {
            assert!(!ends_in_call(word.to_le_bytes()), "{word:x}");
        }
    }
}
