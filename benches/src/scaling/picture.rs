//! The counts as curves, in a panel per workload: threads on the horizontal axis and counts per
//! million operations on the vertical axis, both on logarithmic scales. A flat curve scales.

use super::{Rows, SUMS, THREADS, WORKLOADS};
use crate::svg::{Anchor, Svg};

const PANEL: (f64, f64) = (300.0, 240.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 44.0;
const COLOURS: [&str; SUMS.len()] = [
    "#3060a0", "#c02020", "#208040", "#e08000", "#7040a0", "#00a0a0", "#909090", "#804000",
    "#d060a0",
];
/// Counts from 1 to 10 million. A count of 0 is drawn at the bottom.
const DECADES: u32 = 7;

/// Draws the whole picture.
pub(super) fn of(rows: &Rows) -> String {
    let width = WORKLOADS.len() as f64 * (PANEL.0 + LEFT) + 30.0;
    let mut svg = Svg::new(width, TOP + PANEL.1 + 70.0);
    for number in 0..WORKLOADS.len() {
        let left = number as f64 * (PANEL.0 + LEFT) + LEFT;
        panel(&mut svg, left, rows, number);
    }
    for (at, ((name, _), colour)) in SUMS.iter().zip(COLOURS).enumerate() {
        let place = (LEFT + at as f64 * (width - LEFT) / SUMS.len() as f64, TOP + PANEL.1 + 52.0);
        svg.disc((place.0, place.1 - 4.0), 4.5, colour);
        svg.text((place.0 + 9.0, place.1), 12.0, Anchor::Start, name);
    }
    svg.finish()
}

fn down(count: u64) -> f64 {
    let share = (count.max(1) as f64).log10() / f64::from(DECADES);
    TOP + (1.0 - share.min(1.0)) * PANEL.1
}

fn across(left: f64, threads: u32) -> f64 {
    let most = f64::from(THREADS[THREADS.len() - 1]).log2();
    left + f64::from(threads).log2() / most * PANEL.0
}

fn panel(svg: &mut Svg, left: f64, rows: &Rows, number: usize) {
    svg.text((left + PANEL.0 / 2.0, 26.0), 15.0, Anchor::Middle, WORKLOADS[number]);
    for decade in 0..=DECADES {
        let line = down(10_u64.pow(decade));
        svg.line((left, line), (left + PANEL.0, line), "#e4e4e4");
        svg.text((left - 6.0, line + 4.0), 11.0, Anchor::End, &format!("1e{decade}"));
    }
    for threads in THREADS {
        let place = across(left, threads);
        svg.line((place, TOP), (place, TOP + PANEL.1), "#e4e4e4");
        let label = threads.to_string();
        svg.text((place, TOP + PANEL.1 + 16.0), 11.0, Anchor::Middle, &label);
    }
    for (sum, colour) in COLOURS.into_iter().enumerate() {
        let points: Vec<(f64, f64)> = THREADS
            .iter()
            .filter_map(|&threads| {
                Some((across(left, threads), down(rows.get(&(number, threads))?[sum])))
            })
            .collect();
        points.windows(2).for_each(|pair| svg.line(pair[0], pair[1], colour));
        points.iter().for_each(|point| svg.disc(*point, 2.5, colour));
    }
}

#[cfg(test)]
mod tests {
    use super::{DECADES, PANEL, TOP, across, down, of};
    use crate::scaling::{Rows, SUMS};

    #[test]
    fn counts_and_threads_lie_within_the_panel() {
        assert_eq!(down(0), TOP + PANEL.1);
        assert_eq!(down(10_u64.pow(DECADES)), TOP);
        assert_eq!(down(u64::MAX), TOP);
        assert_eq!((across(10.0, 1), across(10.0, 64)), (10.0, 10.0 + PANEL.0));
    }

    #[test]
    fn every_sum_has_its_curve() {
        let rows = Rows::from([((0, 1), [5; SUMS.len()]), ((0, 64), [50; SUMS.len()])]);
        let picture = of(&rows);
        assert_eq!(picture.matches("r=\"2.5\"").count(), 2 * SUMS.len());
        assert!(SUMS.iter().all(|(name, _)| picture.contains(&format!(">{name}<"))));
    }
}
