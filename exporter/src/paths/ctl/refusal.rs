//! Why a request to the namespace is refused, in one line, and the status.
use super::suggest;
use crate::answer::{Answer, line};
use crate::format::Bad;
use crate::namespace::walk::ARENA_NAME;
use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue};
use lumalloc_ctl::{Error, Type, Unit};
use lumalloc_namespace::{Door, Fact};
use serde_json::Value as Json;
use std::fmt;

/// Why a request is not served.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A parameter of the address is wrong.
    Parameter(Bad),
    /// No key has so long a name.
    LongName(usize),
    /// There is no such key. Perhaps another key was meant.
    Unknown(String, Option<String>),
    /// The key exists, but its index does not.
    NoIndex(String),
    /// A branch has no value of its own.
    Branch(String),
    /// The key has no value here.
    NoValue(&'static Fact),
    /// The key has nothing to read. It is triggered or written.
    PostOnly(&'static Fact),
    /// The value of the key is not shown, for this reason.
    NotTold(&'static Fact, &'static str),
    /// The key cannot be written at all.
    ReadOnly(&'static Fact),
    /// Requests may not write the key, for this reason.
    Forbidden(&'static Fact, &'static str),
    /// The request gives a value to an action.
    TakesNothing(&'static Fact),
    /// The body is not JSON.
    NotJson(&'static Fact, String),
    /// The body is an object with other fields than one `value`.
    Object(&'static Fact),
    /// The value is not of the type of the key.
    WrongType(&'static Fact, Json),
    /// The limit is below the bytes that are held now.
    BelowHeld(&'static Fact, Json, usize),
    /// The key returned this error for this value.
    Refused(&'static Fact, Error, Option<Json>),
}

impl Refusal {
    pub(super) fn unknown(name: &str) -> Refusal {
        Refusal::Unknown(name.into(), suggest::nearest(name))
    }

    /// Returns the refusal of a name of a row that the allocator does not know.
    pub(super) fn no_index(row: &'static Fact, name: &str) -> Refusal {
        if row.has_index() { Refusal::NoIndex(name.into()) } else { Refusal::NoValue(row) }
    }

    /// Returns the refusal of a key whose value is not shown.
    pub(super) fn not_told(row: &'static Fact) -> Refusal {
        match row.door {
            Door::Absent => Refusal::NoValue(row),
            _ if row.name.starts_with("thread.") => Refusal::NotTold(
                row,
                "it is about the thread that asks, which would be the exporter's own",
            ),
            Door::Trigger | Door::Write => Refusal::PostOnly(row),
            Door::Read | Door::ReadWrite => {
                Refusal::NotTold(row, "addresses are not told over HTTP")
            }
            _ => Refusal::NotTold(row, "it answers questions, which requests cannot ask"),
        }
    }

    pub(super) fn read(row: &'static Fact, error: Error) -> Refusal {
        match error {
            Error::NoEntry => Refusal::NoValue(row),
            error => Refusal::Refused(row, error, None),
        }
    }

    pub(super) fn act(row: &'static Fact, error: Error) -> Refusal {
        Refusal::read(row, error)
    }

    pub(super) fn write(row: &'static Fact, error: Error, given: &Json) -> Refusal {
        match error {
            Error::NoEntry => Refusal::NoValue(row),
            error => Refusal::Refused(row, error, Some(given.clone())),
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Refusal::LongName(_)
            | Refusal::Unknown(..)
            | Refusal::NoIndex(_)
            | Refusal::NoValue(_) => StatusCode::NOT_FOUND,
            Refusal::PostOnly(_) => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::NotTold(..) | Refusal::ReadOnly(_) | Refusal::Forbidden(..) => {
                StatusCode::FORBIDDEN
            }
            Refusal::Refused(_, Error::NotPermitted, _) => StatusCode::FORBIDDEN,
            Refusal::BelowHeld(..) | Refusal::Refused(_, Error::Busy, _) => StatusCode::CONFLICT,
            Refusal::Refused(_, Error::Again | Error::NoMemory, _) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Parameter(bad) => to.write_str(&bad.0),
            Refusal::LongName(bytes) => {
                let longest = super::LONGEST;
                write!(to, "no key's name has {bytes} bytes: at most {longest} are looked at")
            }
            Refusal::Unknown(name, Some(meant)) => {
                write!(to, "no key is named {name:?}; is it {meant}?")
            }
            Refusal::Unknown(name, None) => {
                write!(to, "no key is named {name:?}; GET /ctl lists them all")
            }
            Refusal::NoIndex(name) => write!(to, "{name}: no such index"),
            Refusal::Branch(name) => {
                write!(to, "{name} is a branch; GET /ctl/{name} tells what is below")
            }
            Refusal::NoValue(row) => write!(to, "{}: has no value here (ENOENT)", row.name),
            Refusal::PostOnly(row) => {
                write!(to, "{}: there is nothing to read; use POST", row.name)
            }
            Refusal::NotTold(row, reason) => write!(to, "{}: {reason}", row.name),
            Refusal::ReadOnly(row) => write!(to, "{}: it can only be read", row.name),
            Refusal::Forbidden(row, reason) => write!(to, "{}: {reason}", row.name),
            Refusal::TakesNothing(row) => {
                write!(to, "{}: it takes no value: leave the body empty", row.name)
            }
            Refusal::NotJson(row, error) => {
                write!(to, "{}: the body is not JSON: {error}; {}", row.name, wanted(row))
            }
            Refusal::Object(row) => write!(
                to,
                "{}: the body is a value, or an object with one as \"value\" and nothing else; {}",
                row.name,
                wanted(row)
            ),
            Refusal::WrongType(row, Json::Null) => {
                write!(to, "{}: there is no value in the body; {}", row.name, wanted(row))
            }
            Refusal::WrongType(row, given) => {
                write!(to, "{}: {} is not fit; {}", row.name, shown(given), wanted(row))
            }
            Refusal::BelowHeld(row, given, held) => write!(
                to,
                "{}: {} bytes are refused: {held} are held now (limit.held), and what needs new \
                 pages would fail (EBUSY); ?force=1 writes it all the same",
                row.name,
                shown(given)
            ),
            Refusal::Refused(row, error, Some(given)) => {
                let (given, errno) = (shown(given), meaning(*error));
                write!(to, "{}: {given} is refused: {errno}; {}", row.name, wanted(row))
            }
            Refusal::Refused(row, error, None) => {
                write!(to, "{}: {}", row.name, meaning(*error))
            }
        }
    }
}

/// Returns the type of the value that a key takes.
fn wanted(row: &Fact) -> String {
    let kind = if row.name == ARENA_NAME { c"text" } else { row.kind.c_name() };
    let kind = kind.to_string_lossy();
    match (row.kind, row.unit) {
        (Type::Void, _) => "it takes no value".into(),
        (_, Unit::None) => format!("its type is {kind}"),
        (_, unit) => format!("its type is {kind}, its unit {}", unit.name().to_string_lossy()),
    }
}

/// Returns the beginning of the given value.
fn shown(given: &Json) -> String {
    let text = given.to_string();
    let cut = text.char_indices().nth(64).map_or(text.len(), |(end, _)| end);
    let dots = if cut < text.len() { "..." } else { "" };
    format!("{}{dots}", text.get(..cut).unwrap_or_default())
}

/// Returns what a key means by an error.
fn meaning(error: Error) -> &'static str {
    match error {
        Error::NoEntry => "it does not exist here (ENOENT)",
        Error::NotPermitted => "it is not permitted (EPERM)",
        Error::Invalid => "it is out of range (EINVAL)",
        Error::Again => "the system cannot do it now (EAGAIN)",
        Error::Busy => "what is held stands in the way (EBUSY)",
        Error::Fault => "it cannot be done (EFAULT)",
        Error::NoMemory => "there is no memory for it (ENOMEM)",
    }
}

impl From<Bad> for Refusal {
    fn from(bad: Bad) -> Refusal {
        Refusal::Parameter(bad)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        let mut answer = line(refusal.status(), &refusal);
        if refusal.status() == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::row_of;
    use crate::testing::said;

    #[test]
    fn each_error_of_a_key_has_its_meaning() {
        for (error, text) in [
            (Error::NoEntry, "epoch: it does not exist here (ENOENT)\n"),
            (Error::NotPermitted, "epoch: it is not permitted (EPERM)\n"),
            (Error::Invalid, "epoch: it is out of range (EINVAL)\n"),
            (Error::Again, "epoch: the system cannot do it now (EAGAIN)\n"),
            (Error::Busy, "epoch: what is held stands in the way (EBUSY)\n"),
            (Error::Fault, "epoch: it cannot be done (EFAULT)\n"),
            (Error::NoMemory, "epoch: there is no memory for it (ENOMEM)\n"),
        ] {
            let row = row_of("epoch").unwrap();
            assert_eq!(said(Refusal::Refused(row, error, None).into()).1, text);
        }
    }
}
