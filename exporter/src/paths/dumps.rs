//! `/dumps`: the snapshots that were kept of limits and peaks. `/dumps/<number>` is one of them,
//! and `/dumps/<number>/profile` the heap profile of that moment for pprof.
use crate::answer::{Answer, BINARY, JSON, body, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Bad, Format, only, or_refused};
use crate::ring::{Kept, MOST, MOST_BYTES};
use hyper::StatusCode;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::time::Instant;

/// The prefix of the paths of single snapshots.
const BASE: &str = "/dumps/";
/// What follows the number in the path of a heap profile.
const PROFILE: &str = "/profile";

/// Answers `GET /dumps`.
pub(crate) fn list(context: &Context, asked: &Asked) -> Answer {
    look(context);
    all_kept(context, asked)
}

fn all_kept(context: &Context, asked: &Asked) -> Answer {
    let list = || -> Result<Answer, Bad> {
        only(asked, &["format"])?;
        let format = Format::of(asked, Format::Json)?;
        let kept = context.ring.kept();
        let text = match format {
            Format::Json => format!("{}\n", listed(&kept)),
            Format::Text => lines(&kept),
        };
        Ok(body(format.kind(), text))
    };
    or_refused(list())
}

/// Answers `GET /dumps/<number>`.
pub(crate) fn one(context: &Context, asked: &Asked) -> Answer {
    look(context);
    one_kept(context, asked)
}

fn one_kept(context: &Context, asked: &Asked) -> Answer {
    if let Err(bad) = only(asked, &[]) {
        return bad.into();
    }
    let name = asked.uri().path().strip_prefix(BASE).unwrap_or_default();
    let number = name.strip_suffix(PROFILE);
    let is_profile = number.is_some();
    let kept = number.unwrap_or(name).parse().ok().and_then(|number| context.ring.get(number));
    match kept {
        Some(kept) if is_profile => profile(&kept),
        Some(kept) => kept.json().map_or_else(missing, |json| body(JSON, json)),
        None => missing(),
    }
}

/// Looks for a limit or a peak since the last request, so that the answer has it. Requests for
/// other paths do not wait for the snapshot.
fn look(context: &Context) {
    context.ring.look_within(&context.memory, context.namespace, Instant::now());
}

fn profile(kept: &Kept) -> Answer {
    match kept.profile() {
        Some(profile) => body(BINARY, profile.to_vec()),
        None => line(StatusCode::NOT_FOUND, "no heap profile was taken then"),
    }
}

fn missing() -> Answer {
    line(StatusCode::NOT_FOUND, "there is no such dump; GET /dumps lists them")
}

fn listed(kept: &[Kept]) -> Json {
    let one = |kept: &Kept| {
        json!({
            "id": kept.id,
            "path": format!("{BASE}{}", kept.id),
            "profile": kept.profile().map(|_| format!("{BASE}{}{PROFILE}", kept.id)),
            "unix_ms": kept.unix_ms,
            "reason": kept.reason,
            "allocated": kept.allocated,
            "resident": kept.resident,
            "bytes": kept.bytes(),
        })
    };
    json!({
        "dumps": kept.iter().map(one).collect::<Vec<_>>(),
        "most": MOST,
        "most_bytes": MOST_BYTES,
    })
}

fn lines(kept: &[Kept]) -> String {
    if kept.is_empty() {
        return "no limit was reached, and there was no peak\n".into();
    }
    let mut text = String::new();
    for Kept { id, unix_ms, reason, allocated, resident, .. } in kept {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{BASE}{id}  {}.{:03}  allocated {allocated}  resident {resident}  {reason}",
            unix_ms / 1000,
            unix_ms % 1000
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, get, json as told, said};

    #[test]
    fn nothing_is_kept_at_first() {
        let context = context();
        let list = |path| all_kept(&context, &get(path));
        let expected = json!({ "dumps": [], "most": 32, "most_bytes": 1_048_576 });
        assert_eq!(told(list("/dumps")), expected);
        let text = "no limit was reached, and there was no peak\n";
        assert_eq!(said(list("/dumps?format=text")), (200, text.into()));
        let missing = "there is no such dump; GET /dumps lists them\n";
        for number in ["1", "", "x", "-1", "99999999999999999999999", "1/profile", "1/x"] {
            let answer = one_kept(&context, &get(&format!("/dumps/{number}")));
            assert_eq!(said(answer), (404, missing.into()), "{number}");
        }
        let text = "no such parameter: \"x\"; there are none here\n";
        assert_eq!(said(one_kept(&context, &get("/dumps/1?x"))), (400, text.into()));
    }

    #[test]
    fn a_peak_is_listed_and_fetched() {
        let context = context();
        // Nothing else looks here.
        let look = || drop(list(&context, &get("/dumps")));
        look();
        // The block is larger than those of all other tests together, and never touched.
        let block = std::hint::black_box(Vec::<u8>::with_capacity(4 << 30));
        // Other tests reach the two limits, which are looked at first, once in a minute.
        (0..3).for_each(|_| look());
        drop(block);
        let all = told(list(&context, &get("/dumps")));
        let is_peak = |one: &&serde_json::Value| {
            one["reason"].as_str().unwrap().contains(" bytes are in use, after ")
        };
        let newest = all["dumps"].as_array().unwrap().iter().rfind(is_peak).unwrap();
        let snapshot = told(one(&context, &get(newest["path"].as_str().unwrap())));
        assert_eq!(snapshot["totals"]["allocated"], newest["allocated"]);
        // The tests run without the profiler.
        assert!(newest["profile"].is_null());
        let profile = format!("{}/profile", newest["path"].as_str().unwrap());
        let none = "no heap profile was taken then\n";
        assert_eq!(said(one(&context, &get(&profile))), (404, none.into()));
        let (_, text) = said(list(&context, &get("/dumps?format=text")));
        assert!(text.contains("  resident "), "{text}");
    }
}
