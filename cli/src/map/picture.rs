//! The picture of a map: a letter for each cell, coloured where the terminal can, and a table of
//! the states.

use std::fmt::Write;

use super::cells::{self, Cell, Scale};
use super::heap::{Heap, Run, State, sum};

/// A letter with its colours: of the ground and of the letter, in the palette of 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    /// The letter.
    pub(crate) letter: char,
    /// The colour of the ground.
    pub(crate) ground: u8,
    /// The colour of the letter.
    pub(crate) ink: u8,
}

const WHITE: u8 = 231;
const BLACK: u8 = 16;
/// From a slab without blocks to a full one.
const FILLED: [u8; 10] = [195, 189, 153, 117, 111, 75, 69, 63, 27, 20];

impl Sign {
    const fn new(letter: char, ground: u8, ink: u8) -> Sign {
        Sign { letter, ground, ink }
    }

    fn of(cell: Cell) -> Sign {
        match cell.state {
            State::Slab => filled(cell.fill),
            State::Samples => sampled(cell.fill),
            other => plain(other),
        }
    }
}

/// Slabs have a digit: the tenths of their blocks that are in use.
fn filled(fill: u64) -> Sign {
    let tenth = (fill / 100).min(9);
    let ground = FILLED.get(tenth as usize).copied().unwrap_or(BLACK);
    Sign::new((b'0' + tenth as u8) as char, ground, if tenth < 6 { BLACK } else { WHITE })
}

/// Slabs of samples have a capital letter if half of their blocks are in use.
fn sampled(fill: u64) -> Sign {
    if fill < 500 { Sign::new('p', 218, BLACK) } else { Sign::new('P', 163, WHITE) }
}

fn plain(state: State) -> Sign {
    match state {
        State::Slab => filled(1000),
        State::Samples => sampled(1000),
        State::Large => Sign::new('L', 28, WHITE),
        State::Kept => Sign::new('k', 108, BLACK),
        State::Dirty => Sign::new('d', 208, BLACK),
        State::Muzzy => Sign::new('m', 222, BLACK),
        State::Retained => Sign::new('.', 252, BLACK),
        State::Aside => Sign::new('a', 137, BLACK),
        State::Guarded => Sign::new('g', 124, WHITE),
        State::Metadata => Sign::new('M', 97, WHITE),
    }
}

/// Text that is coloured, or not.
pub(crate) struct Canvas {
    text: String,
    has_colour: bool,
    current: Option<(u8, u8)>,
}

impl Canvas {
    /// An empty canvas.
    pub(crate) fn new(has_colour: bool) -> Canvas {
        Canvas { text: String::new(), has_colour, current: None }
    }

    /// Adds a letter, or a blank.
    pub(crate) fn sign(&mut self, sign: Option<Sign>) {
        self.colours(sign.map(|sign| (sign.ground, sign.ink)));
        self.text.push(sign.map_or(' ', |sign| sign.letter));
    }

    /// Adds text without colours.
    pub(crate) fn words(&mut self, text: &str) {
        self.colours(None);
        self.text.push_str(text);
    }

    fn colours(&mut self, wanted: Option<(u8, u8)>) {
        if !self.has_colour || self.current == wanted {
            return;
        }
        self.current = wanted;
        match wanted {
            // Writing to a string does not fail.
            Some((ground, ink)) => drop(write!(self.text, "\x1b[48;5;{ground};38;5;{ink}m")),
            None => self.text.push_str("\x1b[0m"),
        }
    }

    /// Returns the text. Blanks at the ends of lines are left out.
    pub(crate) fn finish(mut self) -> String {
        self.colours(None);
        let lines = self.text.lines().map(|line| format!("{}\n", line.trim_end()));
        lines.collect()
    }

    /// Adds the rows of a picture: for each cell, `of` returns the letter by its first address.
    pub(crate) fn rows(&mut self, heaps: &[&Heap], scale: Scale, of: impl Fn(u64) -> Option<Sign>) {
        for (n, stretch) in cells::stretches(heaps, scale).into_iter().enumerate() {
            if n > 0 {
                self.words("\n");
            }
            for row in 0..stretch.rows(scale) {
                let base = stretch.base + row * scale.row();
                self.words(&format!("{base:#014x}  "));
                for column in 0..scale.width {
                    let at = base.saturating_add(column.saturating_mul(scale.cell));
                    self.sign(if at < stretch.end { of(at) } else { None });
                }
                self.words("\n");
            }
        }
    }
}

/// Returns the picture of a map with its legend.
pub(crate) fn draw(heap: &Heap, scale: Scale, has_colour: bool) -> String {
    let mut canvas = Canvas::new(has_colour);
    canvas.rows(&[heap], scale, |at| cells::cell(heap, at, scale.cell).map(Sign::of));
    canvas.words(&format!("\nA cell is {}.\n\n", size(scale.cell)));
    legend(&mut canvas, heap);
    canvas.finish()
}

/// Writes the states with their numbers, and what they mean, in at most 80 columns.
fn legend(canvas: &mut Canvas, heap: &Heap) {
    let mut meanings = String::new();
    canvas.words("       state      runs        size      in use   purgeable\n");
    for state in State::ALL {
        let runs: Vec<&Run> = heap.runs.iter().filter(|run| run.state == state).collect();
        if runs.is_empty() {
            continue;
        }
        canvas.words(" ");
        let signs = match state {
            State::Slab => [0, 300, 600, 1000].map(filled).to_vec(),
            State::Samples => [0, 1000].map(sampled).to_vec(),
            other => vec![plain(other)],
        };
        signs.iter().for_each(|sign| canvas.sign(Some(*sign)));
        let (name, meaning) = state.words();
        let blanks = " ".repeat(6 - signs.len());
        canvas.words(&format!("{blanks}{name:<9}{}\n", totals(&runs)));
        meanings += &format!("       {name:<9}  {meaning}\n");
    }
    let all: Vec<&Run> = heap.runs.iter().collect();
    canvas.words(&format!("       {:<9}{}\n\n{meanings}", "all", totals(&all)));
    let huge = all.iter().filter(|run| run.huge && run.state != State::Retained);
    let huge = size(sum(huge.map(|run| run.bytes)));
    canvas.words(&format!("\nHuge pages were asked for {huge}.\n"));
    if let Some(oldest) = heap.runs.iter().filter_map(|run| run.oldest_ms).max() {
        canvas.words(&format!("The oldest sample in use is {} old.\n", age(oldest)));
    }
}

fn totals(runs: &[&Run]) -> String {
    let sum = |of: fn(&Run) -> u64| size(sum(runs.iter().map(|run| of(run))));
    let (all, used, purgeable) =
        (sum(|run| run.bytes), sum(Run::used_bytes), sum(|run| run.purgeable));
    format!("{:>6}{all:>12}{used:>12}{purgeable:>12}", runs.len())
}

/// Returns a number of bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut number = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    let digits = usize::from(unit != "B" && number.fract() >= 0.05);
    format!("{number:.digits$} {unit}")
}

/// Returns a time in milliseconds as people read it.
pub(crate) fn age(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} days", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::heap::tests::{heap, run, slab};
    use super::*;

    const SCALE: Scale = Scale { cell: 2 << 12, width: 8 };

    #[test]
    fn each_cell_has_its_letter() {
        let dirty = Run { purgeable: 8192, ..run(34, 2, State::Dirty) };
        let huge = Run { huge: true, oldest_ms: Some(2500), ..run(32, 2, State::Large) };
        let far = run(4096, 3, State::Metadata);
        let heap = heap(vec![slab(16, 1000), huge, dirty, far]);
        let expected = "\
0x000000010000  99999999
0x000000020000  Ld

0x000001000000  MM

A cell is 8 KiB.

       state      runs        size      in use   purgeable
 0369  slab          1      64 KiB    62.5 KiB         0 B
 L     large         1       8 KiB         0 B         0 B
 d     dirty         1       8 KiB         0 B       8 KiB
 M     metadata      1      12 KiB         0 B         0 B
       all           4      92 KiB    62.5 KiB       8 KiB

       slab       small blocks; tenths of the blocks in use
       large      a large block
       dirty      unused, with memory
       metadata   the allocator's own records

Huge pages were asked for 8 KiB.
The oldest sample in use is 2 s old.
";
        assert_eq!(draw(&heap, SCALE, false), expected);
    }

    #[test]
    fn the_legend_fits_into_80_columns() {
        let states = State::ALL.into_iter().zip((0..).step_by(16));
        let all = heap(states.map(|(state, page)| run(page, 1, state)).collect());
        let text = draw(&all, SCALE, false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn numbers_that_are_too_large_for_a_sum_are_shown() {
        let most = u64::MAX;
        let slab = |page| Run { block: most, blocks: most, purgeable: most, ..slab(page, most) };
        let last = run(0x000f_ffff_ffff_ffef, 16, State::Dirty);
        let long = Run { huge: true, bytes: 1 << 63, ..run(48, 1, State::Large) };
        let heap = heap(vec![slab(16), slab(32), long, last]);
        let scale = Scale { cell: 1 << 63, width: 3 };
        let text = draw(&heap, scale, false);
        let expected = "\
0x000000000000  LL

A cell is 8192 PiB.

       state      runs        size      in use   purgeable
 0369  slab          2     128 KiB   16384 PiB   16384 PiB
 L     large         1    8192 PiB         0 B         0 B
 d     dirty         1      64 KiB         0 B         0 B
       all           4    8192 PiB   16384 PiB   16384 PiB

       slab       small blocks; tenths of the blocks in use
       large      a large block
       dirty      unused, with memory

Huge pages were asked for 8192 PiB.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn colours_change_nothing_but_the_colours() {
        let heap = heap(vec![slab(16, 0), run(32, 2, State::Kept), run(40, 2, State::Muzzy)]);
        let plain = draw(&heap, SCALE, false);
        let coloured = draw(&heap, SCALE, true);
        assert!(coloured.contains("\x1b[48;5;195;38;5;16m00000000\x1b[0m\n"), "{coloured:?}");
        let mut bare = String::new();
        for (n, part) in coloured.split("\x1b[").enumerate() {
            bare.push_str(if n == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(bare, plain);
    }

    #[test]
    fn states_have_letters_of_their_own() {
        let letters: std::collections::BTreeSet<char> =
            State::ALL.into_iter().map(|state| plain(state).letter).collect();
        assert_eq!(letters.len(), State::ALL.len());
        let digits: String = (0..=10).map(|n| filled(n * 100).letter).collect();
        assert_eq!(digits, "01234567899");
        assert_eq!([0, 499, 500, 1000].map(|fill| sampled(fill).letter), ['p', 'p', 'P', 'P']);
    }

    #[test]
    fn sizes_and_ages_are_short() {
        let sizes = [0, 1023, 1536, 4096, 5 << 20, (7 << 30) + (600 << 20)].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "4 KiB", "5 MiB", "7.6 GiB"]);
        let ages = [7, 1999, 125_000, 8_000_000, 400_000_000].map(age);
        assert_eq!(ages, ["7 ms", "1 s", "2 min", "2 h", "4 days"]);
    }
}
