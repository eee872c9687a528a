//! `?lines=true`: stacks with inlined functions and lines of the source, from debug information.
use crate::asked::Asked;
use crate::format::{Bad, bad};
use crate::own_files;
use crate::query;
use crate::symbols::Symbols;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Bytes that may be needed for each byte of a file when its debug information is read.
const TIMES: usize = 4;

/// Returns whether lines are asked for.
pub(crate) fn are_wanted(asked: &Asked) -> Result<bool, Bad> {
    match query::values(asked.uri().query(), "lines").next().as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(bad(format_args!("lines is true or false, not {other:?}"))),
    }
}

/// Returns the bytes that may be needed to read the debug information of this program and of its
/// libraries. Separate files of debug information are not counted: only a reader of the profile
/// finds out which there are.
pub(crate) fn bytes() -> usize {
    let libraries = Symbols::of_process().map(|process| process.files()).unwrap_or_default();
    let mut files: Vec<PathBuf> = libraries.into_iter().map(PathBuf::from).collect();
    files.push(PathBuf::from(own_files::program()));
    bytes_of(&files)
}

/// Returns the bytes that may be needed to read these files, each once.
fn bytes_of(files: &[PathBuf]) -> usize {
    let mut lengths = HashMap::new();
    for file in files.iter().filter_map(|file| std::fs::metadata(file).ok()) {
        lengths.insert((file.dev(), file.ino()), file.len());
    }
    let bytes = lengths.values().fold(0_u64, |sum, length| sum.saturating_add(*length));
    usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(TIMES)
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
    }

    #[test]
    fn the_program_and_its_libraries_are_counted_each_once() {
        let program = PathBuf::from("/proc/self/exe");
        let alone = bytes_of(std::slice::from_ref(&program));
        let length = std::fs::metadata(&program).unwrap().len();
        assert_eq!(alone as u64, length * TIMES as u64);
        let again = std::fs::read_link(&program).unwrap();
        assert_eq!(bytes_of(&[program, again, PathBuf::from("/nowhere")]), alone);
        let libraries = Symbols::of_process().unwrap().files();
        assert!(libraries.iter().any(|path| path.contains("libc.so")), "{libraries:?}");
        assert!(bytes() > alone + 1_000_000, "libc has more than a quarter of a megabyte");
    }
}
