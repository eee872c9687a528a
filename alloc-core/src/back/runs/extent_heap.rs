//! A pairing heap of runs, lowest address first. Its links lie in the records of the runs.

use crate::back::map::extent::Extent;
#[cfg(any(test, feature = "checks"))]
use crate::ground::holds::holds;

/// A heap of runs.
#[derive(Default)]
pub(crate) struct ExtentHeap {
    root: Option<&'static Extent>,
}

type Link = Option<&'static Extent>;

impl ExtentHeap {
    /// An empty heap.
    pub(crate) const fn new() -> ExtentHeap {
        ExtentHeap { root: None }
    }

    /// The run with the lowest address.
    #[inline]
    pub(crate) fn first(&self) -> Link {
        self.root
    }

    /// Adds a run that is in no heap.
    pub(crate) fn insert(&mut self, extent: &'static Extent) {
        extent.heap_child.set(None);
        extent.heap_prev.set(None);
        extent.heap_next.set(None);
        self.root = meld(self.root, Some(extent));
    }

    /// Checks the links and the order of the runs. Returns how many there are.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn check(&self) -> usize {
        let root = self.root.iter();
        root.for_each(|root| {
            holds(root.heap_prev.get().is_none() && root.heap_next.get().is_none())
        });
        let mut count = 0;
        let mut at = self.root;
        while let Some(run) = at {
            count += 1;
            let (child, next) = (run.heap_child.get(), run.heap_next.get());
            for linked in [child, next].into_iter().flatten() {
                holds(linked.heap_prev.get().is_some_and(|previous| previous.is(run)));
            }
            let children = core::iter::successors(child, |child| child.heap_next.get());
            children.for_each(|child| holds(child.base() > run.base()));
            at = child.or(next).or_else(|| after(run));
        }
        count
    }

    /// Takes out a run that is in this heap.
    pub(crate) fn remove(&mut self, extent: &'static Extent) {
        let children = meld_children(extent);
        match extent.heap_prev.take() {
            None => self.root = children,
            Some(previous) => {
                unlink(previous, extent);
                self.root = meld(self.root, children);
            }
        }
    }
}

/// Returns the next sibling of the nearest ancestor of `run` that has one.
#[cfg(any(test, feature = "checks"))]
fn after(mut run: &'static Extent) -> Link {
    loop {
        let previous = run.heap_prev.get()?;
        let is_parent = previous.heap_child.get().is_some_and(|child| child.is(run));
        if is_parent && previous.heap_next.get().is_some() {
            return previous.heap_next.get();
        }
        run = previous;
    }
}

/// Takes a run that is not a root out of the list of its siblings. `previous` is its parent or the
/// sibling before it.
fn unlink(previous: &'static Extent, extent: &'static Extent) {
    let next = extent.heap_next.take();
    if previous.heap_child.get().is_some_and(|child| child.is(extent)) {
        previous.heap_child.set(next);
    } else {
        previous.heap_next.set(next);
    }
    if let Some(next) = next {
        next.heap_prev.set(Some(previous));
    }
}

/// Melds two heaps: the root with the higher address becomes the first child of the other.
fn meld(a: Link, b: Link) -> Link {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let (parent, child) = if a.base() < b.base() { (a, b) } else { (b, a) };
    let sibling = parent.heap_child.get();
    child.heap_next.set(sibling);
    if let Some(sibling) = sibling {
        sibling.heap_prev.set(Some(child));
    }
    child.heap_prev.set(Some(parent));
    parent.heap_child.set(Some(child));
    Some(parent)
}

/// Makes one heap of a run's children: pairs from left to right, then the pairs from right to left.
fn meld_children(extent: &'static Extent) -> Link {
    let mut rest = extent.heap_child.take();
    let mut pairs: Link = None;
    while let Some(first) = rest {
        let second = detach(first);
        rest = second.and_then(detach);
        let Some(pair) = meld(Some(first), second) else { break };
        pair.heap_next.set(pairs);
        pairs = Some(pair);
    }
    let mut root = None;
    while let Some(pair) = pairs {
        pairs = pair.heap_next.take();
        root = meld(root, Some(pair));
    }
    root
}

/// Makes a sibling a root of its own, and returns the one after it.
fn detach(extent: &'static Extent) -> Link {
    extent.heap_prev.set(None);
    extent.heap_next.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;
    use crate::ground::units::PAGE;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_is_always_the_lowest(
            ops in prop::collection::vec((0usize..64, any::<bool>()), 1..200),
        ) {
            let mut heap = ExtentHeap::new();
            let mut model = BTreeMap::new();
            for (at, insert) in ops {
                if insert {
                    model.entry(at).or_insert_with(|| {
                        let extent: &Extent = keep(Box::new(Extent::new(0)));
                        extent.set_range((at + 1) * PAGE, 1);
                        heap.insert(extent);
                        extent
                    });
                } else if let Some(extent) = model.remove(&at) {
                    heap.remove(extent);
                }
                let lowest = model.values().next().map(|extent| extent.base());
                prop_assert_eq!(heap.first().map(Extent::base), lowest);
                prop_assert_eq!(heap.check(), model.len());
            }
        }
    }
}
