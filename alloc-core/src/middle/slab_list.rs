//! Lists of slabs, links in the records.

use super::slab::Slab;
use crate::ground::units::PAGE;

/// A list of so many slabs is long: as a rule they fill a huge page.
const LONG: usize = 32;

/// Which of its guard's lists a slab is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ListName {
    /// In none: full and guarded by a bin, or a free record.
    None,
    /// Has free blocks.
    Partial,
    /// Has none (kept only by caches, so that they know what they own).
    Full,
}

/// Slabs of one guard and class, in both directions, links in the records.
#[derive(Default)]
pub(crate) struct SlabList {
    head: Option<&'static Slab>,
    tail: Option<&'static Slab>,
    length: usize,
    spares: usize,
}

impl SlabList {
    /// An empty list.
    pub(crate) const fn new() -> SlabList {
        SlabList { head: None, tail: None, length: 0, spares: 0 }
    }

    /// Whether a cache with these full slabs will fill the next one too.
    pub(crate) fn is_long(&self) -> bool {
        self.length >= LONG
    }

    /// How many there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The slab that is used next.
    #[inline]
    pub(crate) fn first(&self) -> Option<&'static Slab> {
        self.head
    }

    /// Adds a slab at the front: it is used next.
    pub(crate) fn push_front(&mut self, slab: &'static Slab, name: ListName) {
        slab.list.set(name);
        slab.previous.set(None);
        slab.next.set(self.head);
        match self.head {
            Some(head) => head.previous.set(Some(slab)),
            None => self.tail = Some(slab),
        }
        self.head = Some(slab);
        self.length += 1;
    }

    /// Adds a slab at the back: it is used last.
    pub(crate) fn push_back(&mut self, slab: &'static Slab, name: ListName) {
        slab.list.set(name);
        slab.next.set(None);
        slab.previous.set(self.tail);
        match self.tail {
            Some(tail) => tail.next.set(Some(slab)),
            None => self.head = Some(slab),
        }
        self.tail = Some(slab);
        self.length += 1;
    }

    /// Takes out a slab that is here.
    pub(crate) fn remove(&mut self, slab: &'static Slab) {
        let (previous, next) = (slab.previous.take(), slab.next.take());
        match previous {
            Some(previous) => previous.next.set(next),
            None => self.head = next,
        }
        match next {
            Some(next) => next.previous.set(previous),
            None => self.tail = previous,
        }
        slab.list.set(ListName::None);
        self.length -= 1;
        self.use_spare(slab);
    }

    /// Takes out all slabs that answer to a description.
    pub(super) fn remove_if(&mut self, unwanted: impl Fn(&Slab) -> bool) {
        let mut next = self.head;
        while let Some(slab) = next {
            next = slab.next.get();
            if unwanted(slab) {
                self.remove(slab);
            }
        }
    }

    /// Keeps a slab that is here although all its blocks are free, to be used last. `false`: it is
    /// not the only one, and as many as `bytes` hold are kept already.
    pub(crate) fn keep_spare(&mut self, slab: &'static Slab, bytes: usize) -> bool {
        let each = usize::from(slab.class().row().slab_pages) * PAGE;
        if self.length > 1 && (self.spares + 1) * each > bytes {
            return false;
        }
        if !slab.spare.replace(true) {
            self.spares += 1;
            self.move_to_back(slab);
        }
        true
    }

    /// Notes that blocks of a slab that is here are about to be used.
    #[inline]
    pub(crate) fn use_spare(&mut self, slab: &Slab) {
        if slab.spare.replace(false) {
            self.spares -= 1;
        }
    }

    fn move_to_back(&mut self, slab: &'static Slab) {
        let (name, spare) = (slab.list.get(), slab.spare.get());
        self.remove(slab);
        self.push_back(slab, name);
        if spare {
            slab.spare.set(true);
            self.spares += 1;
        }
    }

    /// Puts a slab that is here, and of which `freed` blocks have just come back, at the back when
    /// that made it sparse: nearly full slabs are used first, so that sparse ones get to empty.
    pub(crate) fn settle(&mut self, slab: &'static Slab, freed: usize) {
        if slab.became_sparse(freed) {
            self.move_to_back(slab);
        }
    }

    /// All slabs, the one that is used last first.
    pub(crate) fn sparsest_first(&self) -> impl Iterator<Item = &'static Slab> {
        core::iter::successors(self.tail, |slab| slab.previous.get())
    }

    /// The first slab that answers to a description.
    pub(crate) fn find(&self, wanted: impl Fn(&Slab) -> bool) -> Option<&'static Slab> {
        let mut next = self.head;
        while let Some(slab) = next {
            if wanted(slab) {
                return Some(slab);
            }
            next = slab.next.get();
        }
        None
    }
}
