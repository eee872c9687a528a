//! The kinds of tables in the report.

use super::aligned;
use crate::cases::Case;
use crate::figures::Figure;
use crate::peers::{OURS, REFERENCE};
use crate::results::Number;
use crate::results::{GROUPS, PEAK, WALL, best, mean, median, ratio};
use crate::store::Store;

/// A table with a row per case and a column per peer.
pub(super) fn plain(
    store: &Store,
    cases: &[Case],
    cell: impl Fn(Case, &str) -> Option<String>,
) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let peers = store.peers(first.door);
    let mut rows = vec![vec!["workload".to_owned()]];
    rows[0].extend(peers.iter().map(|peer| peer.name.to_owned()));
    for &case in cases {
        let mut row = vec![case.workload.name.to_owned()];
        for peer in &peers {
            let empty = if store.failed(case, peer.name) { "failed" } else { "–" };
            row.push(cell(case, peer.name).unwrap_or_else(|| empty.to_owned()));
        }
        rows.push(row);
    }
    aligned(&rows)
}

pub(super) fn with_noise(figure: Figure) -> String {
    format!("{:.2} ±{:.2}", figure.median, figure.noise)
}

/// A table of the ratios to the reference.
pub(super) fn ratios(store: &Store, cases: &[Case], number: Number) -> String {
    plain(store, cases, |case, peer| ratio(store, case, (peer, REFERENCE), number).map(with_noise))
}

/// A table of lumalloc's time, its ratios to the reference and to the best peer of the workload,
/// and its peak RSS.
pub(super) fn ours(store: &Store, cases: &[Case]) -> String {
    let head =
        ["workload", "ns", "to mimalloc", "to the best", "best peer", "RSS, MiB", "to jemalloc"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for &case in cases {
        let mut row = vec![case.workload.name.to_owned()];
        let best = best(store, case, WALL).unwrap_or("–");
        let to = |other, number| ratio(store, case, (OURS, other), number).map(with_noise);
        row.extend(
            [
                median(store, case, OURS, WALL).map(|ns| format!("{ns:.2}")),
                to(REFERENCE, WALL),
                to(best, WALL),
                Some(best.to_owned()),
                median(store, case, OURS, PEAK).map(|kib| format!("{:.1}", kib / 1024.0)),
                ratio(store, case, (OURS, "jemalloc"), PEAK).map(|f| format!("{:.2}", f.median)),
            ]
            .map(|cell| cell.unwrap_or_else(|| "–".to_owned())),
        );
        rows.push(row);
    }
    aligned(&rows)
}

/// A table of the geometric means of time and of peak RSS, with a row per group and a column per
/// peer.
pub(super) fn means(store: &Store, cases: &[Case]) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let peers = store.peers(first.door);
    let mut rows = vec![vec!["group".to_owned()]];
    rows[0].extend(peers.iter().map(|peer| peer.name.to_owned()));
    for (what, number) in [("wall time", WALL), ("peak RSS", PEAK)] {
        let groups = GROUPS.map(|(group, name)| (Some(group), name));
        for (group, name) in groups.into_iter().chain([(None, "all")]) {
            let chosen: Vec<Case> = cases
                .iter()
                .copied()
                .filter(|case| group.is_none_or(|group| case.workload.group == group))
                .collect();
            if chosen.is_empty() {
                continue;
            }
            let mut row = vec![format!("{what}, {name}")];
            row.extend(peers.iter().map(|peer| {
                let measured = |&case: &Case| median(store, case, peer.name, number).is_some();
                let mark = if chosen.iter().all(measured) { "" } else { "*" };
                mean(store, &chosen, (peer.name, REFERENCE), number)
                    .map_or_else(|| "–".to_owned(), |mean| format!("{mean:.2}{mark}"))
            }));
            rows.push(row);
        }
    }
    aligned(&rows)
}
