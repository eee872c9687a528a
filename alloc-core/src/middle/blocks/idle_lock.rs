//! The lock of an idle owner, taken by a thread that frees the owner's blocks.
//!
//! An owner that took no slow path since this thread last freed blocks of it does nothing, or uses
//! only what its bins hold. So its lock is free, and under it blocks are returned by plain ORs
//! instead of an atomic one each. An owner at work is left alone, because it would have to wait. It
//! is not looked at for every batch, because a look takes a cache line from it.

use crate::ground::sync::lock;
use crate::middle::owners::idle_hint::IdleHint;
use crate::middle::owners::owner::{self, Owner, OwnerState};

/// The right to another owner's slabs, beside that to the slabs of the thread's own cache.
pub(in crate::middle) struct IdleLock {
    pub(in crate::middle) owner: &'static Owner,
    pub(in crate::middle) state: lock::Guard<'static, OwnerState>,
}

/// Takes the lock of owner `id` if it is free and the owner was idle since the last look. The
/// caller holds the lock of its own cache, and that of no other.
pub(in crate::middle) fn try_lock(hint: &mut IdleHint, id: u32) -> Option<IdleLock> {
    if !hint.is_time() {
        return None;
    }
    let owner = owner::by_id(id)?;
    if !hint.is_idle(id, owner.activity.get()) {
        return None;
    }
    let state = owner.state.try_lock()?;
    Some(IdleLock { owner, state })
}
