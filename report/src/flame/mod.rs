//! Flame graphs: all stacks in one picture, in which the width of a function is its share.

mod tree;
mod svg;

use crate::report::Report;
use crate::views::Value;
use tree::Tree;

/// Returns a picture as SVG. It needs no other file; a click enlarges a part.
pub fn flame_graph(report: &Report, title: &str, value: Value) -> String {
    svg::svg(report, &Tree::new(report, value), title, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    fn graph(file: File, value: Value) -> String {
        flame_graph(&Report::new(file.read(), &Search::default()), "a<b", value)
    }

    fn file() -> File {
        File::default()
            .path("main > run > Vec<T>::push", 75, 1, 1)
            .path("main > run > read", 20, 1, 1)
            .path("main > quit", 5, 2, 1)
            .path("main > run > none", 8, 1, 0)
    }

    /// The titles of the frames, and where they lie.
    fn frames(svg: &str) -> Vec<(&str, &str, &str, &str)> {
        let part = |text: &'static str, line: &'_ str| -> (usize, usize) {
            let begin = line.find(text).expect("the mark") + text.len();
            (begin, begin + line[begin..].find(['"', '<']).expect("its end"))
        };
        let of = |line: &'_ str, text: &'static str| part(text, line);
        let lines = svg.lines().filter(|line| line.starts_with("<g "));
        lines
            .map(|line| {
                let [title, from, share, level] =
                    ["<title>", "data-from=\"", "data-share=\"", "data-level=\""].map(|text| {
                        let (begin, end) = of(line, text);
                        &line[begin..end]
                    });
                (title, from, share, level)
            })
            .collect()
    }

    #[test]
    fn widths_are_shares() {
        let svg = graph(file(), Value::LiveBytes);
        assert_eq!(
            frames(&svg),
            [
                ("all&#10;100 B live bytes, 100.0%", "0.000000000", "1.000000000", "0"),
                ("main&#10;100 B live bytes, 100.0%", "0.000000000", "1.000000000", "1"),
                ("quit&#10;5 B live bytes, 5.0%", "0.950000000", "0.050000000", "2"),
                ("run&#10;95 B live bytes, 95.0%", "0.000000000", "0.950000000", "2"),
                ("read&#10;20 B live bytes, 20.0%", "0.750000000", "0.200000000", "3"),
                (
                    "Vec&lt;T&gt;::push&#10;75 B live bytes, 75.0%",
                    "0.000000000",
                    "0.750000000",
                    "3"
                ),
            ]
        );
        assert!(svg.contains(">a&lt;b: live bytes</text>"), "{svg}");
        let note = "Callers are above what they call. Each allocation while sampling was on, and \
                    after any reset, was counted. Click to enlarge, or arrow keys and Enter.";
        assert!(svg.contains(&format!(">{note}</text>")), "{svg}");
        let whole = graph(file().comment("prof.since_start=1"), Value::LiveBytes);
        let note = "Callers are above what they call. Each allocation was counted. Click to \
                    enlarge, or arrow keys and Enter.";
        assert!(whole.contains(&format!(">{note}</text>")), "{whole}");
        let svg = graph(file(), Value::Allocations);
        assert!(svg.contains("<title>all&#10;5 allocations, 100.0%"), "{svg}");
    }

    #[test]
    fn a_profile_without_values_says_so() {
        let svg = graph(File::default().path("main", 8, 1, 0), Value::LiveBytes);
        assert!(svg.contains(">The profile has no live bytes.</text>"), "{svg}");
        assert_eq!(frames(&svg).len(), 1);
    }

    #[test]
    fn estimates_have_errors() {
        let mut file = file();
        file.profile.period = 1000;
        let svg = graph(file, Value::LiveBytes);
        let note = "Callers are above what they call. Widths are estimates from samples. Click to \
                    enlarge, or arrow keys and Enter.";
        assert!(
            svg.contains("<title>all&#10;100 B ± ") && svg.contains(&format!(">{note}</text>")),
            "{svg}"
        );
    }
}
