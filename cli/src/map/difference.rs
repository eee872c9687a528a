//! What changed between two maps of one process.

use std::collections::BTreeMap;

use super::cells::{self, Cell, Scale};
use super::heap::{Heap, Run, State, sum};
use super::picture::{Canvas, Sign, size};

/// Lines of the table of blocks.
const LINES: usize = 12;

/// How a cell changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    More,
    Same,
    Less,
    Gone,
    Unused,
}

impl Change {
    const ALL: [Change; 6] =
        [Change::New, Change::More, Change::Same, Change::Less, Change::Gone, Change::Unused];

    /// `None` for addresses that neither map has.
    fn between(before: Option<Cell>, after: Option<Cell>) -> Option<Change> {
        let used = |cell: Option<Cell>| cell.map_or(0, |cell| cell.used);
        before.or(after)?;
        Some(match (used(before), used(after)) {
            (0, 0) => Change::Unused,
            (0, _) => Change::New,
            (_, 0) => Change::Gone,
            (before, after) if before < after => Change::More,
            (before, after) if before > after => Change::Less,
            _ => Change::Same,
        })
    }

    fn sign(self) -> (Sign, &'static str) {
        let sign = |letter, ground, ink| Sign { letter, ground, ink };
        match self {
            Change::New => (sign('+', 160, 231), "in use now, and was not"),
            Change::More => (sign('^', 215, 16), "more in use"),
            Change::Same => (sign('=', 153, 16), "in use as before"),
            Change::Less => (sign('v', 114, 16), "less in use"),
            Change::Gone => (sign('-', 28, 231), "was in use, and is not now"),
            Change::Unused => (sign('.', 252, 16), "not in use before and now"),
        }
    }
}

/// Returns the picture of what changed, with tables.
pub(crate) fn draw(old: &Heap, new: &Heap, scale: Scale, has_colour: bool) -> String {
    let mut canvas = Canvas::new(has_colour);
    canvas.rows(&[old, new], scale, |at| {
        let [old, new] = [old, new].map(|heap| cells::cell(heap, at, scale.cell));
        Change::between(old, new).map(|change| change.sign().0)
    });
    canvas.words(&format!("\nA cell is {}.\n\n", size(scale.cell)));
    for change in Change::ALL {
        let (sign, meaning) = change.sign();
        canvas.words(" ");
        canvas.sign(Some(sign));
        canvas.words(&format!("  {meaning}\n"));
    }
    states(&mut canvas, old, new);
    blocks(&mut canvas, old, new);
    canvas.finish()
}

fn states(canvas: &mut Canvas, old: &Heap, new: &Heap) {
    canvas.words("\nstate          before         now      change\n");
    let of = |heap: &Heap, state| {
        let runs = heap.runs.iter().filter(|run| run.state == state);
        sum(runs.map(|run| run.bytes))
    };
    for state in State::ALL {
        let (before, after) = (of(old, state), of(new, state));
        if before.max(after) > 0 {
            canvas.words(&format!("{:<9}{}\n", state.words().0, line(before, after)));
        }
    }
    let used = |heap: &Heap| sum(heap.runs.iter().map(Run::used_bytes));
    canvas.words(&format!("{:<9}{}\n", "in use", line(used(old), used(new))));
}

fn line(before: u64, after: u64) -> String {
    format!("{:>12}{:>12}{:>12}", size(before), size(after), change(before, after))
}

fn change(before: u64, after: u64) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Less => format!("-{}", size(before - after)),
        std::cmp::Ordering::Equal => "0 B".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", size(after - before)),
    }
}

/// Bytes in use, by the size of the blocks.
fn by_block(heap: &Heap) -> BTreeMap<u64, u64> {
    let mut bytes = BTreeMap::new();
    for run in heap.runs.iter().filter(|run| run.used > 0) {
        let of: &mut u64 = bytes.entry(run.block).or_default();
        *of = of.saturating_add(run.used_bytes());
    }
    bytes
}

fn blocks(canvas: &mut Canvas, old: &Heap, new: &Heap) {
    let (before, after) = (by_block(old), by_block(new));
    let mut changed: Vec<(u64, u64, u64)> = before
        .keys()
        .chain(after.keys())
        .map(|block| {
            let of = |bytes: &BTreeMap<u64, u64>| bytes.get(block).copied().unwrap_or(0);
            (*block, of(&before), of(&after))
        })
        .filter(|(_, before, after)| before != after)
        .collect();
    changed.sort_unstable_by_key(|(block, before, after)| {
        (std::cmp::Reverse(before.abs_diff(*after)), *block)
    });
    changed.dedup();
    if changed.is_empty() {
        return;
    }
    canvas.words("\nblocks of      before         now      change\n");
    for (block, before, after) in changed.iter().take(LINES) {
        canvas.words(&format!("{:<9}{}\n", size(*block), line(*before, *after)));
    }
    if let Some(rest) = changed.len().checked_sub(LINES).filter(|rest| *rest > 0) {
        canvas.words(&format!("and {rest} other sizes\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::heap::tests::{heap, run, slab};
    use super::*;

    #[test]
    fn numbers_that_are_too_large_for_a_sum_are_compared() {
        let most = |page| Run { block: 1 << 63, ..slab(page, u64::MAX) };
        let (old, new) = (heap(vec![]), heap(vec![most(16), most(32)]));
        let text = draw(&old, &new, Scale { cell: 4 << 12, width: 12 }, false);
        for line in [
            "in use            0 B   16384 PiB  +16384 PiB\n",
            "8192 PiB          0 B   16384 PiB  +16384 PiB\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn what_changed_is_marked_and_summed() {
        let large = |page, pages| Run {
            block: pages << 12,
            blocks: 1,
            used: 1,
            ..run(page, pages, State::Large)
        };
        let old = heap(vec![slab(16, 100), slab(32, 9), large(48, 4), run(52, 4, State::Dirty)]);
        let new = heap(vec![slab(16, 100), slab(32, 19), run(48, 4, State::Dirty), large(52, 2)]);
        let expected = "\
0x000000010000  ====^^^^-+

A cell is 16 KiB.

 +  in use now, and was not
 ^  more in use
 =  in use as before
 v  less in use
 -  was in use, and is not now
 .  not in use before and now

state          before         now      change
slab          128 KiB     128 KiB         0 B
large          16 KiB       8 KiB      -8 KiB
dirty          16 KiB      16 KiB         0 B
in use       22.8 KiB    15.4 KiB    -7.4 KiB

blocks of      before         now      change
16 KiB         16 KiB         0 B     -16 KiB
8 KiB             0 B       8 KiB      +8 KiB
64 B          6.8 KiB     7.4 KiB      +640 B
";
        let scale = Scale { cell: 4 << 12, width: 16 };
        assert_eq!(draw(&old, &new, scale, false), expected);
        let same = draw(&old, &old, scale, false);
        assert!(same.contains("0x000000010000  =========.\n") && !same.contains("blocks of"));
    }

    #[test]
    fn each_change_has_a_letter() {
        let cell = |used| Some(Cell { state: State::Slab, fill: 0, used });
        for (before, after, letter) in [
            (None, cell(1), '+'),
            (cell(0), cell(1), '+'),
            (cell(1), cell(2), '^'),
            (cell(2), cell(2), '='),
            (cell(2), cell(1), 'v'),
            (cell(2), None, '-'),
            (cell(0), None, '.'),
        ] {
            let change = Change::between(before, after).expect("a change");
            assert_eq!(change.sign().0.letter, letter);
        }
        assert_eq!(Change::between(None, None), None);
    }
}
