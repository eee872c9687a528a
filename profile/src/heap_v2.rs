//! The format heap_v2 of jemalloc, which jeprof and pprof read.
//!
//! ```text
//! heap_v2/524288
//!   t*: 28: 6291456 [0: 0]
//!   t1: 28: 6291456 [0: 0] main
//! # stats.allocated=6553600
//! @ 0x55d0c1a2f3b4 0x55d0c1a2e001 …
//!   t*: 3: 393216 [0: 0]
//!   t1: 3: 393216 [0: 0]
//!
//! MAPPED_LIBRARIES:
//! (/proc/self/maps)
//! ```
//! The numbers of a line are allocations and bytes in use, and in brackets all those since the
//! start, which are 0 unless `opt.prof_accum` is on. Bytes are usable sizes, as in jemalloc. With
//! `prof_unbias:false` they are those of the samples. Lines of single threads have what is in use
//! of their allocations; `jeprof --thread` reads them. What a thread allocated since the start is
//! not counted, and there are no such lines if very many samples are in use. Blocks of no bytes are
//! left out: jeprof divides by the chance that one is sampled, which is 0 for them. The lines that
//! begin with `#` are notes: jeprof leaves out what it does not know.

use crate::mappings;
use crate::notes::{self, Note};
use crate::resets;
use crate::scratch::Scratch;
use crate::sink::{Sink, Text};
use crate::threads::{Of, Threads};
use crate::unbias::Estimate;
use lumalloc::observe::{self, ProfileEntry};
use lumalloc::options;

/// What a line counts.
#[derive(Clone, Copy, Default)]
struct Line {
    live: Estimate,
    ever: Estimate,
}

impl Line {
    fn add(&mut self, entry: &ProfileEntry, lg_sample: u32, accumulates: bool) {
        if entry.usable == 0 {
            return;
        }
        let live = entry.allocated.saturating_sub(entry.freed);
        self.live.add(live, entry.usable, lg_sample);
        if accumulates {
            self.ever.add(entry.allocated, entry.usable, lg_sample);
        }
    }

    fn write(&self, text: &mut Text<'_>, lg_sample: u32) {
        let (live, ever) = (self.live.sums(lg_sample), self.ever.sums(lg_sample));
        text.bytes(b"  t*: ").decimal(live.count).bytes(b": ").decimal(live.bytes);
        text.bytes(b" [").decimal(ever.count).bytes(b": ").decimal(ever.bytes).bytes(b"]\n");
    }

    fn is_empty(&self) -> bool {
        self.live == Estimate::default() && self.ever == Estimate::default()
    }
}

/// Writes the present profile. With `accumulates`, also what was allocated since the start. Returns
/// `false` if the sink lost a part.
pub fn write(sink: &mut dyn Sink, accumulates: bool) -> bool {
    resets::write(sink, |sink, resets| write_after(resets, sink, accumulates))
}

/// Writes the profile after so many resets.
fn write_after(resets: u64, sink: &mut dyn Sink, accumulates: bool) -> bool {
    let lg_sample = observe::lg_profile_sample();
    let mut text = Text::new(sink);
    text.bytes(b"heap_v2/").decimal(1 << lg_sample.min(63)).bytes(b"\n");
    // At a rate of one in one byte the sums are those of the samples.
    let lg_sample = if options::current().prof_unbias { lg_sample } else { 0 };
    let mut total = Line::default();
    observe::profile(|entry| total.add(&entry, lg_sample, accumulates));
    let mut scratch = Threads::needs().map(Scratch::new);
    let words = scratch.as_mut().map(Scratch::words);
    let mut threads = words.and_then(|words| Threads::collect(words, lg_sample));
    total.write(&mut text, lg_sample);
    if let Some(threads) = &mut threads {
        threads.all().for_each(|of| write_thread(&mut text, &of, of.name(), lg_sample));
    }
    notes::for_each(resets, |name, note| write_note(&mut text, name, note));
    write_stacks(&mut text, threads, lg_sample, accumulates);
    // As among the first notes, unless the samples were reset meanwhile.
    write_note(&mut text, "prof.resets.after", Note::Number(resets::count()));
    text.bytes(b"\nMAPPED_LIBRARIES:\n");
    mappings::for_each_piece(|piece| {
        text.bytes(piece);
    });
    text.end()
}

fn write_note(text: &mut Text<'_>, name: &str, note: Note) {
    note.write(name, text.bytes(b"# "));
    text.bytes(b"\n");
}

/// Writes the line of one thread. Only lines before the first stack may have names.
fn write_thread(text: &mut Text<'_>, of: &Of, name: &[u8], lg_sample: u32) {
    let live = of.live.sums(lg_sample);
    text.bytes(b"  t").decimal(of.thread).bytes(b": ").decimal(live.count).bytes(b": ");
    text.decimal(live.bytes).bytes(b" [0: 0]");
    if !name.is_empty() {
        text.blank();
    }
    for byte in name {
        text.bytes(&[if byte.is_ascii_control() { b'?' } else { *byte }]);
    }
    text.bytes(b"\n");
}

/// Writes each stack that has allocations. The entries of one stack follow each other.
fn write_stacks(
    text: &mut Text<'_>,
    mut threads: Option<Threads<'_>>,
    lg_sample: u32,
    accumulates: bool,
) {
    let mut stack: &[usize] = &[];
    let mut line = Line::default();
    observe::profile(|entry| {
        if !core::ptr::eq(entry.stack, stack) {
            write_stack(text, threads.as_mut(), stack, &line, lg_sample);
            (stack, line) = (entry.stack, Line::default());
        }
        line.add(&entry, lg_sample, accumulates);
    });
    write_stack(text, threads.as_mut(), stack, &line, lg_sample);
}

fn write_stack(
    text: &mut Text<'_>,
    threads: Option<&mut Threads<'_>>,
    stack: &[usize],
    line: &Line,
    lg_sample: u32,
) {
    if line.is_empty() {
        return;
    }
    text.bytes(b"@");
    if stack.is_empty() {
        // Without an address, jeprof takes what follows for the stack before.
        text.bytes(b" 0x0");
    }
    for frame in stack {
        text.blank().hexadecimal(*frame as u64);
    }
    text.bytes(b"\n");
    line.write(text, lg_sample);
    if let Some(threads) = threads {
        threads.of_stack(stack).for_each(|of| write_thread(text, &of, b"", lg_sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn a_stack_without_addresses_has_one_for_jeprof() {
        let mut line = Line { live: Estimate::default(), ever: Estimate::default() };
        line.live.add(3, 16, 0);
        for (stack, first) in [(&[][..], "@ 0x0\n"), (&[0x10, 0x20][..], "@ 0x10 0x20\n")] {
            let mut bytes = Vec::new();
            let mut text = Text::new(&mut bytes);
            write_stack(&mut text, None, stack, &line, 0);
            assert!(text.end());
            let expected = format!("{first}  t*: 3: 48 [0: 0]\n");
            assert_eq!(String::from_utf8(bytes), Ok(expected));
        }
    }

    #[test]
    fn resets_are_counted_before_and_after_the_samples() {
        let before = resets::count();
        let mut bytes = Vec::new();
        assert!(write_after(before.wrapping_sub(2), &mut bytes, true));
        let text = String::from_utf8(bytes).expect("text");
        let count = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a note");
            line.parse::<u64>().expect("a number")
        };
        assert_eq!(count("# prof.resets="), before.wrapping_sub(2));
        // Other tests may reset the samples too.
        assert!(count("# prof.resets.after=") >= before);
    }

    #[test]
    fn a_process_without_samples_has_an_empty_profile() {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes, true));
        let text = String::from_utf8(bytes).expect("text");
        let notes = text.strip_prefix("heap_v2/524288\n  t*: 0: 0 [0: 0]\n# lumalloc=");
        let (notes, maps) =
            notes.expect("the beginning").split_once("\n\nMAPPED_LIBRARIES:\n").expect("the end");
        let names: Vec<&str> =
            notes.lines().skip(1).filter_map(|line| line.split('=').next()).collect();
        assert_eq!(names[..2], ["# pid", "# stats.allocated"]);
        assert!(maps.lines().any(|line| line.contains("r-xp")), "{maps}");
    }
}
