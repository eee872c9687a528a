//! Lists of slabs, with the links in the records.

use super::slab::Slab;
use super::slab_links::ListName;
#[cfg(any(test, feature = "checks"))]
use crate::ground::holds::holds;
use crate::ground::units::PAGE;

/// A list of so many slabs is long. As a rule they fill a huge page.
const LONG: usize = 32;

/// Slabs of one guard and class, linked in both directions through their records.
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

    /// Whether the list is long: a cache with so many full slabs will fill the next one too.
    pub(crate) fn is_long(&self) -> bool {
        self.length >= LONG
    }

    /// How many slabs there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The slab that is used next.
    #[inline]
    pub(crate) fn first(&self) -> Option<&'static Slab> {
        self.head
    }

    /// Adds a slab at the front, where it is used next.
    pub(crate) fn push_front(&mut self, slab: &'static Slab, name: ListName) {
        debug_assert!(slab.list() == ListName::None && name != ListName::None);
        slab.links.list.set(name);
        slab.links.previous.set(None);
        slab.links.next.set(self.head);
        match self.head {
            Some(head) => head.links.previous.set(Some(slab)),
            None => self.tail = Some(slab),
        }
        self.head = Some(slab);
        self.length += 1;
    }

    /// Adds a slab at the back, where it is used last.
    pub(crate) fn push_back(&mut self, slab: &'static Slab, name: ListName) {
        debug_assert!(slab.list() == ListName::None && name != ListName::None);
        slab.links.list.set(name);
        slab.links.next.set(None);
        slab.links.previous.set(self.tail);
        match self.tail {
            Some(tail) => tail.links.next.set(Some(slab)),
            None => self.head = Some(slab),
        }
        self.tail = Some(slab);
        self.length += 1;
    }

    /// Takes out a slab that is in this list.
    pub(crate) fn remove(&mut self, slab: &'static Slab) {
        debug_assert!(slab.list() != ListName::None && self.length > 0);
        let (previous, next) = (slab.links.previous.take(), slab.links.next.take());
        match previous {
            Some(previous) => previous.links.next.set(next),
            None => self.head = next,
        }
        match next {
            Some(next) => next.links.previous.set(previous),
            None => self.tail = previous,
        }
        slab.links.list.set(ListName::None);
        self.length -= 1;
        self.use_spare(slab);
    }

    /// Takes out all slabs for which `unwanted` returns `true`.
    pub(in crate::middle) fn remove_if(&mut self, unwanted: impl Fn(&Slab) -> bool) {
        let mut next = self.head;
        while let Some(slab) = next {
            next = slab.links.next.get();
            if unwanted(slab) {
                self.remove(slab);
            }
        }
    }

    /// Checks the links and counts, and calls `see` with each slab.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::middle) fn check(&self, see: impl Fn(&'static Slab)) {
        let (mut length, mut spares) = (0, 0);
        let mut last = None::<&'static Slab>;
        for slab in core::iter::successors(self.head, |slab| slab.links.next.get()) {
            holds(slab.links.previous.get().map(Slab::base) == last.map(Slab::base));
            holds(slab.list() != ListName::None);
            length += 1;
            spares += usize::from(slab.links.spare.get());
            last = Some(slab);
            slab.check();
            see(slab);
        }
        holds(self.tail.map(Slab::base) == last.map(Slab::base));
        holds((length, spares) == (self.length, self.spares));
    }

    /// Keeps a slab of this list although all its blocks are free, to be used last. `false`: it is
    /// not the only slab, and as many spare ones as `bytes` hold are kept already.
    pub(crate) fn keep_spare(&mut self, slab: &'static Slab, bytes: usize) -> bool {
        let each = usize::from(slab.class().row().slab_pages) * PAGE;
        if self.length > 1 && (self.spares + 1) * each > bytes {
            return false;
        }
        if !slab.links.spare.replace(true) {
            self.spares += 1;
            self.move_to_back(slab);
        }
        true
    }

    /// Whether slabs of this list are kept although all their blocks are free.
    #[inline]
    pub(crate) fn has_spares(&self) -> bool {
        self.spares > 0
    }

    /// Notes that blocks of a slab of this list are about to be used.
    #[inline]
    pub(crate) fn use_spare(&mut self, slab: &Slab) {
        if slab.links.spare.replace(false) {
            self.spares -= 1;
        }
    }

    fn move_to_back(&mut self, slab: &'static Slab) {
        let (name, spare) = (slab.links.list.get(), slab.links.spare.get());
        self.remove(slab);
        self.push_back(slab, name);
        if spare {
            slab.links.spare.set(true);
            self.spares += 1;
        }
    }

    /// Moves a slab of this list to the back if the `freed` blocks that just came back made it
    /// sparse. Nearly full slabs are used first, so that sparse ones become empty.
    pub(crate) fn settle(&mut self, slab: &'static Slab, freed: usize) {
        if slab.became_sparse(freed) {
            self.move_to_back(slab);
        }
    }

    /// All slabs, in reverse order of use.
    pub(crate) fn sparsest_first(&self) -> impl Iterator<Item = &'static Slab> {
        core::iter::successors(self.tail, |slab| slab.links.previous.get())
    }

    /// A slab of which no block is in use. Such slabs are among the spare ones or the sparsest, so
    /// only a few others are looked at.
    pub(crate) fn find_unused(&self) -> Option<&'static Slab> {
        let few = self.sparsest_first().take(self.spares + LONG);
        #[cfg(test)]
        let few = few.inspect(|_| tests::LOOKED.set(tests::LOOKED.get() + 1));
        few.into_iter().find(|slab| slab.used() == 0)
    }
}

#[cfg(test)]
pub(in crate::middle) mod tests {
    use super::*;
    use crate::ground::size_class::SizeClass;
    use crate::middle::slabs::slab::tests::slab;
    use core::cell::Cell;
    use proptest::prelude::*;

    std::thread_local! {
        /// How many slabs this thread has looked at for one without a block in use.
        pub(in crate::middle) static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    const SLABS: usize = 8;

    /// A list beside the expected state: numbers of slabs in order, and which are spare.
    struct Model {
        slabs: [&'static Slab; SLABS],
        list: SlabList,
        order: Vec<usize>,
        spare: [bool; SLABS],
    }

    impl Model {
        fn new() -> Model {
            let slabs = core::array::from_fn(|_| slab(SizeClass::of(1024)));
            Model { slabs, list: SlabList::new(), order: Vec::new(), spare: [false; SLABS] }
        }

        fn move_to_back(&mut self, n: usize) {
            self.order.retain(|other| *other != n);
            self.order.push(n);
        }

        fn drop_from_model(&mut self, n: usize) {
            self.order.retain(|other| *other != n);
            self.spare[n] = false;
        }

        fn step(&mut self, kind: u8, n: usize) {
            let slab = self.slabs[n];
            let is_here = self.order.contains(&n);
            match kind {
                0 if !is_here => {
                    self.list.push_front(slab, ListName::Partial);
                    self.order.insert(0, n);
                }
                1 if !is_here => {
                    self.list.push_back(slab, ListName::Full);
                    self.order.push(n);
                }
                2 if is_here => {
                    self.list.remove(slab);
                    self.drop_from_model(n);
                }
                3 => {
                    let first = self.slabs[n].base();
                    self.list.remove_if(|slab| slab.base() == first);
                    self.drop_from_model(n);
                }
                4 if is_here => {
                    // Room for two of 64 KiB, unless it is the only slab.
                    let spares = self.spare.iter().filter(|spare| **spare).count();
                    let stays = self.order.len() == 1 || spares < 2;
                    assert_eq!(self.list.keep_spare(slab, 128 << 10), stays);
                    if stays && !self.spare[n] {
                        self.spare[n] = true;
                        self.move_to_back(n);
                    }
                }
                5 if is_here => {
                    self.list.use_spare(slab);
                    self.spare[n] = false;
                }
                6 if is_here => {
                    // A slab becomes sparse when the 33rd of 64 blocks in use comes back.
                    let used = slab.used();
                    slab.take_lowest(32 - used, |_| ());
                    self.list.settle(slab, 1);
                    slab.put(0, 1, 1).unwrap();
                    self.list.settle(slab, 1);
                    self.move_to_back(n);
                }
                _ => {}
            }
        }

        fn check(&self) {
            let bases: Vec<usize> = self.order.iter().map(|n| self.slabs[*n].base()).collect();
            let reverse: Vec<usize> = self.list.sparsest_first().map(Slab::base).collect();
            assert_eq!(reverse.into_iter().rev().collect::<Vec<_>>(), bases);
            assert_eq!(self.list.first().map(Slab::base), bases.first().copied());
            assert_eq!(self.list.length(), bases.len());
            self.list.check(|_| ());
            assert_eq!(self.list.spares, self.spare.iter().filter(|spare| **spare).count());
            for (slab, spare) in self.slabs.iter().zip(self.spare) {
                let is_here = bases.contains(&slab.base());
                assert_eq!(slab.list() != ListName::None, is_here);
                assert_eq!(slab.links.spare.get(), spare);
                let mut all = self.list.sparsest_first();
                assert_eq!(all.any(|other| other.base() == slab.base()), is_here);
            }
            let is_unused = self.list.sparsest_first().any(|slab| slab.used() == 0);
            assert_eq!(self.list.find_unused().is_some(), is_unused);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None, cases: 48, ..Default::default()
        })]

        #[test]
        fn slabs_are_where_they_were_put(
            steps in prop::collection::vec((0u8..7, 0..SLABS), 1..200),
        ) {
            let mut model = Model::new();
            for (kind, n) in steps {
                model.step(kind, n);
                model.check();
            }
        }
    }

    #[test]
    fn the_only_slab_is_kept_whatever_the_bound() {
        let slabs = [0, 0].map(|_| slab(SizeClass::of(1024)));
        let mut list = SlabList::new();
        list.push_back(slabs[0], ListName::Partial);
        assert!(list.keep_spare(slabs[0], 0));
        list.push_back(slabs[1], ListName::Partial);
        assert!(!list.keep_spare(slabs[1], 0));
    }

    #[test]
    fn a_list_is_long_from_its_32nd_slab_on() {
        let mut list = SlabList::new();
        for n in 1..=LONG {
            list.push_back(slab(SizeClass::of(1024)), ListName::Full);
            assert_eq!(list.is_long(), n == 32);
        }
    }
}
