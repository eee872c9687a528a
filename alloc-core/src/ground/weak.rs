//! Weak symbols: those that a program or its libraries may define, or not.

/// Defines a function that returns the address of a symbol, or 0 if nothing defines it.
///
/// ```
/// lumalloc::weak_symbol!(missing, "no_library_has_this_symbol");
/// assert_eq!(missing(), 0);
/// ```
#[macro_export]
macro_rules! weak_symbol {
    ($function:ident, $name:literal) => {
        #[cfg(target_arch = "x86_64")]
        fn $function() -> usize {
            let address: usize;
            // SAFETY: a weak reference reads as 0 if nothing defines its symbol.
            unsafe {
                core::arch::asm!(
                    concat!(".weak ", $name),
                    concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                    out(reg) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            address
        }

        #[cfg(target_arch = "aarch64")]
        fn $function() -> usize {
            let address: usize;
            // SAFETY: a weak reference reads as 0 if nothing defines its symbol.
            unsafe {
                core::arch::asm!(
                    concat!(".weak ", $name),
                    concat!("adrp {0}, :got:", $name),
                    concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                    out(reg) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            address
        }

        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        fn $function() -> usize {
            0
        }
    };
}

pub(crate) use weak_symbol;
