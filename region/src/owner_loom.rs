//! Processes of models: each thread says of which process it is. Takes the place of `owner`.

use core::cell::Cell;

/// The process that is gone. All others live.
pub(crate) const GONE: u64 = 9;

/// The bit of the lock that is no part of an owner.
const AWAITED: u64 = 1 << 31;

loom::thread_local! {
    static OWN: Cell<u64> = Cell::new(2);
}

/// Makes the calling thread one of a process.
pub(crate) fn take(process: u64) {
    OWN.with(|own| own.set(process));
}

pub(crate) fn own() -> u64 {
    OWN.with(Cell::get)
}

pub(crate) fn noted() -> u64 {
    own()
}

pub(crate) fn process_of(owner: u64) -> u32 {
    owner as u32
}

pub(crate) fn is_same(one: u64, other: u64) -> bool {
    one == other
}

pub(crate) fn is_alive(owner: u64) -> bool {
    owner & !AWAITED != GONE
}

pub(crate) fn is_seen(owner: u64) -> bool {
    is_alive(owner)
}
