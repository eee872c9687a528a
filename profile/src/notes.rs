//! What each profile notes beside its samples: the writer, and the exact counts that the samples
//! are estimates of.

use crate::process::process_id;
use crate::sink::Text;
use lumalloc::VERSION;
use lumalloc::observe::{self, ClassCount};

/// The value of a note.
#[derive(Clone, Copy)]
pub(crate) enum Note {
    /// A count.
    Number(u64),
    /// Text without line feeds.
    Text(&'static str),
    /// Blocks in use of a size class, and allocations since the start. The name ends with the bytes
    /// of a block.
    Class(ClassCount),
}

impl Note {
    /// Writes the note as `name=value`.
    pub(crate) fn write(self, name: &str, text: &mut Text<'_>) {
        text.bytes(name.as_bytes());
        if let Note::Class(class) = self {
            text.decimal(class.size as u64);
        }
        text.bytes(b"=");
        match self {
            Note::Number(number) => text.decimal(number),
            Note::Text(value) => text.bytes(value.as_bytes()),
            Note::Class(class) => text.decimal(class.live).bytes(b" ").decimal(class.allocations),
        };
    }
}

/// Calls `see` with each note: its name, and its value at this moment. `resets` is the count before
/// anything was read for the profile.
pub(crate) fn for_each(resets: u64, mut see: impl FnMut(&'static str, Note)) {
    see("lumalloc", Note::Text(VERSION));
    let mut number = |name, number| see(name, Note::Number(number));
    number("pid", u64::from(process_id()));
    let totals = observe::totals();
    number("stats.allocated", totals.allocated as u64);
    number("stats.active", totals.active as u64);
    number("stats.resident", totals.resident as u64);
    let counts = observe::profile_counts();
    number("prof.samples.taken", counts.taken);
    number("prof.samples.missed", counts.missed);
    number("prof.since_start", u64::from(counts.since_start));
    number("prof.resets", resets);
    if counts.is_behind {
        number("prof.behind", 1);
    }
    number("prof.memory.stacks", counts.bytes - counts.count_bytes);
    number("prof.memory.counts", counts.count_bytes);
    number("prof.memory.samples", counts.sample_bytes);
    observe::class_counts(|class| see("class.", Note::Class(class)));
}
