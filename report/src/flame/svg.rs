//! Writes the flame graph as SVG.

use std::fmt::Write;

use super::tree::{ROOT, Tree};
use crate::report::Report;
use crate::terminal::controls;
use crate::views::{Bytes, Value, known, percent};

/// The sizes of the picture, as in `zoom.js`.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const CHARACTER: f64 = 7.3;
const FRAME: f64 = 17.0;
/// Room for the title.
const HEAD: f64 = 56.0;
/// Narrower frames are left out.
const NARROWEST: f64 = 0.2;

const STYLE: &str = "text{font:12px monospace;fill:#1b1b1b;pointer-events:none}\
                     .title{font-size:16px}.frame{cursor:pointer}.frame:hover rect{stroke:#000}\
                     .frame:focus{outline:none}\
                     .frame:focus-visible rect{stroke:#000;stroke-width:2}";

/// A frame of the picture.
struct Frame {
    at: usize,
    level: usize,
    /// The left end and the width, as parts of the whole.
    from: f64,
    share: f64,
}

/// Returns the SVG.
pub(super) fn svg(report: &Report, tree: &Tree, title: &str, value: Value) -> String {
    let frames = frames(tree);
    let levels = frames.iter().map(|frame| frame.level).max().unwrap_or(0) + 1;
    let height = HEAD + FRAME * levels as f64 + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fdfaf3\"/>\n"
    );
    let heading = format!("{title}: {}", value.name());
    line(&mut out, 24.0, "title", &clipped(&heading, 116));
    line(&mut out, 44.0, "note", &note(report, tree, value));
    for frame in &frames {
        let y = HEAD + FRAME * frame.level as f64;
        out += &one(report, tree, frame, y, value);
    }
    out += "<script><![CDATA[\n";
    out += include_str!("zoom.js");
    out + "]]></script>\n</svg>\n"
}

fn line(out: &mut String, y: f64, class: &str, text: &str) {
    let text = escaped(text);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{text}</text>");
}

/// What the widths mean.
fn note(report: &Report, tree: &Tree, value: Value) -> String {
    if tree.value(ROOT) == 0 {
        return format!("The profile has no {}.", value.name());
    }
    let how = match report.profile().is_sampled() {
        true => "Widths are estimates from samples".to_owned(),
        false => report.profile().what_was_counted().replacen("each", "Each", 1),
    };
    format!("Callers are above what they call. {how}. Click to enlarge, or arrow keys and Enter.")
}

/// All frames that are wide enough, callers before what they call.
fn frames(tree: &Tree) -> Vec<Frame> {
    let all = tree.value(ROOT) as f64;
    let mut frames = Vec::new();
    let mut open = vec![Frame { at: ROOT, level: 0, from: 0.0, share: 1.0 }];
    while let Some(frame) = open.pop() {
        let mut from = frame.from;
        for child in tree.children(frame.at) {
            let share = tree.value(child) as f64 / all;
            if share * (WIDTH - 2.0 * MARGIN) >= NARROWEST {
                open.push(Frame { at: child, level: frame.level + 1, from, share });
            }
            from += share;
        }
        frames.push(frame);
    }
    frames
}

fn one(report: &Report, tree: &Tree, frame: &Frame, y: f64, value: Value) -> String {
    let inside = WIDTH - 2.0 * MARGIN;
    let (x, width) = (MARGIN + frame.from * inside, (frame.share * inside - 0.5).max(0.1));
    let node = tree.node(frame.at);
    let name = node.function.map_or("all", |function| report.function(function));
    let number = tree.value(frame.at);
    let error = known(node.tally.error(value));
    let text = |number: i64| match value.is_bytes() {
        true => Bytes::WithUnits.text(number),
        false => number.to_string(),
    };
    let error = match error {
        Some(error) if error <= 0 => String::new(),
        Some(error) => format!(" ± {}", text(error)),
        None => " ± ?".to_owned(),
    };
    let share = percent(number, tree.value(ROOT));
    let tip = format!("{name}\n{}{error} {}, {share}", text(number), value.name());
    let (tip, whole) = (escaped(&tip), escaped(name));
    let room = ((frame.share * inside - 6.0) / CHARACTER).max(0.0) as usize;
    let label = escaped(&clipped(name, room));
    let (from, share, level) = (frame.from, frame.share, frame.level);
    let fill = colour(name);
    format!(
        "<g class=\"frame\" data-name=\"{whole}\" data-from=\"{from:.9}\" \
         data-share=\"{share:.9}\" data-level=\"{level}\"><title>{tip}</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{:.0}\" rx=\"2\" \
         fill=\"{fill}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{label}</text></g>\n",
        FRAME - 1.0,
        x + 3.0,
        y + 12.0
    )
}

/// The beginning of a text that has room for so many characters; nothing below three.
fn clipped(text: &str, room: usize) -> String {
    if room < 3 {
        return String::new();
    }
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

/// A warm colour that depends on the name alone.
fn colour(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(2_166_136_261u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    let (hue, light) = (hash % 46 + 8, hash / 64 % 14 + 62);
    format!("hsl({hue},85%,{light}%)")
}

/// A text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            control if controls(control) => out.push('\u{fffd}'),
            // XML has no such characters.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_cut() {
        assert_eq!(escaped("a<b>&\"\x1b\u{fffe}"), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
        assert_eq!(escaped("a\nb"), "a&#10;b");
        assert_eq!(
            (clipped("operator", 8), clipped("operator", 7)),
            ("operator".into(), "operat…".into())
        );
        assert_eq!(clipped("f", 2), "");
    }

    #[test]
    fn colours_depend_on_the_name() {
        assert_eq!(colour("f"), colour("f"));
        assert_ne!(colour("f"), colour("g"));
    }
}
