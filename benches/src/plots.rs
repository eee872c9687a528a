//! Pictures of the ratios: a chart of time against memory for each group, and one heat map of all
//! workloads.

use crate::cases::{Case, Door};
use crate::chart::{Point, chart};
use crate::peers::{OURS, Peer, REFERENCE};
use crate::results::{GROUPS, PEAK, WALL, behind, mean, ratio};
use crate::store::Store;
use crate::svg::{Anchor, Svg};

/// The pictures, with the names of their files.
pub(crate) fn all(store: &Store) -> Vec<(String, String)> {
    let mut pictures: Vec<(String, String)> = GROUPS
        .iter()
        .filter_map(|&(group, name)| {
            Some((format!("group-{group}.svg"), group_chart(store, group, name)?))
        })
        .collect();
    pictures.extend(heat_map(store).map(|picture| ("heat.svg".to_owned(), picture)));
    pictures
}

fn door_title(door: Door) -> &'static str {
    match door {
        Door::C => "C, preloaded",
        Door::Rust => "Rust, global allocator",
    }
}

fn points(store: &Store, door: Door, group: char) -> Vec<Point> {
    let cases: Vec<Case> =
        behind(store, door).into_iter().filter(|case| case.workload.group == group).collect();
    let point = |peer: &Peer| -> Option<Point> {
        let of = |number| mean(store, &cases, (peer.name, REFERENCE), number);
        Some(Point { name: peer.name, ours: peer.is_ours(), time: of(WALL)?, memory: of(PEAK)? })
    };
    store.peers(door).into_iter().filter_map(point).collect()
}

/// A chart of time against memory, from C and from Rust.
fn group_chart(store: &Store, group: char, name: &str) -> Option<String> {
    let panel = |door| (format!("{name}: {}", door_title(door)), points(store, door, group));
    chart(&[panel(Door::C), panel(Door::Rust)])
}

const CELL: (f64, f64) = (62.0, 17.0);
const NAMES: f64 = 130.0;

/// The ratios of lumalloc's time to each peer's, with a row per workload and a column per peer.
fn heat_map(store: &Store) -> Option<String> {
    let panels: Vec<(Door, Vec<Case>, Vec<&Peer>)> = [Door::C, Door::Rust]
        .into_iter()
        .map(|door| {
            let others = store.peers(door).into_iter().filter(|peer| peer.name != OURS).collect();
            (door, behind(store, door), others)
        })
        .filter(|(_, cases, others): &(Door, Vec<Case>, Vec<&Peer>)| {
            !cases.is_empty() && !others.is_empty()
        })
        .collect();
    let rows = panels.iter().map(|(_, cases, _)| cases.len()).max()?;
    let wide = |peers: usize| NAMES + peers as f64 * CELL.0 + 30.0;
    let width = panels.iter().map(|(_, _, peers)| wide(peers.len())).sum();
    let mut svg = Svg::new(width, rows as f64 * CELL.1 + 100.0);
    let title = "lumalloc's wall time to each peer's, by workload: green is faster than the peer";
    svg.text((12.0, 22.0), 15.0, Anchor::Start, title);
    let mut left = 0.0;
    for (door, cases, peers) in &panels {
        svg.text((left + 12.0, 48.0), 13.0, Anchor::Start, door_title(*door));
        cells(&mut svg, (left, 84.0), store, (cases, peers));
        left += wide(peers.len());
    }
    Some(svg.finish())
}

fn cells(
    svg: &mut Svg,
    (left, top): (f64, f64),
    store: &Store,
    (cases, peers): (&[Case], &[&Peer]),
) {
    let column = |number: usize| left + NAMES + number as f64 * CELL.0;
    for (number, peer) in peers.iter().enumerate() {
        // Names are wider than cells, so every other name stands higher.
        let line = top - if number % 2 == 0 { 6.0 } else { 22.0 };
        svg.text((column(number) + CELL.0 / 2.0, line), 11.0, Anchor::Middle, peer.name);
    }
    for (row, &case) in cases.iter().enumerate() {
        let line = top + row as f64 * CELL.1;
        let name = format!("{} {}", case.workload.group, case.workload.name);
        svg.text((left + 12.0, line + 12.5), 11.0, Anchor::Start, &name);
        for (number, peer) in peers.iter().enumerate() {
            let Some(figure) = ratio(store, case, (OURS, peer.name), WALL) else { continue };
            let inner = (CELL.0 - 1.0, CELL.1 - 1.0);
            svg.rectangle((column(number), line), inner, &colour(figure.median));
            let middle = (column(number) + CELL.0 / 2.0, line + 12.5);
            svg.text(middle, 11.0, Anchor::Middle, &format!("{:.2}", figure.median));
        }
    }
}

/// The colour of a ratio: white at 1, green towards a half, red towards two.
fn colour(ratio: f64) -> String {
    let strength = (ratio.log2().abs().min(1.0) * 150.0) as u8;
    let pale = 255 - strength;
    if ratio < 1.0 { format!("rgb({pale},245,{pale})") } else { format!("rgb(250,{pale},{pale})") }
}

#[cfg(test)]
mod tests {
    use super::colour;

    #[test]
    fn faster_is_green_and_slower_red() {
        assert_eq!(colour(1.0), "rgb(250,255,255)");
        assert_eq!(colour(0.5), "rgb(105,245,105)");
        assert_eq!(colour(4.0), "rgb(250,105,105)");
    }
}
