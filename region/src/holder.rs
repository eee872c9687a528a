//! The process that is in a region which several processes share.

use crate::owner;

/// A process that is in a region, or was when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    owner: u64,
}

impl Holder {
    /// The process that an owner of a lock names.
    pub(crate) fn of(owner: u64) -> Holder {
        Holder { process: owner::process_of(owner), owner }
    }

    /// Returns whether the process still exists.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        owner::is_alive(self.owner)
    }
}
