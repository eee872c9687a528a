//! What may be set for the pages of one arena, and what they begin with.

use super::active_list::ActiveList;
use super::decay::Decay;
use super::extent::Extent;
use super::page_allocator::{FIRST_CHUNK, LAST_CHUNK, PageAllocator};
use crate::ground::options::Dss;

impl PageAllocator {
    /// Begins anew, without pages, with these decay times.
    pub(crate) fn begin_anew(&mut self, dirty_ms: isize, muzzy_ms: isize, dss: Dss) {
        debug_assert_eq!(self.counts().mapped, 0);
        self.dirty_decay = Decay::new(dirty_ms);
        self.muzzy_decay = Decay::new(muzzy_ms);
        self.unhook();
        self.dss = dss;
        self.next_chunk = FIRST_CHUNK;
        self.grow_limit = LAST_CHUNK;
        self.oversize = 0;
        self.limit = 0;
        self.limit_exempt = false;
    }

    /// The decay time of dirty pages, or of muzzy ones, in milliseconds.
    pub(crate) fn decay_ms(&self, dirty: bool) -> isize {
        if dirty { self.dirty_decay.millis() } else { self.muzzy_decay.millis() }
    }

    /// Sets it; what is unused now is forgotten.
    pub(crate) fn set_decay_ms(&mut self, dirty: bool, millis: isize) {
        let decay = if dirty { &mut self.dirty_decay } else { &mut self.muzzy_decay };
        *decay = Decay::new(millis);
    }

    /// Whether a run is so long that it is given back as soon as it is freed.
    pub(crate) fn is_oversized(&self, extent: &Extent) -> bool {
        self.oversize != 0 && extent.bytes() >= self.oversize
    }

    /// Keeps a list of the runs in use from now on, which are none yet.
    pub(crate) fn list_active(&mut self) {
        self.active = Some(ActiveList::new());
        self.rest.is_alone = true;
    }

    /// A run in use, of those that are listed.
    pub(crate) fn first_active(&self) -> Option<&'static Extent> {
        self.active.as_ref().and_then(ActiveList::first)
    }
}
