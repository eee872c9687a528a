//! The lines of Taligent's heap monitor: one for each old block and each event.

use std::io::Write;

use super::decoder::{Event, Kind};
use super::filter::Filter;
use super::names::{NO_VTABLE, Names, without_type};
use super::recording::Recording;
use super::selection::Selection;
use super::stop::Stop;

/// The thread of old blocks.
const NO_THREAD: &str = "0-0";

/// Writes a line for each old block, then for each event in the order of time:
/// `thread TAB time TAB address TAB size|del TAB type TAB stack`. Lines before them begin with `#`.
///
/// # Errors
///
/// The file is damaged, or the lines cannot be written.
pub fn lines(
    recording: &Recording,
    names: &mut Names<'_>,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let selection = Selection::find(recording, names, filter)?;
    out.write_all(head(recording).as_bytes())?;
    old(recording, names, filter, selection.as_ref(), out)?;
    let mut stacks = Stacks::new(filter);
    let pid = recording.process().pid;
    for (number, event) in recording.events().enumerate() {
        let event = event?;
        let is_shown = selection.as_ref().is_none_or(|it| it.has_event(number as u64))
            && filter.has_thread(pid, event.thread)
            && stacks.has(event.stack, names);
        if is_shown {
            line(recording, names, &event, out)?;
        }
    }
    Ok(out.flush()?)
}

/// The lines before those of events.
pub(super) fn head(recording: &Recording) -> String {
    let process = recording.process();
    let start = recording.microseconds(process.start);
    let mut text = format!(
        "# lumalloc events 1\n# process {}\n# program {}\n# allocator {}\n# start {start}\n",
        process.pid,
        crate::symbols::printable(process.program.clone()),
        crate::symbols::printable(process.allocator.clone()),
    );
    if recording.dropped() > 0 {
        text += &format!("# dropped {}\n", recording.dropped());
    }
    text
}

fn old(
    recording: &Recording,
    names: &mut Names<'_>,
    filter: &Filter,
    selection: Option<&Selection>,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    // Old blocks have no stack.
    if !filter.has_thread(0, 0) || !filter.has_stack("") {
        return Ok(());
    }
    for (index, block) in recording.old_blocks().iter().enumerate() {
        if selection.is_none_or(|it| it.has_old(index)) {
            let class = names.class(block.word, block.seen);
            let kind = class.as_deref().unwrap_or(without_type(block.word));
            let (address, size) = (block.address, block.size);
            writeln!(out, "{NO_THREAD}\told\t{address:#x}\t{size}\t{kind}\t")?;
        }
    }
    Ok(())
}

fn line(
    recording: &Recording,
    names: &mut Names<'_>,
    event: &Event,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let thread = recording.thread(event.thread);
    let time = recording.microseconds(event.time);
    write!(out, "{thread}\t{time}\t{:#x}\t", event.address)?;
    match event.kind {
        Kind::Allocation(size) => write!(out, "{size}\t{NO_VTABLE}\t")?,
        Kind::Deletion(word) => {
            let kind = names.of_deletion(event);
            write!(out, "del\t{}\t", kind.as_deref().unwrap_or(without_type(word)))?;
        }
    }
    writeln!(out, "{}", names.stack(event.stack))?;
    Ok(())
}

/// Which stacks are shown.
struct Stacks<'a> {
    filter: &'a Filter,
    known: std::collections::HashMap<u32, bool>,
}

impl Stacks<'_> {
    fn new(filter: &Filter) -> Stacks<'_> {
        Stacks { filter, known: Default::default() }
    }

    fn has(&mut self, stack: u32, names: &Names<'_>) -> bool {
        self.filter.stack.is_none()
            || *self
                .known
                .entry(stack)
                .or_insert_with(|| self.filter.has_stack(&names.stack(stack)))
    }
}
