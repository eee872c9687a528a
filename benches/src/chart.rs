//! The chart of time against memory: one point per allocator, with logarithmic scales. The lower
//! left is best.

use crate::peers::REFERENCE;
use crate::svg::{Anchor, Svg};

/// The geometric means of an allocator over a group: time and peak RSS.
pub(crate) struct Point {
    pub(crate) name: &'static str,
    pub(crate) ours: bool,
    pub(crate) time: f64,
    pub(crate) memory: f64,
}

const PANEL: (f64, f64) = (420.0, 330.0);
const MARGIN: (f64, f64) = (70.0, 60.0);

/// Draws panels with their titles side by side. `None` if no panel has two points to compare.
pub(crate) fn chart(panels: &[(String, Vec<Point>)]) -> Option<String> {
    let panels: Vec<_> = panels.iter().filter(|(_, points)| points.len() > 1).collect();
    let width = panels.len() as f64 * (PANEL.0 + MARGIN.0 + 40.0);
    let mut svg = Svg::new(width.max(1.0), PANEL.1 + MARGIN.1 + 60.0);
    for (number, (title, points)) in panels.iter().enumerate() {
        let left = number as f64 * (PANEL.0 + MARGIN.0 + 40.0) + MARGIN.0;
        svg.text((left + PANEL.0 / 2.0, 26.0), 15.0, Anchor::Middle, title);
        panel(&mut svg, (left, 44.0), points);
    }
    (!panels.is_empty()).then(|| svg.finish())
}

/// A logarithmic scale from the smallest to the largest number, with room at both ends.
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

    /// The place of a number on the scale, from 0 to 1.
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
        // A label that would overlap another moves down.
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

#[cfg(test)]
mod tests {
    use super::{Point, Scale, chart};

    #[test]
    fn a_scale_holds_its_numbers_and_one() {
        let scale = Scale::of([0.5, 2.0].into_iter());
        assert!(scale.at(0.5) > 0.0 && scale.at(2.0) < 1.0);
        assert!((scale.at(1.0) - 0.5).abs() < 1e-9);
        assert!(scale.ticks().any(|tick| tick == 1.0));
    }

    #[test]
    fn a_panel_needs_two_allocators() {
        let point = |name, time| Point { name, ours: false, time, memory: 1.0 };
        assert!(chart(&[("one".to_owned(), vec![point("a", 1.0)])]).is_none());
        let two = chart(&[("two".to_owned(), vec![point("a", 1.0), point("b", 0.5)])]).unwrap();
        assert!(two.contains(">two<") && two.contains(">a<") && two.contains(">b<"));
    }
}
