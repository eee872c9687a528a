//! `/map`: the heap as a map, in parts, and what lies at an address.
//!
//! | request | answer |
//! |---|---|
//! | `GET /map` | the first 10000 runs; `next` is the `from` of the next part, or `null` |
//! | `GET /map?from=0x7f0000000000&most=500` | 500 runs from an address on |
//! | `GET /map?arena=3` | runs of one arena |
//! | `GET /map?at=0x7f0000001234` | the run around an address, and the sites that hold it |
//!
//! An answer has at most 50000 runs, so that its size is bounded however large the heap is.
use crate::answer::{Answer, JSON, body, line, no_memory};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Bad, bad, only, or_refused};
use crate::frames::described;
use crate::query;
use crate::symbols::{self, Symbols};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use lumalloc_ctl::Error;
use lumalloc_namespace::heap_map::Part;
use serde_json::Value as Json;

/// Runs of an answer, unless the request says how many.
const USUAL: usize = 10_000;
/// The most runs of an answer. It has some 9 MiB.
const MOST: usize = 50_000;
/// Bytes of a run in an answer, and how many times the answer's bytes may be needed: it grows by
/// doubling.
const RUN: usize = 200;
const TIMES: usize = 3;

/// The header with the number of this process, for who asks for the map of one process.
const PROCESS: HeaderName = HeaderName::from_static("lumalloc-process");

/// Answers `GET /map`.
pub(crate) fn map(context: &Context, asked: &Asked) -> Answer {
    let mut answer = or_refused(answered(context, asked));
    answer.headers_mut().insert(PROCESS, HeaderValue::from(std::process::id()));
    answer
}

fn answered(context: &Context, asked: &Asked) -> Result<Answer, Bad> {
    if parameter(asked, "at").is_some() {
        only(asked, &["at"])?;
        let address = address(asked, "at")?.unwrap_or_default();
        if !context.memory.has_for(symbols::bytes()) {
            return Ok(no_memory());
        }
        let symbols = Symbols::of_process().unwrap_or_default();
        return Ok(match context.namespace.map_at(address) {
            Ok(text) => body(JSON, with_frames(&text, symbols)),
            Err(_) => no_memory(),
        });
    }
    only(asked, &["arena", "at", "from", "most"])?;
    let part = Part {
        arena: number(asked, "arena", "the index of an arena")?,
        from: address(asked, "from")?.unwrap_or_default(),
        most: most(asked)?,
    };
    if !context.memory.has_for(part.most.saturating_mul(RUN * TIMES)) {
        return Ok(no_memory());
    }
    Ok(match (context.namespace.map(part), part.arena) {
        (Ok(text), _) => body(JSON, text),
        (Err(Error::NoMemory), _) => no_memory(),
        (Err(_), Some(arena)) => {
            line(StatusCode::NOT_FOUND, format_args!("no such arena: {arena}"))
        }
        (Err(error), None) => {
            let reason = format_args!("the map could not be read: {error:?}");
            line(StatusCode::INTERNAL_SERVER_ERROR, reason)
        }
    })
}

fn parameter(asked: &Asked, name: &str) -> Option<String> {
    query::values(asked.uri().query(), name).next()
}

fn most(asked: &Asked) -> Result<usize, Bad> {
    match number(asked, "most", "a number of runs")? {
        None => Ok(USUAL),
        Some(most @ 1..=MOST) => Ok(most),
        Some(other) => Err(bad(format_args!("most is 1 to {MOST}, not {other}"))),
    }
}

fn number<T: std::str::FromStr>(asked: &Asked, name: &str, what: &str) -> Result<Option<T>, Bad> {
    let Some(text) = parameter(asked, name) else { return Ok(None) };
    let wrong = |_| bad(format_args!("{name} is {what}, not {text:?}"));
    text.parse().map(Some).map_err(wrong)
}

fn address(asked: &Asked, name: &str) -> Result<Option<usize>, Bad> {
    let Some(text) = parameter(asked, name) else { return Ok(None) };
    let digits = text.strip_prefix("0x").unwrap_or_default();
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match usize::from_str_radix(digits, 16) {
        Ok(address) if is_plain => Ok(Some(address)),
        _ => Err(bad(format_args!("{name} is an address like 0x7f0000001000, not {text:?}"))),
    }
}

/// Replaces the addresses of the stacks by what is known of them.
fn with_frames(text: &[u8], mut symbols: Symbols) -> String {
    let mut told: Json = serde_json::from_slice(text).unwrap_or_default();
    let sites = told.get_mut("sites").and_then(Json::as_array_mut).into_iter().flatten();
    for stack in sites.filter_map(|site| site.get_mut("stack")?.as_array_mut()) {
        for frame in stack {
            let digits = frame.as_str().and_then(|text| text.strip_prefix("0x"));
            let address = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
            *frame = described(&mut symbols, address.unwrap_or_default());
        }
    }
    format!("{told}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;
    use crate::settings::Settings;
    use crate::testing::Mute;
    use crate::testing::{context, get, json, said};

    fn asked(path: &str) -> Json {
        json(map(&context(), &get(path)))
    }

    #[test]
    fn a_block_lies_in_a_run_of_the_map() {
        let block = vec![1u8; 1 << 20];
        let address = format!("{:#x}", block.as_ptr().addr());
        let whole = asked("/map?most=50000");
        assert_eq!((&whole["page"], &whole["next"]), (&Json::from(4096), &Json::Null));
        let runs = whole["runs"].as_array().expect("runs");
        let run = runs.iter().find(|run| run["base"] == address.as_str()).expect("a run");
        assert_eq!((&run["state"], &run["bytes"]), (&"large".into(), &(1 << 20).into()));
        let at = asked(&format!("/map?at={:#x}", block.as_ptr().addr() + 70_000));
        assert_eq!(at["run"], *run);
        assert_eq!(at["sites"], Json::Array(vec![]));
        let arena = run["arena"].as_u64().expect("an index");
        let runs = asked(&format!("/map?arena={arena}&most=50000"));
        let runs = runs["runs"].as_array().expect("runs");
        assert!(runs.iter().all(|run| run["arena"] == arena) && runs.contains(run));
    }

    #[test]
    fn the_process_is_named() {
        let answer = map(&context(), &get("/map?most=1"));
        let number = answer.headers().get("lumalloc-process").expect("a number");
        assert_eq!(*number, std::process::id().to_string());
    }

    #[test]
    fn a_part_ends_where_the_next_begins() {
        let first = asked("/map?most=1");
        assert_eq!(first["runs"].as_array().map(Vec::len), Some(1));
        let next = first["next"].as_str().expect("more runs");
        let second = asked(&format!("/map?most=1&from={next}"));
        assert_ne!(second["runs"][0]["base"], first["runs"][0]["base"]);
    }

    #[test]
    fn frames_are_described() {
        let text = br#"{"run":null,"sites":[{"stack":["0x7","0x9"]},{"stack":[]}]}"#;
        let told: Json = serde_json::from_str(&with_frames(text, Symbols::default())).unwrap();
        assert_eq!(told["sites"][0]["stack"][1], described(&mut Symbols::default(), 9));
        assert_eq!(told["sites"][1]["stack"], Json::Array(vec![]));
        assert_eq!(asked("/map?at=0x40")["run"], Json::Null);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (path, expected) in [
            ("/map?arena=x", "arena is the index of an arena, not \"x\""),
            ("/map?from=7f00", "from is an address like 0x7f0000001000, not \"7f00\""),
            ("/map?from=0x%2b7", "from is an address like 0x7f0000001000, not \"0x+7\""),
            ("/map?at=", "at is an address like 0x7f0000001000, not \"\""),
            ("/map?at=0x1&arena=1", "no such parameter: \"arena\"; there are: at"),
            ("/map?most=-1", "most is a number of runs, not \"-1\""),
            ("/map?most=0", "most is 1 to 50000, not 0"),
            ("/map?most=50001", "most is 1 to 50000, not 50001"),
            ("/map?format=text", "no such parameter: \"format\"; there are: arena, at, from, most"),
        ] {
            let answer = said(map(&context(), &get(path)));
            assert_eq!(answer, (400, format!("{expected}\n")), "{path}");
        }
        // The last ones stand for sets of arenas in keys.
        for arena in [4000, 4096, 4097] {
            let answer = said(map(&context(), &get(&format!("/map?arena={arena}"))));
            assert_eq!(answer, (404, format!("no such arena: {arena}\n")));
        }
    }

    #[test]
    fn a_map_that_cannot_be_read_is_said() {
        let context = Context::new(&Mute, Settings::default(), routes::names());
        let text = "the map could not be read: NoEntry\n";
        assert_eq!(said(map(&context, &get("/map"))), (500, text.into()));
    }
}
