//! `/debug/pprof/`: heap profiles as Go's net/http/pprof serves them, so that `pprof` works on the
//! address. `/heap` and `/pprof/heap` have the text that jeprof reads.
use crate::answer::{Answer, BINARY, TEXT, body, line, no_memory};
use crate::asked::{Asked, Before};
use crate::context::Context;
use crate::format::{Bad, bad, only};
use crate::heap_profile::{Format, changed, compressed, plain_length, take};
use crate::lines;
use crate::own_files;
use crate::query;
use crate::route::First;
use crate::symbols::{self, Symbols};
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use hyper::{Method, StatusCode};
use lumalloc_profile::pprof::DEFAULT_ALLOC_SPACE;
use lumalloc_report::symbols::Search;
use lumalloc_report::{NoDifference, difference, with_lines};
use std::fmt::Write;
use std::io;
use std::time::Duration;

/// What `/debug/pprof/` says.
const INDEX: &str = "\
heap     memory in use, gzipped for pprof; ?debug=1 as text, ?seconds=30 what changes,
         ?lines=true with functions and lines from debug information
allocs   the same, with what was allocated since the start shown first
cmdline  the command line of the program
symbol   names of addresses: POST 0x1234+0x5678
";

/// Answers `GET /debug/pprof/`, and the paths below it that do not exist.
pub(crate) fn index(_: &Context, asked: &Asked) -> Answer {
    if asked.uri().path() != "/debug/pprof/" {
        let reason = "no such profile; GET /debug/pprof/ lists them";
        return line(StatusCode::NOT_FOUND, reason);
    }
    match only(asked, &[]) {
        Ok(()) => body(TEXT, INDEX),
        Err(bad) => bad.into(),
    }
}

/// Go collects garbage first if `gc` says so.
const PARAMETERS: [&str; 4] = ["debug", "gc", "lines", "seconds"];
/// Bytes that a difference may need for each byte of the two profiles, unpacked: stacks and labels
/// become blocks of their own.
const TIMES: usize = 32;
/// The longest time of a difference.
const LONGEST: u64 = 600;

/// The first reading of a difference: `?seconds=`.
pub(crate) const FIRST: First = First { wait, read: before };

fn wait(asked: &Asked) -> Result<Option<Duration>, Bad> {
    only(asked, &PARAMETERS)?;
    let Some(text) = query::values(asked.uri().query(), "seconds").next() else {
        return Ok(None);
    };
    // What is wrong is told now, not when the time is over.
    lines::are_wanted(asked)?;
    let is_text = query::values(asked.uri().query(), "debug").next().is_some_and(|one| one != "0");
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(_) if is_text => Err(bad("a difference is for pprof; leave out debug or seconds")),
        Ok(seconds @ 1..=LONGEST) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(bad(format_args!("seconds is a number up to {LONGEST}, not {text:?}"))),
    }
}

fn before(context: &Context, _: &Asked) -> Answer {
    match compressed(context.namespace) {
        Ok(file) => body(BINARY, file),
        Err(failure) => failure.into(),
    }
}

/// Answers `GET /debug/pprof/heap`.
pub(crate) fn heap(context: &Context, asked: &Asked) -> Answer {
    profile(context, asked, "heap", |_| ())
}

/// Answers `GET /debug/pprof/allocs`.
pub(crate) fn allocs(context: &Context, asked: &Asked) -> Answer {
    profile(context, asked, "allocs", |profile| {
        // Of a field that occurs twice, the last value holds.
        profile.extend_from_slice(&DEFAULT_ALLOC_SPACE);
    })
}

/// Answers `GET /heap`.
pub(crate) fn heap_v2(context: &Context, asked: &Asked) -> Answer {
    match only(asked, &[]) {
        Ok(()) => text(context),
        Err(bad) => bad.into(),
    }
}

fn profile(
    context: &Context,
    asked: &Asked,
    name: &str,
    change: impl FnOnce(&mut Vec<u8>),
) -> Answer {
    if let Err(bad) = only(asked, &PARAMETERS) {
        return bad.into();
    }
    match query::values(asked.uri().query(), "debug").next().as_deref() {
        None | Some("0") => {}
        Some("1") => return text(context),
        Some(other) => return bad(format_args!("debug is 0 or 1, not {other:?}")).into(),
    }
    let has_lines = match lines::are_wanted(asked) {
        Ok(are_wanted) => are_wanted,
        Err(bad) => return bad.into(),
    };
    let file = changed(context.namespace, change);
    let file = match (file, asked.extensions().get::<Before>()) {
        (Ok(file), Some(Before(before))) => match change_since(context, before, &file) {
            Ok(file) => Ok(file),
            Err(answer) => return *answer,
        },
        (file, _) => file,
    };
    let file = match file {
        Ok(file) => file,
        Err(failure) => return failure.into(),
    };
    let answer = if has_lines { read_lines(context, &file) } else { body(BINARY, file) };
    named(answer, &format!("attachment; filename=\"{name}.pb.gz\""))
}

/// Returns what changed since an older profile.
fn change_since(context: &Context, before: &[u8], now: &[u8]) -> Result<Vec<u8>, Box<Answer>> {
    let bytes = plain_length(before) + plain_length(now);
    if !context.memory.has_for(bytes.saturating_mul(TIMES)) {
        return Err(no_memory().into());
    }
    difference(now, before).map_err(|reason| {
        let status = match reason {
            NoDifference::Reset => StatusCode::CONFLICT,
            NoDifference::Files(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        line(status, reason).into()
    })
}

/// Adds the names and lines of all stacks to a profile.
fn read_lines(context: &Context, file: &[u8]) -> Answer {
    if !context.memory.has_for(lines::bytes()) {
        return no_memory();
    }
    match with_lines(file, &Search::default()) {
        Ok(file) => body(BINARY, file),
        Err(reason) => line(StatusCode::INTERNAL_SERVER_ERROR, reason),
    }
}

fn text(context: &Context) -> Answer {
    match take(context.namespace, Format::HeapV2) {
        Ok(text) => body(TEXT, text),
        Err(failure) => failure.into(),
    }
}

fn named(mut answer: Answer, disposition: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(disposition) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    answer
}

/// Answers `GET /debug/pprof/cmdline`: the words of the command line, with NUL between them.
pub(crate) fn command_line(_: &Context, asked: &Asked) -> Answer {
    if let Err(bad) = only(asked, &[]) {
        return bad.into();
    }
    words_of(own_files::read("cmdline"))
}

fn words_of(command_line: io::Result<Vec<u8>>) -> Answer {
    match command_line {
        Ok(mut words) => {
            words.truncate(words.strip_suffix(&[0]).map_or(words.len(), <[u8]>::len));
            body(TEXT, words)
        }
        Err(error) => {
            let reason = format_args!("the command line cannot be read: {error}");
            line(StatusCode::SERVICE_UNAVAILABLE, reason)
        }
    }
}

/// The most addresses of one request.
const MOST_ADDRESSES: usize = 1 << 16;

/// Answers `GET` and `POST /debug/pprof/symbol`: the names of the addresses in the body or, for
/// `GET`, behind `?`. A line for each address has the address as it was given, and the name.
pub(crate) fn symbol(context: &Context, asked: &Asked) -> Answer {
    if !context.memory.has_for(symbols::bytes()) {
        return no_memory();
    }
    let text = if asked.method() == Method::POST {
        asked.body().as_ref()
    } else {
        asked.uri().query().unwrap_or_default().as_bytes()
    };
    names_of(&String::from_utf8_lossy(text), Symbols::of_process())
}

fn names_of(text: &str, symbols: io::Result<Symbols>) -> Answer {
    let given = text.split(['+', ' ', '\n']).filter(|address| !address.is_empty());
    let mut answer = String::from("num_symbols: 1\n");
    let mut symbols = match symbols {
        Ok(symbols) => symbols,
        Err(error) => {
            let reason = format_args!("/proc/self/maps cannot be read: {error}");
            return line(StatusCode::SERVICE_UNAVAILABLE, reason);
        }
    };
    for (count, given) in given.enumerate() {
        let digits = given.trim_start_matches("0x");
        let Ok(address) = u64::from_str_radix(digits, 16) else {
            return bad(format_args!("no hexadecimal address: {given:?}")).into();
        };
        if count == MOST_ADDRESSES {
            return bad(format_args!("a request has at most {MOST_ADDRESSES} addresses")).into();
        }
        if let Some(name) = symbols.name(address) {
            // Writing to a string does not fail.
            let _ = writeln!(answer, "{given} {name}");
        }
    }
    body(TEXT, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, get, post, said};

    #[test]
    fn the_index_lists_the_paths() {
        let context = context();
        assert_eq!(said(index(&context, &get("/debug/pprof/"))), (200, INDEX.into()));
        let missing = "no such profile; GET /debug/pprof/ lists them\n";
        for path in ["/debug/pprof/cpu", "/debug/pprof/x/pprof/"] {
            assert_eq!(said(index(&context, &get(path))), (404, missing.into()), "{path}");
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let context = context();
        let text = "debug is 0 or 1, not \"2\"\n";
        assert_eq!(said(heap(&context, &get("/debug/pprof/heap?debug=2"))), (400, text.into()));
        let text = "no such parameter: \"x\"; there are: debug, gc, lines, seconds\n";
        assert_eq!(said(allocs(&context, &get("/debug/pprof/allocs?x"))), (400, text.into()));
        let text = "no such parameter: \"x\"; there are none here\n";
        for path in [index, heap_v2, command_line] {
            assert_eq!(said(path(&context, &get("/debug/pprof/?x"))), (400, text.into()));
        }
    }

    #[test]
    fn a_difference_has_a_time() {
        let wait = |query: &str| wait(&get(&format!("/debug/pprof/heap?{query}")));
        assert_eq!(wait("seconds=2&debug=0"), Ok(Some(Duration::from_secs(2))));
        assert_eq!(wait("seconds=2&lines=true"), Ok(Some(Duration::from_secs(2))));
        let reason = "lines is true or false, not \"bogus\"";
        assert_eq!(wait("seconds=2&lines=bogus"), Err(bad(reason)));
        assert_eq!((wait(""), wait("seconds=0&debug=1")), (Ok(None), Ok(None)));
        for wrong in ["601", "-1", "x", ""] {
            let expected = bad(format_args!("seconds is a number up to 600, not {wrong:?}"));
            assert_eq!(wait(&format!("seconds={wrong}")), Err(expected));
        }
        let expected = bad("a difference is for pprof; leave out debug or seconds");
        assert_eq!(wait("seconds=1&debug=1"), Err(expected));
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        assert_eq!(said(before(&context(), &get("/"))), (404, off.into()));
    }

    #[test]
    fn addresses_have_names() {
        let context = context();
        let place = (libc::malloc as *const ()).addr();
        let text = format!("0x{place:x}+0x1");
        let (status, names) = said(symbol(&context, &post("/debug/pprof/symbol", &text)));
        assert_eq!((status, names.lines().count()), (200, 2), "{names}");
        let expected = format!("0x{place:x} ");
        assert!(names.lines().nth(1).unwrap().starts_with(&expected), "{names}");
        let same = symbol(&context, &get(&format!("/debug/pprof/symbol?{place:x}")));
        assert_eq!(said(same).1.lines().count(), 2);
        let none = said(symbol(&context, &get("/debug/pprof/symbol")));
        assert_eq!(none, (200, "num_symbols: 1\n".into()));
        let wrong = said(symbol(&context, &post("/debug/pprof/symbol", "0x12+zz")));
        assert_eq!(wrong, (400, "no hexadecimal address: \"zz\"\n".into()));
        let many = "0x1+".repeat(MOST_ADDRESSES + 1);
        let text = "a request has at most 65536 addresses\n";
        assert_eq!(said(symbol(&context, &post("/debug/pprof/symbol", &many))), (400, text.into()));
    }

    #[test]
    fn the_command_line_is_this_program_s() {
        let (status, words) = said(command_line(&context(), &get("/debug/pprof/cmdline")));
        let program = std::env::args().next().unwrap();
        assert_eq!((status, words.split('\0').next()), (200, Some(program.as_str())));
    }

    #[test]
    fn without_proc_the_answers_say_what_cannot_be_read() {
        let missing = || io::Error::from_raw_os_error(libc::ENOENT);
        let text = "the command line cannot be read: No such file or directory (os error 2)\n";
        assert_eq!(said(words_of(Err(missing()))), (503, text.into()));
        let text = "/proc/self/maps cannot be read: No such file or directory (os error 2)\n";
        assert_eq!(said(names_of("0x1", Err(missing()))), (503, text.into()));
    }
}
