//! Errors that say what was wrong.
use lumalloc_namespace::error::Error;
use std::fmt;

/// Why a key could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CtlError {
    /// No key has this name.
    NoSuchName {
        /// The name.
        name: String,
    },
    /// The name has an index that does not exist, or does not exist any more.
    NoSuchIndex {
        /// The name as the row has it: `arena.<i>.purge`.
        name: &'static str,
        /// The indices.
        indices: std::vec::Vec<usize>,
    },
    /// The key exists but has no value: its feature is not built in, or the option was not given.
    Absent {
        /// The name as the row has it.
        name: &'static str,
    },
    /// The key cannot be read in this way, or cannot be written.
    NotPermitted {
        /// The name as the row has it.
        name: &'static str,
        /// What the caller tried: `read`, `write`.
        tried: &'static str,
        /// What may be done: `r-`, `rw`, `-w`, `--`.
        access: &'static str,
    },
    /// The value has another type than the key.
    WrongType {
        /// The name as the row has it.
        name: &'static str,
        /// The key's type, as C spells it.
        expected: &'static str,
        /// The value that was given.
        given: String,
    },
    /// The key refuses the value, or the action failed.
    Refused {
        /// The name as the row has it.
        name: &'static str,
        /// The error of the key.
        error: Error,
    },
}

impl fmt::Display for CtlError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CtlError::NoSuchName { name } => write!(to, "no key is named {name:?}"),
            CtlError::NoSuchIndex { name, indices } => {
                write!(to, "{name}: no such index: {indices:?}")
            }
            CtlError::Absent { name } => write!(to, "{name}: has no value here (ENOENT)"),
            CtlError::NotPermitted { name, tried, access } => {
                write!(to, "{name}: cannot {tried} it: its access is {access} (EPERM)")
            }
            CtlError::WrongType { name, expected, given } => {
                write!(to, "{name}: its type is {expected}, not {given} (EINVAL)")
            }
            CtlError::Refused { name, error } => write!(to, "{name}: {}", meaning(*error)),
        }
    }
}

impl std::error::Error for CtlError {}

/// The meaning of a key's error.
fn meaning(error: Error) -> &'static str {
    match error {
        Error::NoEntry => "does not exist here (ENOENT)",
        Error::NotPermitted => "is not permitted (EPERM)",
        Error::Invalid => "the value is out of range (EINVAL)",
        Error::Again => "the system refuses it now (EAGAIN)",
        Error::Busy => "what is held stands in the way (EBUSY)",
        Error::Fault => "failed (EFAULT)",
        Error::NoMemory => "no memory for it (ENOMEM)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn each_error_says_what_was_wrong() {
        let refused = |error| CtlError::Refused { name: "k", error };
        let cases = [
            (CtlError::NoSuchName { name: "a\"b".into() }, r#"no key is named "a\"b""#),
            (
                CtlError::NoSuchIndex { name: "arena.<i>.purge", indices: vec![9999] },
                "arena.<i>.purge: no such index: [9999]",
            ),
            (CtlError::Absent { name: "opt.utrace" }, "opt.utrace: has no value here (ENOENT)"),
            (
                CtlError::NotPermitted { name: "version", tried: "write", access: "r-" },
                "version: cannot write it: its access is r- (EPERM)",
            ),
            (
                CtlError::WrongType { name: "epoch", expected: "uint64_t", given: "true".into() },
                "epoch: its type is uint64_t, not true (EINVAL)",
            ),
            (refused(Error::NoEntry), "k: does not exist here (ENOENT)"),
            (refused(Error::NotPermitted), "k: is not permitted (EPERM)"),
            (refused(Error::Invalid), "k: the value is out of range (EINVAL)"),
            (refused(Error::Again), "k: the system refuses it now (EAGAIN)"),
            (refused(Error::Busy), "k: what is held stands in the way (EBUSY)"),
            (refused(Error::Fault), "k: failed (EFAULT)"),
            (refused(Error::NoMemory), "k: no memory for it (ENOMEM)"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
