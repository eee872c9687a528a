//! The lock of an idle owner in the hands of a thread that frees its blocks.
//!
//! An owner that took no slow path since this thread last freed blocks of its does nothing, or
//! lives on what its bins hold: its lock is free, and with the lock in hand blocks go home by plain
//! ORs instead of an atomic one each. An owner at work is left alone, as it would have to wait; and
//! not asked at every batch, as the question takes a cache line from it.

use super::owner::{self, Owner, OwnerState};
use crate::ground::sync::lock;

/// The owner whose blocks a cache freed last, and the slow paths it had taken by then.
#[derive(Clone, Copy)]
pub(crate) struct Neighbour {
    id: u32,
    activity: u64,
    /// Batches until the next question, and how many they were after the last one.
    left: u8,
    pause: u8,
}

/// Batches that pass at most between two questions.
const LONGEST: u8 = 15;

/// The right to an owner's slabs, beside that to the visitor's own.
pub(super) struct Visit {
    pub(super) owner: &'static Owner,
    pub(super) state: lock::Guard<'static, OwnerState>,
}

impl Neighbour {
    /// Nobody yet: no owner has as many slow paths behind it.
    pub(crate) const fn none() -> Neighbour {
        Neighbour { id: 0, activity: u64::MAX, left: 0, pause: 0 }
    }

    /// Takes the lock of an owner that was idle since it was last asked for, if it is free. The
    /// caller holds its own cache's lock, and that of no other.
    pub(super) fn visit(&mut self, id: u32) -> Option<Visit> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        let owner = owner::by_id(id)?;
        let activity = owner.activity.get();
        if self.id != id || self.activity != activity {
            let pause = (self.pause * 2 + 1).min(LONGEST);
            *self = Neighbour { id, activity, left: pause, pause };
            return None;
        }
        self.pause = 0;
        let state = owner.state.try_lock()?;
        Some(Visit { owner, state })
    }
}
