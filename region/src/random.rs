//! Numbers that programs do not know in advance.

use lumalloc::system_calls;

/// A number that programs do not know in advance. Without random numbers of the system, the address
/// is all there is.
pub(crate) fn random(address: usize) -> u64 {
    let mut number = (address as u64).to_ne_bytes();
    system_calls::getrandom(&mut number);
    u64::from_ne_bytes(number)
}
