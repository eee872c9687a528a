//! The picture: RSS over the three bursts and the quiet times after them, a line for each way.

use super::report::Series;
use super::round::{BURSTS, QUIET};
use super::ways::{DEFAULTS, NO_THREAD};
use crate::svg::{Anchor, Svg};

const SIZE: (f64, f64) = (1180.0, 560.0);
/// The corners of the plot.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 900.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 500.0;
/// The seconds before the end of a burst that are shown, and the step of the curves.
const BEFORE: f64 = 3.5;
const STEP: f64 = 0.25;
/// The height of a line of labels.
const LABEL: f64 = 17.0;
const OURS: &str = "#c02020";
const PEERS: [&str; 8] =
    ["#3060a0", "#2a9d8f", "#8a5fb0", "#a8741a", "#5b8c3a", "#c0589a", "#555555", "#1f9bd0"];

/// Peers that are left out, because their lines are those of another one.
const LEFT_OUT: [&str; 1] = ["lumalloc-hardened"];

/// One line of the picture.
struct Line {
    name: String,
    colour: &'static str,
    width: f64,
    dashes: &'static str,
    /// Seconds on the axis, and MiB.
    points: Vec<(f64, f64)>,
}

/// Draws the medians of all series that have not failed.
pub(super) fn draw(series: &[Series]) -> String {
    let lines = lines(series);
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(1.0, f64::max);
    let most = (most / 10.0).ceil() * 10.0;
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let title = "Memory of a service after bursts of work, by allocator (default options)";
    svg.text((LEFT, 30.0), 18.0, Anchor::Start, title);
    let subtitle =
        "Resident memory, MiB. Grey: a burst of events. Between bursts the service is idle.";
    svg.coloured((LEFT, 52.0), (13.0, "#555"), Anchor::Start, subtitle);
    bands(&mut svg, series);
    axes(&mut svg, most);
    let program = held(series);
    if !program.is_empty() {
        svg.curve(&placed(&program, most), ("#000", 1.2), "2 3");
    }
    for line in &lines {
        svg.curve(&placed(&line.points, most), (line.colour, line.width), line.dashes);
    }
    labels(&mut svg, &lines, &program, most);
    svg.finish()
}

/// The seconds of the whole axis.
fn whole() -> f64 {
    BURSTS as f64 * (BEFORE + QUIET)
}

fn across(seconds: f64) -> f64 {
    LEFT + seconds / whole() * (RIGHT - LEFT)
}

fn down(mib: f64, most: f64) -> f64 {
    BOTTOM - mib / most * (BOTTOM - TOP)
}

fn placed(points: &[(f64, f64)], most: f64) -> Vec<(f64, f64)> {
    points.iter().map(|&(seconds, mib)| (across(seconds), down(mib, most))).collect()
}

/// The place on the axis of a time, in seconds after the end of a burst.
fn axis(burst: usize, after: f64) -> f64 {
    burst as f64 * (BEFORE + QUIET) + BEFORE + after
}

fn lines(series: &[Series]) -> Vec<Line> {
    let shown = |one: &&Series| {
        let name = one.way.name.as_str();
        !one.runs().is_empty()
            && (one.way.is_default || name == NO_THREAD)
            && !LEFT_OUT.contains(&name)
    };
    let mut colours = PEERS.into_iter().cycle();
    let mut lines: Vec<Line> = Vec::new();
    for one in series.iter().filter(shown) {
        let (width, dashes) = match one.way.name.as_str() {
            DEFAULTS => (4.0, "none"),
            NO_THREAD => (1.6, "6 4"),
            _ => (1.8, "none"),
        };
        let colour = if one.way.is_ours { OURS } else { colours.next().unwrap_or(OURS) };
        lines.push(Line { name: one.way.name.clone(), colour, width, dashes, points: points(one) });
    }
    // The line of the defaults lies above all others.
    lines.sort_by_key(|line| line.name == DEFAULTS);
    lines
}

fn points(one: &Series) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for burst in 0..BURSTS {
        let steps = ((BEFORE + QUIET) / STEP) as usize;
        for step in 0..=steps {
            let after = step as f64 * STEP - BEFORE;
            if let Some(mib) = one.median(|run| run.rss(burst, after)) {
                points.push((axis(burst, after), mib));
            }
        }
    }
    points
}

/// What the program holds at the end of the last quiet time, as a line over that time.
fn held(series: &[Series]) -> Vec<(f64, f64)> {
    let found = series.iter().find_map(|one| one.median(|run| Some(run.last.allocated)));
    let last = BURSTS - 1;
    found.map_or(Vec::new(), |mib| vec![(axis(0, 0.0), mib), (axis(last, QUIET), mib)])
}

/// A grey band for each burst, as long as the slowest way took.
fn bands(svg: &mut Svg, series: &[Series]) {
    for burst in 0..BURSTS {
        let millis = |one: &Series| one.median(|run| Some(run.bursts.get(burst)?.1.millis));
        let longest = series.iter().filter_map(millis).fold(0.0, f64::max);
        let long = (longest / 1000.0).min(BEFORE);
        let (from, to) = (across(axis(burst, -long)), across(axis(burst, 0.0)));
        svg.rectangle((from, TOP), (to - from, BOTTOM - TOP), "#e4e4e4");
        let middle = f64::midpoint(from, to);
        let name = format!("burst {}", burst + 1);
        svg.coloured((middle, TOP - 6.0), (12.0, "#555"), Anchor::Middle, &name);
    }
}

fn axes(svg: &mut Svg, most: f64) {
    let mut mib = 0.0;
    while mib <= most {
        let y = down(mib, most);
        svg.line((LEFT, y), (RIGHT, y), if mib == 0.0 { "#666" } else { "#ececec" });
        svg.text((LEFT - 8.0, y + 4.0), 12.0, Anchor::End, &format!("{mib}"));
        mib += 10.0;
    }
    for burst in 0..BURSTS {
        for after in [0.0, 5.0, 10.0, 15.0] {
            let x = across(axis(burst, after));
            svg.line((x, BOTTOM), (x, BOTTOM + 5.0), "#666");
            let text = if after == 0.0 { "0".to_owned() } else { format!("{after} s") };
            svg.text((x, BOTTOM + 20.0), 12.0, Anchor::Middle, &text);
        }
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text((middle, BOTTOM + 42.0), 13.0, Anchor::Middle, "seconds after the end of a burst");
}

/// Names at the right, with the MiB at the end, each near the end of its line.
fn labels(svg: &mut Svg, lines: &[Line], program: &[(f64, f64)], most: f64) {
    let mut ends: Vec<(f64, String, &str, f64)> = Vec::new();
    for line in lines {
        let Some(&(_, mib)) = line.points.last() else { continue };
        let size = if line.name == DEFAULTS { 15.0 } else { 12.0 };
        ends.push((mib, format!("{:.0}  {}", mib, line.name), line.colour, size));
    }
    if let Some(&(_, mib)) = program.last() {
        ends.push((mib, format!("{mib:.0}  what the program holds"), "#000", 12.0));
    }
    ends.sort_by(|one, other| other.0.total_cmp(&one.0));
    let wanted: Vec<f64> = ends.iter().map(|end| down(end.0, most)).collect();
    for (end, y) in ends.iter().zip(spread(&wanted)) {
        let (_, name, colour, size) = end;
        svg.line((RIGHT + 2.0, down(end.0, most)), (RIGHT + 26.0, y), colour);
        svg.coloured((RIGHT + 30.0, y + 4.0), (*size, colour), Anchor::Start, name);
    }
}

/// Moves sorted heights apart, so that labels do not overlap, and keeps them within the plot.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for &y in wanted {
        let least = places.last().map_or(TOP, |last| last + LABEL);
        places.push(y.max(least));
    }
    let mut most = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LABEL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::series;
    use super::super::ways::NO_PURGING;
    use super::*;

    #[test]
    fn labels_are_apart_and_within_the_plot() {
        let places = spread(&[100.0, 101.0, 102.0, 495.0, 499.0]);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| (TOP..=BOTTOM).contains(place)), "{places:?}");
        assert_eq!(places[0], 100.0);
    }

    #[test]
    fn peers_at_their_defaults_have_lines_and_ours_is_the_widest() {
        let all = [
            series(DEFAULTS, 10.0, 3.0),
            series(NO_THREAD, 40.0, 3.0),
            series(NO_PURGING, 41.0, 3.0),
            series("glibc", 30.0, 3.0),
        ];
        let text = draw(&all);
        assert!(text.contains(">10  lumalloc<") && text.contains(">30  glibc<"), "{text}");
        assert!(text.contains(">5  what the program holds<"), "{text}");
        assert!(!text.contains(NO_PURGING), "{text}");
        assert_eq!(text.matches("<polyline").count(), 4, "{text}");
        let last = text.lines().rfind(|line| line.contains("<polyline")).unwrap();
        assert!(last.contains("stroke-width=\"4\"") && last.contains(OURS), "{last}");
    }

    #[test]
    fn a_curve_goes_from_the_first_sample_to_the_end_of_the_axis() {
        let points = points(&series("glibc", 30.0, 3.0));
        assert_eq!(points[0], (axis(0, -0.5), 40.0));
        assert_eq!(*points.last().unwrap(), (whole(), 30.0));
    }
}
