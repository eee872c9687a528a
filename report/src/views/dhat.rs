//! The JSON that valgrind's viewer for DHAT reads (`dh_view.html`), version 2.
//!
//! A profile has no lifetimes, accesses and times, and the file says so (`bklt`, `bkacc`). So it
//! has one pair of numbers for each stack: bytes and blocks, either the live ones or all allocated.
//! Source: valgrind's `dhat/dh_main.c`.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::profile::Counts;
use crate::report::Report;
use crate::terminal::json_text;
use crate::views::rows::place;
use crate::views::value::Value;

/// Returns the file. `value` chooses between live blocks and all allocations.
pub fn dhat(report: &Report, title: &str, value: Value) -> String {
    let mut frames = Frames { of: BTreeMap::new(), names: vec!["[root]".to_owned()] };
    let mut stacks: BTreeMap<Vec<usize>, Counts> = BTreeMap::new();
    for sample in &report.profile().samples {
        let stack = report.stack_below_main(sample.stack);
        let stack = stack.map(|frame| frames.index(place(report.symbols(), frame))).collect();
        *stacks.entry(stack).or_default() += sample.counts;
    }
    let points: Vec<Json> =
        stacks.iter().filter_map(|(stack, it)| point(stack, it, value)).collect();
    let pid = report.profile().comment("pid").and_then(|pid| pid.parse::<u64>().ok());
    let file = json!({
        "dhatFileVersion": 2,
        "mode": if value.is_live() { "heap, live blocks" } else { "heap, allocations" },
        "verb": if value.is_live() { "Live, allocated" } else { "Allocated" },
        "bklt": false,
        "bkacc": false,
        // The file has no times: the rates that the viewer shows are the numbers themselves.
        "tu": "millionths",
        "Mtu": "profile",
        "cmd": title,
        "pid": pid.unwrap_or(0),
        "te": 1_000_000,
        "pps": points,
        "ftbl": frames.names,
    });
    json_text(&file) + "\n"
}

/// A program point; none if it has no blocks.
fn point(stack: &[usize], counts: &Counts, value: Value) -> Option<Json> {
    let (bytes, blocks) = match value.is_live() {
        true => (counts.live_bytes, counts.live),
        false => (counts.alloc_bytes, counts.allocs),
    };
    (blocks != 0).then(|| json!({ "tb": bytes, "tbk": blocks, "fs": stack }))
}

/// The table of frames.
struct Frames {
    of: BTreeMap<String, usize>,
    names: Vec<String>,
}

impl Frames {
    fn index(&mut self, name: String) -> usize {
        let names = &mut self.names;
        *self.of.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    #[test]
    fn each_stack_is_a_program_point() {
        let file = File::default()
            .comment("pid=7")
            .path("main > f", 100, 4, 2)
            .path("main > f", 8, 1, 1)
            .path("main > quit", 8, 3, 0);
        let report = Report::new(file.read(), &Search::default());
        let of = |value| serde_json::from_str::<Json>(&dhat(&report, "x", value)).expect("JSON");
        let live = of(Value::LiveBytes);
        assert_eq!(live["pps"], json!([{ "tb": 208, "tbk": 3, "fs": [1, 2] }]));
        assert_eq!(
            live["ftbl"],
            json!(["[root]", "f (f.c:2)", "main (main.c:1)", "quit (quit.c:3)"])
        );
        assert_eq!((&live["pid"], &live["cmd"]), (&json!(7), &json!("x")));
        let all = of(Value::Allocations);
        let expected =
            json!([{ "tb": 408, "tbk": 5, "fs": [1, 2] }, { "tb": 24, "tbk": 3, "fs": [3, 2] }]);
        assert_eq!(all["pps"], expected);
    }
}
