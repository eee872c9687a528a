//! A list of the runs in use of one arena, kept for an arena that is to be reset.
//!
//! The list uses the links of the list by age, which a run in use is not in.

use super::extent::Extent;

/// A list of runs in use. Guarded by the lock of the arena's pages.
pub(crate) struct ActiveList(Option<&'static Extent>);

impl ActiveList {
    /// Creates an empty list.
    pub(in crate::back) const fn new() -> ActiveList {
        ActiveList(None)
    }

    /// The run that was added last.
    pub(in crate::back) fn first(&self) -> Option<&'static Extent> {
        self.0
    }

    /// The runs, the one that was added last first.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn iter(&self) -> impl Iterator<Item = &'static Extent> {
        core::iter::successors(self.0, |run| run.older.get())
    }

    /// Adds a run that is in no list.
    pub(in crate::back) fn push(&mut self, extent: &'static Extent) {
        extent.younger.set(None);
        extent.older.set(self.0);
        if let Some(older) = self.0 {
            older.younger.set(Some(extent));
        }
        self.0 = Some(extent);
    }

    /// Takes out a run that is in this list.
    pub(in crate::back) fn remove(&mut self, extent: &'static Extent) {
        let (older, younger) = (extent.older.take(), extent.younger.take());
        match younger {
            Some(younger) => younger.older.set(older),
            None => self.0 = older,
        }
        if let Some(older) = older {
            older.younger.set(younger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;

    #[test]
    fn runs_leave_from_anywhere() {
        let runs: Vec<&'static Extent> = (0..4).map(|_| &*keep(Box::new(Extent::new(0)))).collect();
        let mut list = ActiveList::new();
        runs.iter().for_each(|run| list.push(run));
        let mut left = vec![3, 2, 1, 0];
        for at in [1, 3, 0, 2] {
            list.remove(runs[at]);
            left.retain(|other| *other != at);
            let mut seen = Vec::new();
            let mut next = list.first();
            while let Some(run) = next {
                seen.push(runs.iter().position(|other| run.is(other)).unwrap());
                next = run.older.get();
            }
            assert_eq!(seen, left);
        }
    }
}
