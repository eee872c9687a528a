//! `/stats`: `malloc_stats_print` as text or as JSON. `?opts=` has its option letters.
use crate::answer::{Answer, body, no_memory};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Bad, Format, bad, only, or_refused};
use crate::namespace::Namespace;
use crate::query;
use lumalloc_ctl::Error;
use std::ffi::{CStr, CString};
use std::str::Utf8Chunk;

/// The option letters of `malloc_stats_print`.
const LETTERS: &str = "Jgmdablxehw";
/// The most bytes of one arena in both formats. Arenas that have blocks of ten size classes have 33
/// and 8 KiB.
pub(crate) const JSON_OF_ARENA: usize = 48 << 10;
pub(crate) const TEXT_OF_ARENA: usize = 16 << 10;

/// Answers `GET /stats`.
pub(crate) fn stats(context: &Context, asked: &Asked) -> Answer {
    or_refused(printed(context, asked))
}

fn printed(context: &Context, asked: &Asked) -> Result<Answer, Bad> {
    only(asked, &["format", "opts"])?;
    let opts: String = query::values(asked.uri().query(), "opts").collect();
    if let Some(other) = opts.chars().find(|letter| !LETTERS.contains(*letter)) {
        let letters: Vec<String> = LETTERS.chars().map(String::from).collect();
        let letters = letters.join(" ");
        return Err(bad(format_args!("opts: no such letter: {other:?}; there are {letters}")));
    }
    let format = match (opts.contains('J'), Format::of(asked, Format::Text)?) {
        (true, Format::Text) if has_format(asked) => {
            return Err(bad("opts: J is JSON, and format is text"));
        }
        (true, _) => Format::Json,
        (false, format) => format,
    };
    let (j, bytes) = match format {
        Format::Json => ("J", JSON_OF_ARENA),
        Format::Text => ("", TEXT_OF_ARENA),
    };
    let has_arenas = !opts.contains('a');
    if has_arenas && !context.memory.has_for_arenas(bytes) {
        return Ok(no_memory());
    }
    let letters = CString::new(format!("{j}{}", opts.replace('J', ""))).unwrap_or_default();
    let text = printed_text(context.namespace, &letters);
    Ok(text.map_or_else(|_| no_memory(), |text| body(format.kind(), text)))
}

/// Returns what is printed as UTF-8. Names of arenas need not be UTF-8. Fails if there is no memory
/// for it.
pub(crate) fn printed_text(namespace: &dyn Namespace, letters: &CStr) -> Result<String, Error> {
    String::from_utf8(namespace.print(letters)?).or_else(|error| lossy(error.as_bytes()))
}

/// As [`String::from_utf8_lossy`], which ends the process if there is no memory.
fn lossy(bytes: &[u8]) -> Result<String, Error> {
    let replaced = |wrong: &[u8]| if wrong.is_empty() { "" } else { "\u{fffd}" };
    let length = |chunk: Utf8Chunk<'_>| chunk.valid().len() + replaced(chunk.invalid()).len();
    let mut text = String::new();
    let room = bytes.utf8_chunks().map(length).sum();
    text.try_reserve_exact(room).map_err(|_| Error::NoMemory)?;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(replaced(chunk.invalid()));
    }
    Ok(text)
}

fn has_format(asked: &Asked) -> bool {
    query::values(asked.uri().query(), "format").next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, get, json, said};
    use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

    #[track_caller]
    fn text(path: &str) -> String {
        let (status, text) = said(stats(&context(), &get(path)));
        assert_eq!(status, 200, "{text}");
        text
    }

    #[test]
    fn text_for_people_json_for_machines() {
        assert!(text("/stats").starts_with("___ Begin lumalloc statistics ___\n"));
        assert!(json(stats(&context(), &get("/stats?format=json")))["jemalloc"].is_object());
        assert!(json(stats(&context(), &get("/stats?opts=J")))["jemalloc"].is_object());
        let mut asked = get("/stats");
        asked.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/*;q=0.1, */*;q=0.5"));
        let answer = stats(&context(), &asked);
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
        assert!(json(answer)["jemalloc"]["version"].is_string());
        asked.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/html, */*;q=0.8"));
        let answer = stats(&context(), &asked);
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    }

    #[test]
    fn letters_leave_parts_out() {
        assert!(!text("/stats?opts=g").contains("  opt.dirty_decay_ms: "));
        let whole = json(stats(&context(), &get("/stats?format=json")));
        let part = json(stats(&context(), &get("/stats?format=json&opts=mdablxehw")));
        assert!(whole["jemalloc"]["stats.arenas"]["merged"].is_object());
        assert!(part["jemalloc"]["stats.arenas"].get("merged").is_none());
        assert!(text("/stats?opts=").contains("  opt.dirty_decay_ms: "));
    }

    #[test]
    fn a_name_that_is_no_text_harms_nothing() {
        let namespace: &dyn Namespace = context().namespace;
        let create = namespace.find("arenas.create").unwrap();
        let arena = namespace.create(&create).unwrap();
        namespace.set_arena_name(arena, c"no \xff text").unwrap();
        assert!(text("/stats").contains("no \u{fffd} text"));
        let arenas = &json(stats(&context(), &get("/stats?opts=J")))["jemalloc"]["stats.arenas"];
        assert!(arenas[arena.to_string()].is_object());
    }

    #[test]
    fn bad_parameters_are_refused() {
        let letters = "there are J g m d a b l x e h w";
        for (path, expected) in [
            ("/stats?opts=gz", format!("opts: no such letter: 'z'; {letters}")),
            ("/stats?opts=%00", format!("opts: no such letter: '\\0'; {letters}")),
            ("/stats?opts=J&format=text", "opts: J is JSON, and format is text".into()),
            ("/stats?format=yaml", "format is json or text, not \"yaml\"".into()),
            ("/stats?option=g", "no such parameter: \"option\"; there are: format, opts".into()),
        ] {
            assert_eq!(said(stats(&context(), &get(path))), (400, format!("{expected}\n")));
        }
    }
}
