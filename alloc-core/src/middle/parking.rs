//! Blocks on their way between the bins of a cache and its depots. Under the owner's lock.

use super::depot::Slot;
use super::give_back::give_back;
use super::owner::{Owner, OwnerState};
use super::remote_free::Guard;
use super::slab::Slab;
use crate::back::page_map;
use crate::ground::size_class::SizeClass;

impl Owner {
    /// Takes blocks that a full bin gives up: parks the first of them, within `most` bytes for all
    /// classes, and sends the rest home.
    pub(crate) fn spill(
        &'static self,
        state: &mut OwnerState,
        class: SizeClass,
        blocks: &[Slot],
        most: usize,
    ) {
        let room = state.depots.of(class).room() > 0;
        let bytes =
            if room && self.made(blocks) { most.saturating_sub(state.depots.bytes) } else { 0 };
        let depot = state.depots.of(class);
        let n = depot.park(class, blocks, bytes);
        let home = blocks.get(n..).unwrap_or_default();
        depot.gone = depot.gone.saturating_add(home.len() as u32);
        self.parked(state, class, n, 0);
        if !home.is_empty() {
            give_back(self, state, class, home);
        }
    }

    /// Whether blocks seem to come from slabs of this cache, or of its arena's bins: the first and
    /// the last do. Those of others are wanted there.
    fn made(&self, blocks: &[Slot]) -> bool {
        let ends = [blocks.first(), blocks.last()];
        ends.into_iter().flatten().all(|block| {
            let slab = Slab::of(page_map::lookup(block.expose_provenance()));
            slab.is_some_and(|slab| match slab.remote.guard() {
                Some(Guard::Owner(id)) => id == self.id(),
                Some(Guard::Bin) => slab.arena() == self.home.get().id(),
                None => false,
            })
        })
    }

    /// Takes up to `want` parked blocks, the newest, and writes them to `slots`, the newest last.
    /// Answers how many.
    ///
    /// # Safety
    /// `slots` has room for `want` blocks.
    pub(crate) unsafe fn unpark(
        &self,
        state: &mut OwnerState,
        class: SizeClass,
        want: usize,
        slots: *mut Slot,
    ) -> usize {
        let depot = state.depots.of(class);
        let n = want.min(depot.count as usize);
        let mut left = n;
        while let Some((blocks, some)) = depot.lift(class, left) {
            left -= some;
            let place = slots.wrapping_add(left);
            // SAFETY: `some` blocks lie there, and fit below those that are written (the caller's
            // promise).
            unsafe { place.copy_from_nonoverlapping(blocks.as_ptr(), some) };
        }
        self.parked(state, class, 0, n);
        n
    }

    /// One step of collection: half of what lay untouched for some rounds goes home.
    pub(crate) fn age_depot(&'static self, state: &mut OwnerState, class: SizeClass) {
        let n = state.depots.of(class).age();
        self.send_home(state, class, n);
    }

    /// Sends all parked blocks of a class home, and forgets how many there were.
    pub(crate) fn empty_depot(&'static self, state: &mut OwnerState, class: SizeClass) {
        self.send_home(state, class, usize::MAX);
        state.depots.of(class).close(class);
    }

    /// The same for all classes.
    pub(crate) fn empty_depots(&'static self, state: &mut OwnerState) {
        if state.depots.bytes > 0 {
            SizeClass::all().for_each(|class| self.empty_depot(state, class));
        }
    }

    fn send_home(&'static self, state: &mut OwnerState, class: SizeClass, n: usize) {
        let mut left = n;
        while let Some((blocks, some)) = state.depots.of(class).lift(class, left) {
            left -= some;
            self.parked(state, class, 0, some);
            // SAFETY: `some` blocks lie there until the depot is used again.
            let blocks = unsafe { core::slice::from_raw_parts(blocks.as_ptr(), some) };
            give_back(self, state, class, blocks);
        }
    }

    /// Notes how many blocks came into a depot, and how many left it.
    fn parked(&self, state: &mut OwnerState, class: SizeClass, came: usize, left: usize) {
        state.depots.bytes += came * class.size();
        state.depots.bytes -= left * class.size();
        self.set_parked(class, state.depots.of(class).count);
    }
}
