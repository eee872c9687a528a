//! The lock of an idle owner in the hands of a thread that frees its blocks.
//!
//! An owner that took no slow path since this thread last freed blocks of its does nothing, or
//! lives on what its bins hold: its lock is free, and with the lock in hand blocks go home by plain
//! ORs instead of an atomic one each. An owner at work is left alone, as it would have to wait; and
//! not asked at every batch, as the question takes a cache line from it.

use crate::ground::sync::lock;
use crate::middle::owners::neighbour::Neighbour;
use crate::middle::owners::owner::{self, Owner, OwnerState};

/// The right to an owner's slabs, beside that to the visitor's own.
pub(in crate::middle) struct Visit {
    pub(in crate::middle) owner: &'static Owner,
    pub(in crate::middle) state: lock::Guard<'static, OwnerState>,
}

/// Takes the lock of an owner that was idle since it was last looked at, if it is free. The caller
/// holds its own cache's lock, and that of no other.
pub(in crate::middle) fn visit(neighbour: &mut Neighbour, id: u32) -> Option<Visit> {
    if !neighbour.is_time() {
        return None;
    }
    let owner = owner::by_id(id)?;
    if !neighbour.is_idle(id, owner.activity.get()) {
        return None;
    }
    let state = owner.state.try_lock()?;
    Some(Visit { owner, state })
}
