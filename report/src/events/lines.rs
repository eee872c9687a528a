//! The lines of Taligent's heap monitor: one for each old block and each event.

use std::fmt::Write as _;
use std::io::Write;

use super::choice::Choice;
use super::decoder::{Event, Kind};
use super::filter::Filter;
use super::index::Message;
use super::names::{NO_VTABLE, Names};
use super::recording::Recording;
use super::selection::Selection;
use super::stop::Stop;
use crate::symbols::printable;

/// The thread of old blocks.
pub(super) const NO_THREAD: &str = "0-0";
/// The time of their allocation.
pub(super) const OLD: &str = "old";

/// What the lines after a message begin with, because the heap may be corrupt.
const MARK: char = '*';
/// Stands around a message of the allocator.
const ASTERISKS: &str = "************************************************************************";

/// Writes a line for each old block, then for each event in the order of time:
/// `thread TAB time TAB address TAB size|del TAB type TAB stack`. Lines before them begin with `#`.
/// A message of the allocator stands between lines of asterisks, whatever is chosen, and all lines
/// after it begin with `*`.
///
/// # Errors
///
/// The file cannot be read, or the lines cannot be written.
pub fn lines(names: &mut Names<'_>, filter: &Filter, out: &mut dyn Write) -> Result<(), Stop> {
    let recording = names.recording();
    let choice = Choice::new(filter, names);
    let selection = Selection::find(names, &choice)?;
    out.write_all(head(recording).as_bytes())?;
    if choice.has_old_lines() {
        old(recording, names, selection.as_ref(), out)?;
    }
    let mut text = String::new();
    let mut messages = recording.messages().iter().peekable();
    let mut is_marked = false;
    for (number, event) in recording.events().enumerate() {
        let event = event?;
        while let Some(message) = messages.next_if(|message| message.time < event.time) {
            out.write_all(block(recording, message).as_bytes())?;
            is_marked = true;
        }
        let is_shown = selection.as_ref().is_none_or(|it| it.has_event(number as u64))
            && choice.has_line(&event);
        if is_shown {
            text.clear();
            text.extend(is_marked.then_some(MARK));
            line(names, &event, &mut text).map_err(std::io::Error::other)?;
            out.write_all(text.as_bytes())?;
        }
    }
    for message in messages {
        out.write_all(block(recording, message).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// The lines of a message.
pub(super) fn block(recording: &Recording, message: &Message) -> String {
    let time = recording.microseconds(message.time).to_string();
    let lines = message.text.lines().map(|line| printable(line.to_owned()));
    let lines = std::iter::once(time).chain(lines).map(|line| format!("{MARK} {line}\n"));
    format!("{ASTERISKS}\n{}{ASTERISKS}\n", lines.collect::<String>())
}

/// The lines before those of events.
pub(super) fn head(recording: &Recording) -> String {
    let process = recording.process();
    let start = recording.microseconds(process.start);
    let mut text = format!(
        "# lumalloc events 1\n# process {}\n# program {}\n# allocator {}\n# start {start}\n",
        process.pid,
        printable(process.program.clone()),
        printable(process.allocator.clone()),
    );
    if recording.dropped() > 0 {
        text += &format!("# dropped {}\n", recording.dropped());
    }
    text
}

fn old(
    recording: &Recording,
    names: &mut Names<'_>,
    selection: Option<&Selection>,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    for (index, block) in recording.old_blocks().iter().enumerate() {
        if selection.is_none_or(|it| it.has_old(index)) {
            let class = names.class(block.word, block.seen);
            let kind = class.unwrap_or_else(|| names.unknown(block.word));
            let (address, size) = (block.address, block.size);
            writeln!(out, "{NO_THREAD}\t{OLD}\t{address:#x}\t{size}\t{kind}\t")?;
        }
    }
    Ok(())
}

/// Adds the line of an event to a text.
fn line(names: &mut Names<'_>, event: &Event, text: &mut String) -> std::fmt::Result {
    let recording = names.recording();
    let pid = recording.process().pid;
    let time = recording.microseconds(event.time);
    write!(text, "{pid}-{}\t{time}\t{:#x}\t", event.thread, event.address)?;
    match event.kind {
        Kind::Allocation(size) => write!(text, "{size}\t{NO_VTABLE}\t")?,
        Kind::Deletion(word) => {
            let kind = names.of_deletion(event).unwrap_or_else(|| names.unknown(word));
            write!(text, "del\t{kind}\t")?;
        }
    }
    names.add_stack(event.stack, text);
    text.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Range, Thread};
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;
    use regex::Regex;

    fn shown(file: &File, filter: &Filter) -> Result<String, (String, Stop)> {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut out = Vec::new();
        let written = lines(&mut names, filter, &mut out);
        let text = String::from_utf8(out).expect("text");
        match written {
            Ok(()) => Ok(text),
            Err(stop) => Err((text, stop)),
        }
    }

    fn file() -> File {
        File::default()
            .mapping([0x1000, 0x2000, 0], "a|b\\c\td", "")
            .stack(1, &[0x1011, 0x9001])
            .old(500, &[[0xb24020d0, 48, 0], [0xb24030d0, 16, 1]])
            .events(
                7,
                &[
                    (1000, Happens::New(0xb2362950, 12), 1),
                    (3000, Happens::Delete(0xb24030d0, 0), 0),
                ],
            )
            .events(8, &[(2999, Happens::Delete(0xb2362950, 1), 1)])
    }

    const HEAD: &str = "\
# lumalloc events 1
# process 22
# program /bin/x
# allocator lumalloc 0.1.0
# start 759537687000000
";
    const OLD_LINES: [&str; 2] =
        ["0-0\told\t0xb24020d0\t48\tnovtbl\t\n", "0-0\told\t0xb24030d0\t16\tnotype\t\n"];
    const LINES: [&str; 3] = [
        "22-7\t759537687000001\t0xb2362950\t12\tnovtbl\ta\\|b\\\\c\u{fffd}d+0x10|0x9000\n",
        "22-8\t759537687000002\t0xb2362950\tdel\tnotype\ta\\|b\\\\c\u{fffd}d+0x10|0x9000\n",
        "22-7\t759537687000003\t0xb24030d0\tdel\tnovtbl\t\n",
    ];

    #[test]
    fn each_block_and_each_event_has_a_line() {
        let expected = [HEAD, &OLD_LINES.concat(), &LINES.concat()].concat();
        assert_eq!(shown(&file().end(9000, 0), &Filter::default()).expect("lines"), expected);
        let dropped = shown(&file().end(9000, 4), &Filter::default()).expect("lines");
        assert_eq!(dropped, expected.replace("000000\n", "000000\n# dropped 4\n"));
    }

    /// Taligent's heap monitor marks the lines after a corruption so.
    #[test]
    fn a_message_stands_between_asterisks_and_marks_what_follows() {
        let file = file().message(2500, "double free\nof 0x10");
        let lines = shown(&file.end(9000, 0), &Filter::default()).expect("lines");
        let asterisks = "*".repeat(72);
        let message =
            format!("{asterisks}\n* 759537687000002\n* double free\n* of 0x10\n{asterisks}\n");
        let after = [message, format!("*{}", LINES[1]), format!("*{}", LINES[2])].concat();
        assert_eq!(lines, [HEAD, &OLD_LINES.concat(), LINES[0], &after].concat());
    }

    #[test]
    fn a_message_at_the_end_is_shown() {
        let file = file().message(8000, "bad");
        let filter = Filter { thread: Some(Thread { pid: None, tid: 9 }), ..Filter::default() };
        let asterisks = "*".repeat(72);
        let message = format!("{asterisks}\n* 759537687000008\n* bad\n{asterisks}\n");
        assert_eq!(shown(&file, &filter).expect("lines"), [HEAD, &message].concat());
    }

    #[test]
    fn lines_are_chosen() {
        let chosen = |filter: Filter| {
            let text = shown(&file(), &filter).expect("lines");
            text.strip_prefix(HEAD).expect("the head").to_owned()
        };
        let thread = |pid, tid| Filter { thread: Some(Thread { pid, tid }), ..Filter::default() };
        assert_eq!(chosen(thread(None, 8)), LINES[1]);
        assert_eq!(chosen(thread(Some(22), 7)), [LINES[0], LINES[2]].concat());
        assert_eq!(chosen(thread(Some(0), 0)), OLD_LINES.concat());
        let stack = |pattern| Filter { stack: Regex::new(pattern).ok(), ..Filter::default() };
        assert_eq!(chosen(stack("0x90+$")), LINES[..2].concat());
        assert_eq!(chosen(stack("^$")), [&OLD_LINES.concat(), LINES[2]].concat());
        let size = Range { min: 16, max: 47 };
        let both = Filter { size, ..thread(None, 7) };
        assert_eq!(chosen(both), LINES[2]);
        assert_eq!(chosen(Filter { size, ..Filter::default() }), [OLD_LINES[1], LINES[2]].concat());
    }

    #[test]
    fn what_is_not_damaged_is_shown() {
        let damaged = file().chunk(b'E', &[9, 255, 255, 255, 127, 1, 3]);
        let text = shown(&damaged.end(9000, 0), &Filter::default()).expect("lines");
        assert_eq!(text, [HEAD, &OLD_LINES.concat(), &LINES.concat()].concat());
    }

    #[test]
    fn an_output_that_fails_stops_the_lines() {
        let recording = Recording::of(&file());
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut short = [0; 20];
        let stop = lines(&mut names, &Filter::default(), &mut &mut short[..]).expect_err("full");
        assert!(
            matches!(stop, Stop::Output(error) if error.kind() == std::io::ErrorKind::WriteZero)
        );
    }

    #[test]
    fn objects_have_their_classes() {
        let (said, _directory) = crate::rtti::testing::run("lines", &["-O2"], true);
        let mut file = File::default();
        for mapping in &said.mappings {
            let place = [mapping.start, mapping.limit, mapping.offset];
            file = file.mapping(place, &mapping.file, "");
        }
        let addresses = (1..).map(|place| place * 16);
        let words = said.words.iter().zip(addresses).map(|((_, word), at)| (at, *word));
        let old: Vec<[u64; 3]> = words.clone().map(|(at, word)| [at, 8, word]).collect();
        let deletions: Vec<_> =
            words.map(|(at, word)| (at, Happens::Delete(at, word), 0)).collect();
        let text = shown(&file.old(1, &old).events(7, &deletions), &Filter::default());
        let text = text.expect("lines");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let types: Vec<&str> = lines.filter_map(|line| line.split('\t').nth(4)).collect();
        let expected = said.words.iter().map(|(name, _)| match name.as_str() {
            "-" => "notype",
            name => name,
        });
        let expected: Vec<&str> = expected.collect();
        assert_eq!(types, [&expected[..], &expected].concat());
    }
}
