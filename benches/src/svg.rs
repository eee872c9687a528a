//! The parts of SVG that the plots need.

use std::fmt::Write;

/// A picture under construction. Coordinates are pixels from the upper left corner.
pub(crate) struct Svg(String);

/// The alignment of a text at its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Helvetica, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        ))
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(crate) fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            at.0, at.1, size.0, size.1
        );
    }

    pub(crate) fn disc(&mut self, at: (f64, f64), radius: f64, colour: &str) {
        let _ = writeln!(
            self.0,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{colour}\"/>",
            at.0, at.1
        );
    }

    /// A line through all points. `dashes` are the lengths of its dashes and gaps; empty: none.
    pub(crate) fn curve(
        &mut self,
        points: &[(f64, f64)],
        (colour, width): (&str, f64),
        dashes: &str,
    ) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.0,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-dasharray=\"{dashes}\"/>",
            points.join(" ")
        );
    }

    pub(crate) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: &str) {
        self.coloured(at, (size, "black"), anchor, text);
    }

    pub(crate) fn coloured(
        &mut self,
        at: (f64, f64),
        (size, colour): (f64, &str),
        anchor: Anchor,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.0,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\">{text}</text>",
            at.0, at.1
        );
    }

    pub(crate) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}
