//! Pictures of the ratios: for each group a chart of time against memory, and one heat map of all
//! workloads.

use crate::cases::{Case, Door};
use crate::peers::{OURS, Peer, REFERENCE};
use crate::report::{GROUPS, PEAK, WALL, behind, mean, ratio};
use crate::store::Store;
use crate::svg::{Anchor, Svg};

/// Names of files and what is in them.
pub(crate) fn all(store: &Store) -> Vec<(String, String)> {
    let mut pictures: Vec<(String, String)> = GROUPS
        .iter()
        .filter_map(|&(group, name)| {
            Some((format!("group-{group}.svg"), chart(store, group, name)?))
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

/// A peer's geometric means over a group: time and peak RSS.
struct Point {
    name: &'static str,
    ours: bool,
    time: f64,
    memory: f64,
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

const PANEL: (f64, f64) = (420.0, 330.0);
const MARGIN: (f64, f64) = (70.0, 60.0);

/// Time to the right, memory upwards, both on logarithmic scales: the lower left is the place to
/// be.
fn chart(store: &Store, group: char, name: &str) -> Option<String> {
    let panels: Vec<(Door, Vec<Point>)> = [Door::C, Door::Rust]
        .into_iter()
        .map(|door| (door, points(store, door, group)))
        .filter(|(_, points)| points.len() > 1)
        .collect();
    let width = panels.len() as f64 * (PANEL.0 + MARGIN.0 + 40.0);
    let mut svg = Svg::new(width.max(1.0), PANEL.1 + MARGIN.1 + 60.0);
    for (number, (door, points)) in panels.iter().enumerate() {
        let left = number as f64 * (PANEL.0 + MARGIN.0 + 40.0) + MARGIN.0;
        let title = format!("{name}: {}", door_title(*door));
        svg.text((left + PANEL.0 / 2.0, 26.0), 15.0, Anchor::Middle, &title);
        panel(&mut svg, (left, 44.0), points);
    }
    (!panels.is_empty()).then(|| svg.finish())
}

/// A logarithmic scale from the least to the greatest number, with room at both ends.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let low = numbers.clone().fold(f64::INFINITY, f64::min).min(0.9).ln();
        let high = numbers.fold(0.0, f64::max).max(1.1).ln();
        let room = (high - low) * 0.08;
        Self { low: low - room, high: high + room }
    }

    /// From 0 to 1.
    fn at(&self, number: f64) -> f64 {
        (number.ln() - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let steps = [
            0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0,
            16.0, 32.0,
        ];
        let (low, high) = (self.low.exp(), self.high.exp());
        steps.into_iter().filter(move |step| (low..high).contains(step))
    }
}

fn panel(svg: &mut Svg, (left, top): (f64, f64), points: &[Point]) {
    let x = Scale::of(points.iter().map(|point| point.time));
    let y = Scale::of(points.iter().map(|point| point.memory));
    let across = |number| left + x.at(number) * PANEL.0;
    let down = |number| top + (1.0 - y.at(number)) * PANEL.1;
    for tick in x.ticks() {
        let grid = if tick == 1.0 { "#999" } else { "#e4e4e4" };
        svg.line((across(tick), top), (across(tick), top + PANEL.1), grid);
        svg.text((across(tick), top + PANEL.1 + 16.0), 11.0, Anchor::Middle, &format!("{tick}"));
    }
    for tick in y.ticks() {
        let grid = if tick == 1.0 { "#999" } else { "#e4e4e4" };
        svg.line((left, down(tick)), (left + PANEL.0, down(tick)), grid);
        svg.text((left - 6.0, down(tick) + 4.0), 11.0, Anchor::End, &format!("{tick}"));
    }
    let label = format!("wall time, to {REFERENCE}: less is faster");
    svg.text((left + PANEL.0 / 2.0, top + PANEL.1 + 36.0), 12.0, Anchor::Middle, &label);
    svg.text((left - 40.0, top - 6.0), 12.0, Anchor::Start, &format!("peak RSS, to {REFERENCE}"));
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|one, other| other.memory.total_cmp(&one.memory));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        let (px, py) = (across(point.time), down(point.memory));
        let colour = if point.ours { "#c02020" } else { "#3060a0" };
        svg.disc((px, py), if point.ours { 6.0 } else { 4.5 }, colour);
        let long = point.name.len() as f64 * 7.0 + 10.0;
        let (at, anchor) = if px + long > left + PANEL.0 {
            (px - 9.0, Anchor::End)
        } else {
            (px + 9.0, Anchor::Start)
        };
        // A label that would lie upon another moves down.
        let mut line = py + 4.0;
        let lies_on = |line: f64| {
            taken.iter().any(|&(x, y)| (x - at).abs() < 110.0 && (y - line).abs() < 13.0)
        };
        while lies_on(line) {
            line += 2.0;
        }
        taken.push((at, line));
        svg.text((at, line), 12.0, anchor, point.name);
    }
}

const CELL: (f64, f64) = (62.0, 17.0);
const NAMES: f64 = 130.0;

/// Our time to each peer's, a row per workload and a column per peer.
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
        // Names are wider than cells: every other one stands higher.
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

/// White at 1, green towards a half, red towards two.
fn colour(ratio: f64) -> String {
    let strength = (ratio.log2().abs().min(1.0) * 150.0) as u8;
    let pale = 255 - strength;
    if ratio < 1.0 { format!("rgb({pale},245,{pale})") } else { format!("rgb(250,{pale},{pale})") }
}

#[cfg(test)]
mod tests {
    use super::{Scale, colour};

    #[test]
    fn a_scale_holds_its_numbers_and_one() {
        let scale = Scale::of([0.5, 2.0].into_iter());
        assert!(scale.at(0.5) > 0.0 && scale.at(2.0) < 1.0);
        assert!((scale.at(1.0) - 0.5).abs() < 1e-9);
        assert!(scale.ticks().any(|tick| tick == 1.0));
    }

    #[test]
    fn faster_is_green_and_slower_red() {
        assert_eq!(colour(1.0), "rgb(250,255,255)");
        assert_eq!(colour(0.5), "rgb(105,245,105)");
        assert_eq!(colour(4.0), "rgb(250,105,105)");
    }
}
