//! `lumalloc map`: the heap of a process as a picture, as JSON, compared between two moments, and
//! what lies at an address.

pub(crate) mod arguments;
mod cells;
mod difference;
pub(crate) mod heap;
mod picture;
mod place;
mod process;
mod source;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use arguments::MapArguments;
use cells::Scale;
use heap::{Address, Heap};
use lumalloc_report::input_file;
use place::Place;
use source::{Exporter, Question, Source};

use crate::failure::{Failure, Outcome, reason};
use crate::standard_streams;

/// Cells of a row, where the output is not a terminal.
const WIDTH: u64 = 100;
/// Columns in front of the cells: the address.
const MARGIN: u64 = 16;
/// The most bytes of a file with a token.
const TOKEN: u64 = 4096;
/// Runs that are asked for at a time.
const AT_A_TIME: u64 = 10_000;

/// Runs the command.
pub(crate) fn show(arguments: &MapArguments) -> Outcome {
    let named = |failure: Failure| {
        Failure::with_status(failure.status, format!("map: {}", failure.message))
    };
    shown(arguments).map_err(named)
}

fn shown(arguments: &MapArguments) -> Outcome {
    let source = match arguments.pid {
        Some(pid) => Source::of_process(pid)?,
        None => Source::of(arguments.source.as_deref())?,
    };
    let token = arguments.token_file.as_deref().map(token).transpose()?;
    let question = Question { token: token.as_deref(), process: arguments.pid };
    let text = match arguments.at {
        Some(address) => at(&source, question, address)?,
        None => whole(&source, question, arguments)?,
    };
    match standard_streams::output().and_then(|mut out| out.write_all(text.as_bytes())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write: {}", reason(&error))))
        }
        _ => Ok(()),
    }
}

fn whole(source: &Source, question: Question<'_>, arguments: &MapArguments) -> Outcome<String> {
    let old = arguments.diff.as_deref().map(|path| from_file(path, arguments.arena)).transpose()?;
    let heap = match source {
        Source::Exporter(exporter) => from_exporter(exporter, question, arguments.arena)?,
        Source::File(path) => from_file(path, arguments.arena)?,
    };
    let heaps: Vec<&Heap> = old.iter().chain([&heap]).collect();
    if let (Source::File(path), Some(arena)) = (source, arguments.arena) {
        // An exporter refuses an arena that does not exist. A file has the runs alone.
        if heaps.iter().all(|heap| heap.runs.is_empty()) {
            return Err(Failure::new(format!("{} has no run of arena {arena}", path.display())));
        }
    }
    if arguments.json {
        return Ok(heap.to_json());
    }
    let scale = Scale::of(&heaps, arguments.cell.map(u64::from), width(arguments));
    let has_colour = !arguments.letters && wants_colour();
    Ok(match &old {
        Some(old) => difference::draw(old, &heap, scale, has_colour),
        None => picture::draw(&heap, scale, has_colour),
    })
}

/// Whether to colour: on a terminal that can show colours, unless the user refuses them.
fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

fn width(arguments: &MapArguments) -> u64 {
    let columns = match terminal_size::terminal_size_of(io::stdout()) {
        _ if arguments.width.is_some() => return arguments.width.map_or(WIDTH, u64::from),
        Some((terminal_size::Width(columns), _)) => u64::from(columns),
        None => return WIDTH,
    };
    columns.saturating_sub(MARGIN).max(16)
}

fn token(path: &Path) -> Outcome<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TOKEN + 1).read_to_string(&mut text));
    read.map_err(|error| unreadable(path, &reason(&error)))?;
    if text.len() as u64 > TOKEN {
        return Err(unreadable(path, &format!("a token has at most {TOKEN} bytes")));
    }
    Ok(text.trim().to_owned())
}

fn unreadable(path: &Path, reason: &str) -> Failure {
    Failure::new(format!("cannot read {}: {reason}", path.display()))
}

fn from_file(path: &Path, arena: Option<u32>) -> Outcome<Heap> {
    // An object, or blanks before it.
    let can_be = |begin: &[u8]| begin.trim_ascii_start().first().is_none_or(|byte| *byte == b'{');
    let json = input_file::read(path, can_be).map_err(|error| unreadable(path, &reason(&error)))?;
    let parsed = Heap::parse(&json);
    let mut heap = parsed.map_err(|reason| {
        Failure::new(format!(
            "{} is not what `lumalloc map --json` writes: {reason}",
            path.display()
        ))
    })?;
    heap.runs.retain(|run| arena.is_none() || run.arena == arena);
    Ok(heap)
}

/// Fetches a map part by part.
fn from_exporter(exporter: &Exporter, question: Question<'_>, arena: Option<u32>) -> Outcome<Heap> {
    let arena = arena.map(|arena| format!("&arena={arena}")).unwrap_or_default();
    let mut whole = Heap { page: 4096, runs: Vec::new(), next: Some(Address(0)) };
    while let Some(from) = whole.next {
        let path = format!("/map?most={AT_A_TIME}&from={}{arena}", String::from(from));
        let part = Heap::parse(&exporter.get(&path, question)?).map_err(no_map)?;
        // The next part begins behind this one, or the exporter would be asked for ever.
        if part.next.is_some_and(|next| next <= from) {
            let (next, from) = (part.next.unwrap_or(from).0, from.0);
            let why = format!("the part from {from:#x} on is followed by one from {next:#x} on");
            return Err(no_map(why));
        }
        whole.page = part.page;
        whole.next = part.next;
        whole.runs.extend(part.runs);
    }
    whole.check().map_err(no_map)?;
    Ok(whole)
}

fn no_map(reason: String) -> Failure {
    Failure::new(format!("the exporter's answer is not a map: {reason}"))
}

fn at(source: &Source, question: Question<'_>, address: Address) -> Outcome<String> {
    let place = match source {
        Source::Exporter(exporter) => {
            let answer = exporter.get(&format!("/map?at={}", String::from(address)), question)?;
            Place::parse(&answer).map_err(no_map)?
        }
        Source::File(path) => Place::in_file(from_file(path, None)?.at(address)),
    };
    let nothing = || Failure::new(format!("{:#x} does not lie in the heap", address.0));
    place.describe(address).ok_or_else(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::connection::broken::{Deed, served};

    /// Answers one request with a body. Returns the exporter.
    fn answering(body: &str) -> Exporter {
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        let port = served(Deed::Write(answer.into()));
        Exporter::Tcp(format!("127.0.0.1:{port}"))
    }

    #[test]
    fn an_answer_that_is_no_map_is_said() {
        for (body, why) in [
            ("{}", "missing field `page` at line 1 column 2"),
            (
                r#"{"page":4096,"runs":[],"next":"0x0"}"#,
                "the part from 0x0 on is followed by one from 0x0 on",
            ),
            (r#"{"page":7,"runs":[],"next":null}"#, "7 is not the size of a page"),
        ] {
            let heap = from_exporter(&answering(body), Question::default(), None);
            let message = format!("the exporter's answer is not a map: {why}");
            assert_eq!(heap, Err(Failure::new(message)));
        }
    }

    #[test]
    fn an_answer_that_is_no_place_is_said() {
        let place = at(&Source::Exporter(answering("[]")), Question::default(), Address(1));
        let why = place.unwrap_err().message;
        assert!(why.starts_with("the exporter's answer is not a map: invalid length 0, "), "{why}");
    }
}
