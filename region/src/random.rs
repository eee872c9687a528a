//! Numbers that programs do not know in advance.

/// A number that programs do not know in advance. Without random numbers of the system, the address
/// is all there is.
pub(crate) fn random(address: usize) -> u64 {
    let mut number = address as u64;
    let into = (&raw mut number).cast();
    // SAFETY: the call writes at most 8 bytes to the number.
    unsafe { libc::getrandom(into, size_of::<u64>(), libc::GRND_NONBLOCK) };
    number
}
