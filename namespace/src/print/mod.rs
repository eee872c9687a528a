//! `malloc_stats_print`: the statistics as text for people in jemalloc's layout, or as JSON with
//! jemalloc's keys.
//!
//! | file | what it prints |
//! |---|---|
//! | `json` | everything, from the rows: a key appears as soon as it has a row |
//! | `general` | version, build, options, constants |
//! | `totals` | the process: bytes, threads, where the memory is, work |
//! | `arena` | one arena, or all of them merged |
//! | `classes` | the bins, large classes and unused extents of an arena |
//! | `mutexes` | locks |
//! | `table`, `keys` | columns; keys by name |
//!
//! Values are read as a program would read them, by the look-up of `mallctl`, key after key. No
//! lock is held while the callback runs, so it may allocate, and read and write keys. If it writes
//! `epoch`, the rest of the output is from the newer snapshot.
use crate::entry::Entry;
use crate::tree;
use crate::value::Value;
use crate::writer::Writer;

mod arena;
mod classes;
mod general;
mod json;
mod keys;
mod mutexes;
mod table;
mod totals;

/// The parts that the letters in `opts` of `malloc_stats_print` choose. Other letters are ignored.
/// Source: jemalloc(3), `malloc_stats_print`.
///
/// | letter | meaning |
/// |---|---|
/// | `J` | JSON |
/// | `g` | without the general part, which never changes during execution |
/// | `m` | without the merged arenas |
/// | `d` | without the destroyed arenas |
/// | `a` | without the single arenas |
/// | `b` | without bins |
/// | `l` | without large classes |
/// | `x` | without locks |
/// | `e` | without unused extents |
/// | `h` | without huge pages by the page allocator, which do not exist here |
/// | `w` | without the branches that only lumalloc has: where the memory is, the work done |
/// | `s` | from the last snapshot: no new one is taken (lumalloc's own letter) |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// `J`: JSON.
    pub json: bool,
    /// The small letters, one bit each.
    omitted: u32,
}

impl Choice {
    /// Reads the letters of `opts`.
    ///
    /// ```
    /// use lumalloc_namespace::print::Choice;
    /// let choice = Choice::from_letters(b"Jg?");
    /// assert!(choice.json && choice.omits(b'g') && !choice.omits(b'b'));
    /// ```
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> Self {
        let small = letters.iter().filter(|letter| letter.is_ascii_lowercase());
        let omitted = small.fold(0, |bits, letter| bits | bit(*letter));
        Choice { json: letters.contains(&b'J'), omitted }
    }

    /// Whether the part of this letter is left out.
    #[must_use]
    pub fn omits(self, letter: u8) -> bool {
        self.omitted & bit(letter) != 0
    }
}

const fn bit(letter: u8) -> u32 {
    1 << (letter & 31)
}

/// Takes a new snapshot, unless `s` says not to, and prints the statistics.
pub fn print(writer: &mut Writer, choice: Choice) {
    if !choice.omits(b's') {
        refresh();
    }
    if choice.json {
        json::print(writer, choice);
    } else {
        print_text(writer, choice);
    }
}

/// Writes `epoch`, as a program would.
fn refresh() {
    if let Ok(mib) = tree::complete(b"epoch")
        && let Ok(entry) = Entry::find(mib.as_slice())
    {
        // The write cannot be refused. If it were, the previous snapshot would be printed.
        let _ = entry.write(Value::U64(1));
    }
}

fn print_text(writer: &mut Writer, choice: Choice) {
    writer.text("___ Begin lumalloc statistics ___\n");
    if !choice.omits(b'g') {
        general::print(writer);
    }
    totals::print(writer, choice);
    arena::print_all(writer, choice);
    writer.text("--- End lumalloc statistics ---\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot;
    use crate::writer::tests::collected;

    fn printed(letters: &str) -> std::string::String {
        collected(|writer| print(writer, Choice::from_letters(letters.as_bytes())))
    }

    #[test]
    fn json_has_every_chosen_key_and_balanced_braces() {
        let json = printed("J");
        assert!(json.starts_with("{\"jemalloc\":{\"version\":\""), "{json}");
        assert_eq!(json.matches('{').count(), json.matches('}').count(), "{json}");
        assert_eq!(json.matches('[').count(), json.matches(']').count(), "{json}");
        for key in
            ["\"opt\":{\"abort\":", "\"arenas\":{", "\"stats\":{\"allocated\":", ",\"retained\":"]
        {
            assert!(json.contains(key), "{key} is not in {json}");
        }
        for wrong in [",}", "{,", "}\"", "[,", ",]", "][", "\"epoch\"", "\"purge\"", "tcache.flush"]
        {
            assert!(!json.contains(wrong), "{wrong} is in {json}");
        }
    }

    #[test]
    fn the_general_part_can_be_omitted() {
        assert!(printed("Jg").starts_with("{\"jemalloc\":{\"stats\":{\"allocated\":"));
        let text = printed("g");
        assert!(text.starts_with("___ Begin lumalloc statistics ___\nAllocated: "), "{text}");
        assert!(text.ends_with("--- End lumalloc statistics ---\n"), "{text}");
        assert!(printed("").contains("  opt.dirty_decay_ms: "));
        let background = "\nBackground threads: 0, num_runs: 0, run_interval: 0 ns\n";
        assert!(text.contains(background), "{text}");
    }

    #[test]
    fn work_is_shown_without_what_never_happened() {
        let text = printed("g");
        let calls = text.split_once(" call_mmap ").expect("calls").1;
        assert!(calls.split([' ', '\n']).next().unwrap().parse::<u64>().unwrap() > 0, "{text}");
        assert!(!text.contains("call_mremap"), "what never happened: {text}");
        assert!(!printed("gw").contains("call_mmap"));
    }

    #[test]
    fn unknown_letters_are_ignored() {
        assert_eq!(Choice::from_letters(b"ZJ?K!"), Choice::from_letters(b"J"));
    }

    #[test]
    fn printing_takes_a_new_snapshot() {
        let before = snapshot::current().epoch;
        printed("");
        assert!(snapshot::current().epoch > before);
    }

    #[test]
    fn the_last_snapshot_is_printed_again() {
        let epoch = || snapshot::current().epoch;
        // Another test may take a snapshot meanwhile, but not each time.
        let is_kept = (0..100).any(|_| {
            let before = epoch();
            printed("sJ");
            epoch() == before
        });
        assert!(is_kept);
    }
}
