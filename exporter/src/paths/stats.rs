//! `/stats`: `malloc_stats_print` as text, or as JSON.
use crate::answer::{Answer, JSON, TEXT, body};
use crate::context::Context;
use crate::routes::Asked;

/// `GET /stats`
pub(crate) fn stats(context: &Context, asked: &Asked) -> Answer {
    let json = asked.uri().query().is_some_and(|query| query == "format=json");
    let (letters, kind) = if json { (c"J", JSON) } else { (c"", TEXT) };
    body(kind, context.namespace.print(letters))
}
