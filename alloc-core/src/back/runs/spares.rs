//! Records of runs that stand for no run and wait for their next use.
//!
//! A run cannot be cut without a record for its second part. So records are made before a run is
//! taken out of a list, where a lack of memory does no harm.

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::metadata::{self, Pool};

/// Records that [`Spares::keep`] ensures. A chunk is made and cut twice, and again if the system
/// refuses it, and the run in it is cut twice.
const KEPT: usize = 8;
/// Records that cutting a part out of a run takes at most.
const FOR_A_CUT: usize = 2;

/// The spare records of one arena. Records never leave their arena.
pub(in crate::back) struct Spares {
    arena: u32,
    free: Pool<Extent>,
    count: usize,
    made: usize,
}

impl Spares {
    /// Creates the spare records of an arena, of which there are none yet.
    pub(in crate::back) const fn new(arena: u32) -> Spares {
        Spares { arena, free: Pool::new(), count: 0, made: 0 }
    }

    /// Makes as many records as one operation needs. Returns `None` without memory.
    pub(in crate::back) fn keep(&mut self) -> Option<()> {
        while self.count < KEPT {
            let memory = metadata::allocate(size_of::<Extent>(), align_of::<Extent>())?;
            let record = memory.cast::<Extent>();
            // SAFETY: fresh memory of the right size and alignment.
            unsafe { record.write(Extent::new(self.arena)) };
            self.made += 1;
            // SAFETY: just written, and never unmapped.
            self.put(unsafe { record.as_ref() });
        }
        Some(())
    }

    /// Takes a record, or returns `None` if there is none.
    pub(in crate::back) fn take(&mut self) -> Option<&'static Extent> {
        let record = self.free.take()?;
        self.count -= 1;
        Some(record)
    }

    /// Makes as many records as one operation needs, and takes one. Without memory for more, it is
    /// one of those that are left. Returns `None` if there is none.
    pub(in crate::back) fn take_or_make(&mut self) -> Option<&'static Extent> {
        let _are_enough = self.keep();
        self.take()
    }

    /// Takes back a record that stands for no run any more.
    pub(in crate::back) fn put(&mut self, record: &'static Extent) {
        // A record that neighbours may still look at must not pass for a free run.
        record.state.set(ExtentState::Spare);
        self.free.put(record);
        self.count += 1;
    }

    /// Whether there are enough records to cut a part out of a run.
    pub(in crate::back) fn suffice_for_cut(&self) -> bool {
        self.count >= FOR_A_CUT
    }

    /// The number of spare records.
    pub(in crate::back) fn count(&self) -> usize {
        self.count
    }

    /// The number of records that the arena ever made, including those in use.
    pub(in crate::back) fn made(&self) -> usize {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_made_once_and_kept_for_the_next_use() {
        let mut spares = Spares::new(3);
        assert_eq!((spares.count(), spares.made(), spares.suffice_for_cut()), (0, 0, false));
        spares.keep().unwrap();
        assert_eq!((spares.count(), spares.made(), spares.suffice_for_cut()), (KEPT, KEPT, true));
        let records: Vec<_> = (0..KEPT - 1).map(|_| spares.take().unwrap()).collect();
        assert_eq!((spares.count(), spares.suffice_for_cut()), (1, false));
        assert!(records.iter().all(|record| record.arena() == 3));
        spares.put(records[0]);
        assert!(spares.suffice_for_cut());
        spares.keep().unwrap();
        assert_eq!((spares.count(), spares.made()), (KEPT, 2 * KEPT - 2));
    }
}
