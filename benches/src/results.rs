//! The numbers of the ratios, and what is computed from them.

use crate::cases::{Case, Door};
use crate::figures::{Figure, geometric_mean};
use crate::peers::REFERENCE;
use crate::store::Store;

/// The results of all kinds of measurements.
pub(crate) struct Results {
    pub(crate) ratios: Store,
    pub(crate) idle: Option<Store>,
    pub(crate) calls: Option<Store>,
    pub(crate) instructions: Option<Store>,
}

/// A quantity of a run: the sum of these columns.
pub(crate) type Number = &'static [&'static str];

pub(crate) const WALL: Number = &["wall_ns"];
pub(crate) const CPU: Number = &["user_ns", "system_ns"];
pub(crate) const PEAK: Number = &["peak_rss_kib"];
pub(crate) const FAULTS: Number = &["faults"];

/// The groups of workloads with their names.
pub(crate) const GROUPS: [(char, &str); 3] = [('a', "micro"), ('b', "threads"), ('c', "large")];

/// The median over the rounds of a case on a peer.
pub(crate) fn median(store: &Store, case: Case, peer: &str, number: Number) -> Option<f64> {
    Some(Figure::of(store.sums(case, peer, number)?)?.median)
}

/// The ratio of one peer to another, taken round by round.
pub(crate) fn ratio(
    store: &Store,
    case: Case,
    (peer, other): (&str, &str),
    number: Number,
) -> Option<Figure> {
    let (ours, theirs) = (store.sums(case, peer, number)?, store.sums(case, other, number)?);
    // A series that failed half-way has fewer rounds, which cannot be compared.
    Figure::of_ratios(&ours, &theirs).filter(|_| ours.len() == theirs.len())
}

/// The geometric mean of the ratios over the cases in which neither peer failed.
pub(crate) fn mean(
    store: &Store,
    cases: &[Case],
    pair: (&str, &str),
    number: Number,
) -> Option<f64> {
    let ratios = cases.iter().filter_map(|&case| Some(ratio(store, case, pair, number)?.median));
    geometric_mean(&ratios.collect::<Vec<f64>>())
}

/// The peer with the lowest median in a case, not counting lumalloc's own configurations.
pub(crate) fn best(store: &Store, case: Case, number: Number) -> Option<&'static str> {
    let peers = store.peers(case.door);
    let medians = peers
        .iter()
        .filter(|peer| !peer.is_ours())
        .filter_map(|peer| Some((peer.name, median(store, case, peer.name, number)?)));
    medians.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, _)| name)
}

/// The peer with the lowest geometric mean over some cases.
pub(crate) fn best_of_all(store: &Store, cases: &[Case], number: Number) -> Option<&'static str> {
    let peers = store.peers(cases.first()?.door);
    let means = peers
        .iter()
        .filter(|peer| !peer.is_ours())
        .filter_map(|peer| Some((peer.name, mean(store, cases, (peer.name, REFERENCE), number)?)));
    means.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, _)| name)
}

/// The cases of a store for C or for Rust.
pub(crate) fn behind(store: &Store, door: Door) -> Vec<Case> {
    store.cases().into_iter().filter(|case| case.door == door).collect()
}
