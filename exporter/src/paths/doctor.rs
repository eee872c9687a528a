//! `/doctor`: what stands out, in words with numbers, and what would help. Help is a key to write
//! by `POST /ctl/<name>`, or an option.
use crate::answer::{Answer, body, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Format, only, or_refused};
use crate::snapshot;
use hyper::StatusCode;
use lumalloc_ctl::{Finding, examine};
use serde_json::json;
use std::fmt::Write;

/// The text for a healthy process.
const WELL: &str = "no problem was found\n";

/// Answers `GET /doctor`.
pub(crate) fn doctor(context: &Context, asked: &Asked) -> Answer {
    let format = only(asked, &["format"]).and_then(|()| Format::of(asked, Format::Text));
    or_refused(format.map(|format| match snapshot::take(context.namespace) {
        Ok(snapshot) => body(format.kind(), written(format, &examine(&snapshot))),
        Err(_) => line(StatusCode::SERVICE_UNAVAILABLE, "no snapshot can be taken"),
    }))
}

fn written(format: Format, findings: &[Finding]) -> String {
    if format == Format::Json {
        return format!("{}\n", json!({ "findings": findings }));
    }
    if findings.is_empty() {
        return WELL.into();
    }
    let mut text = String::new();
    for Finding { rule, what, help } in findings {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{rule}: {what}\n    {help}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, get, json as told, said};

    #[test]
    fn without_findings_it_is_said_that_there_are_none() {
        assert_eq!(written(Format::Text, &[]), WELL);
        assert_eq!(written(Format::Json, &[]), "{\"findings\":[]}\n");
    }

    /// The findings depend on what other tests do to this process.
    #[test]
    fn findings_are_answered_in_both_formats() {
        assert_eq!(said(doctor(&context(), &get("/doctor"))).0, 200);
        assert!(told(doctor(&context(), &get("/doctor?format=json")))["findings"].is_array());
    }

    #[test]
    fn findings_are_words_and_what_would_help() {
        let finding = Finding {
            rule: "dirty".into(),
            what: "Much is dirty.".into(),
            help: "Do arena.4096.purge.".into(),
        };
        let findings = [finding.clone(), finding];
        assert_eq!(
            written(Format::Text, &findings),
            "dirty: Much is dirty.\n    Do arena.4096.purge.\n".repeat(2)
        );
        let json: serde_json::Value =
            serde_json::from_str(&written(Format::Json, &findings)).unwrap();
        assert_eq!(json["findings"][1]["help"], "Do arena.4096.purge.");
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert_eq!(
            said(doctor(&context(), &get("/doctor?full"))),
            (400, "no such parameter: \"full\"; there are: format\n".into())
        );
    }
}
