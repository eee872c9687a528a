//! `?lines=true`: stacks with inlined functions and lines of the source, from debug information.
use crate::format::{Bad, bad};
use crate::query;
use crate::routes::Asked;

/// Bytes that may be needed for each byte of the program's file when its debug information is read.
const TIMES: usize = 4;

/// Returns whether lines are asked for.
pub(crate) fn are_wanted(asked: &Asked) -> Result<bool, Bad> {
    match query::values(asked.uri().query(), "lines").next().as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(bad(format_args!("lines is true or false, not {other:?}"))),
    }
}

/// Returns the bytes that may be needed to read the debug information of this program.
pub(crate) fn bytes() -> usize {
    let file = std::fs::metadata("/proc/self/exe");
    let bytes = file.map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX));
    bytes.saturating_mul(TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::get;

    #[test]
    fn they_are_wanted_only_if_somebody_says_so() {
        let wanted = |query: &str| are_wanted(&get(&format!("/flamegraph{query}"))).ok();
        assert_eq!(wanted(""), Some(false));
        assert_eq!((wanted("?lines=false"), wanted("?lines=true")), (Some(false), Some(true)));
        assert_eq!(wanted("?lines=1"), None);
        assert!(bytes() > 1 << 20, "this program has debug information or code at least");
    }
}
