//! The strongly connected parts of a graph: functions that call each other, directly or not.

use std::collections::{BTreeMap, BTreeSet};

/// The targets of each node.
type Targets = BTreeMap<usize, Vec<usize>>;

/// Returns the sets of at least two nodes that reach each other, in no particular order.
pub(super) fn cycles(arcs: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let (mut forward, mut backward) = (Targets::new(), Targets::new());
    for (from, to) in arcs {
        forward.entry(from).or_default().push(to);
        backward.entry(to).or_default().push(from);
    }
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    forward.keys().for_each(|node| finish(*node, &forward, &mut seen, &mut order));
    let mut seen = BTreeSet::new();
    let parts = order.iter().rev().map(|node| {
        let mut part = Vec::new();
        finish(*node, &backward, &mut seen, &mut part);
        part
    });
    parts.filter(|part| part.len() > 1).collect()
}

/// Adds what a node reaches and is not `seen` yet: each node after those that it leads to.
fn finish(from: usize, targets: &Targets, seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    let next = |node: usize| targets.get(&node).into_iter().flatten().copied();
    if !seen.insert(from) {
        return;
    }
    // No recursion: a chain may be very deep.
    let mut open = vec![(from, next(from))];
    while let Some((node, rest)) = open.last_mut() {
        match rest.find(|target| !seen.contains(target)) {
            Some(target) => {
                seen.insert(target);
                open.push((target, next(target)));
            }
            None => {
                order.push(*node);
                open.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(arcs: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut found = cycles(arcs.iter().copied());
        found.iter_mut().for_each(|part| part.sort_unstable());
        found.sort();
        found
    }

    #[test]
    fn nodes_that_reach_each_other_are_found() {
        assert_eq!(sorted(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(sorted(&[(1, 2), (2, 3), (1, 3), (4, 4)]), Vec::<Vec<usize>>::new());
        assert_eq!(sorted(&[(0, 1), (1, 2), (2, 1), (2, 3)]), [[1, 2]]);
        assert_eq!(
            sorted(&[(0, 1), (1, 2), (2, 3), (3, 1), (3, 5), (5, 6), (6, 5)]),
            [vec![1, 2, 3], vec![5, 6]]
        );
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let ring = (0..200_000).map(|node| (node, (node + 1) % 200_000));
        assert_eq!(cycles(ring)[0].len(), 200_000);
    }
}
