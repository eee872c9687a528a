//! JSON or text: `?format=` decides, otherwise the client's `Accept` header.
use crate::answer::{Answer, JSON, TEXT, line};
use crate::asked::Asked;
use crate::negotiate;
use crate::query;
use hyper::StatusCode;

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
}

impl Format {
    /// Returns the format of an answer. `first` is the format for clients without a preference.
    pub(crate) fn of(asked: &Asked, first: Format) -> Result<Format, Bad> {
        match query::values(asked.uri().query(), "format").next().as_deref() {
            Some("json") => Ok(Format::Json),
            Some("text") => Ok(Format::Text),
            Some(other) => Err(bad(format_args!("format is json or text, not {other:?}"))),
            None => {
                let formats = match first {
                    Format::Json => [Format::Json, Format::Text],
                    Format::Text => [Format::Text, Format::Json],
                };
                let place = negotiate::choose(asked.headers(), &formats.map(Format::kind));
                Ok(place.and_then(|place| formats.get(place).copied()).unwrap_or(first))
            }
        }
    }

    /// Returns the media type of the format.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Format::Json => JSON,
            Format::Text => TEXT,
        }
    }
}

/// What is wrong with a request. The request gets 400 with this reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad(pub(crate) String);

/// Returns a [`Bad`] with the reason.
pub(crate) fn bad(reason: impl std::fmt::Display) -> Bad {
    Bad(reason.to_string())
}

impl From<Bad> for Answer {
    fn from(bad: Bad) -> Answer {
        line(StatusCode::BAD_REQUEST, bad.0)
    }
}

/// Returns the answer, or the refusal as an answer.
pub(crate) fn or_refused<E: Into<Answer>>(outcome: Result<Answer, E>) -> Answer {
    outcome.unwrap_or_else(Into::into)
}

/// Checks that a request has no parameters but the known ones.
pub(crate) fn only(asked: &Asked, known: &[&str]) -> Result<(), Bad> {
    match query::unknown(asked.uri().query(), known) {
        None => Ok(()),
        Some(name) if known.is_empty() => {
            Err(bad(format_args!("no such parameter: {name:?}; there are none here")))
        }
        Some(name) => {
            let known = known.join(", ");
            Err(bad(format_args!("no such parameter: {name:?}; there are: {known}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{get, said};
    use hyper::header::{ACCEPT, HeaderValue};

    #[test]
    fn the_query_decides_then_the_client_then_the_path() {
        let of = |path: &str, accept: &'static str| {
            let mut asked = get(path);
            asked.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
            [Format::Json, Format::Text].map(|first| Format::of(&asked, first).unwrap())
        };
        assert_eq!(of("/x?format=json", "text/plain"), [Format::Json; 2]);
        assert_eq!(of("/x?format=text", "application/json"), [Format::Text; 2]);
        assert_eq!(of("/x", "application/json"), [Format::Json; 2]);
        assert_eq!(of("/x", "*/*"), [Format::Json, Format::Text]);
        assert_eq!(of("/x", "image/png"), [Format::Json, Format::Text]);
    }

    #[test]
    fn bad_parameters_are_named() {
        let error = Format::of(&get("/x?format=xml"), Format::Json).unwrap_err();
        assert_eq!(said(error.into()), (400, "format is json or text, not \"xml\"\n".into()));
        let error = only(&get("/x?fromat=json"), &["format", "opts"]).unwrap_err();
        let text = "no such parameter: \"fromat\"; there are: format, opts\n";
        assert_eq!(said(error.into()), (400, text.into()));
        let error = only(&get("/x?a"), &[]).unwrap_err();
        assert_eq!(
            said(error.into()),
            (400, "no such parameter: \"a\"; there are none here\n".into())
        );
        assert!(only(&get("/x?format=json"), &["format"]).is_ok());
    }
}
